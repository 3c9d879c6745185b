"""A call that ran by a remembered decision is named under the reply: it got no card that would say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from signoff.approvals.grants import Grant, GrantTerms, grant
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    CallRun,
    Choice,
    GrantNote,
    Remember,
    RequestState,
    RunState,
    Settlement,
)
from signoff.turns.messages import GIVERS, apart, grant_lines, under_mode, with_lines
from signoff.turns.model import Finished, Waiting
from tests.conftest import SERVER, make_batch, make_request, make_turn
from tests.rigs.driver_office import Office

NINA = Actor("9", "Nina", SERVER, manages_server=True)


def by_grant(
    tool: str, by: Actor = NINA, run: RunState | None = RunState.DONE, state: RequestState = RequestState.APPROVED
) -> ApprovalRequest:
    choice = Choice.ACCEPT if state is RequestState.APPROVED else Choice.REJECT
    end = Settlement(choice, None, 5.0, "remembered", grant=GrantNote("g1", by, 99.0, True))
    request = make_request()
    call = replace(request.call, tool=tool)
    return replace(request, call=call, state=state, settlement=end, run=CallRun(run) if run else None)


def batch_of(*requests: ApprovalRequest) -> Batch:
    return make_batch(*requests)


def test_each_person_whose_decision_counted_gets_a_line() -> None:
    olga = Actor("8", "Olga", SERVER)
    rejected = by_grant("drop", state=RequestState.REJECTED, run=None)
    batches = [batch_of(by_grant("record"), by_grant("record"), rejected), batch_of(by_grant("slow", olga))]
    assert grant_lines(batches, markup=True) == [
        "By a remembered decision of <@9>: `record` ran, `drop` rejected.",
        "By a remembered decision of <@8>: `slow` ran.",
    ]
    assert grant_lines(batches, markup=False)[1] == "By a remembered decision of Olga: slow ran."


def test_a_call_that_did_not_run_after_all_is_not_said_to_have_run() -> None:
    (line,) = grant_lines([batch_of(by_grant("record", run=RunState.NOT_RUN))], markup=True)
    assert line.endswith("`record` not run.")


def test_decisions_of_people_and_modes_are_not_named() -> None:
    person = replace(by_grant("record"), settlement=Settlement(Choice.ACCEPT, NINA, 5.0))
    mode = replace(by_grant("record"), settlement=Settlement(Choice.ACCEPT, None, 5.0, "mode auto_approve"))
    assert grant_lines([batch_of(person, mode)], markup=True) == []


@pytest.mark.parametrize("markup", [True, False])
@pytest.mark.parametrize("state", [RequestState.APPROVED, RequestState.REJECTED])
def test_a_line_with_many_long_names_is_told_apart_from_the_reply(markup: bool, state: RequestState) -> None:
    requests = [by_grant(letter * 40, run=None, state=state) for letter in "abcdefghijkl"]
    (line,) = grant_lines([batch_of(*requests)], markup=markup)
    assert apart(with_lines("the reply", [line], markup=markup))[0] == "the reply"


@pytest.mark.parametrize("markup", [True, False])
def test_the_lines_are_told_apart_from_the_reply(markup: bool) -> None:
    givers = [Actor(str(n), f"{n}@everyone **x**\n" * 9, SERVER) for n in range(GIVERS + 2)]
    requests = [by_grant(f"{tool} `@everyone` <@1>" * 9, by) for by in givers for tool in "abcdefg"]
    lines = grant_lines([batch_of(*requests)], markup=markup)
    assert len(lines) == GIVERS
    text = under_mode(with_lines("the reply\nof two lines", lines, markup=markup), "auto_deny", markup=markup)
    body, below = apart(text)
    assert body == "the reply\nof two lines"
    assert len(below) < 1500
    assert "@everyone" not in below.replace("\\u{0040}everyone", "")


@pytest.mark.parametrize("markup", [True, False])
def test_the_longest_line_is_told_apart_too(markup: bool) -> None:
    ada = Actor("9", "Ada of the Very Long Family Name, the Second", SERVER)
    ends = [by_grant(f"{n:040}", ada, None, RequestState.REJECTED) for n in range(1000)]
    lines = grant_lines([batch_of(*ends)], markup=markup)
    assert lines[0].endswith(" and 996 more.")
    text = with_lines("the reply", lines, markup=markup)
    assert apart(text) == ("the reply", text.removeprefix("the reply\n"))


def test_a_name_of_several_words_is_written_as_people_write_it() -> None:
    lines = grant_lines([batch_of(by_grant("record", Actor("9", "Ada Lovelace", SERVER)))], markup=False)
    assert lines == ["By a remembered decision of Ada Lovelace: record ran."]
    assert apart(with_lines("the reply", lines, markup=False)) == ("the reply", lines[0])


def test_a_reply_cannot_make_the_lines_long() -> None:
    text = "begin\n" + "\n".join(["By a remembered decision of <@9>: " + "x" * 5000 + "."] * 3)
    assert apart(text) == (text, "")
    text = "begin" + "\nBy a remembered decision of <@9>: `record` ran." * 50
    assert len(apart(text)[1]) < 1500


async def test_the_reply_names_the_remembered_decision_once(office: Office) -> None:
    office.desk.grants = GrantTerms(Remember.ALWAYS)
    turn = make_turn()
    batch = make_batch(now=office.clock.now(), turn=turn.id, place=turn.place)
    made: Grant = grant(
        batch.requests[0], batch, Remember.ALWAYS, NINA, Choice.ACCEPT, batch.opened, office.desk.grants
    )
    await office.store.run(lambda tx: tx.insert_grant(made))
    office.runner.script(turn, Waiting(batch), Finished("the answer"))
    await office.take(turn)
    await office.until(lambda: office.front.replies)
    assert office.front.cards == [], "nobody was asked"
    ((_, text),) = office.front.replies
    tool = batch.requests[0].call.tool
    assert text == f"the answer\n-# By a remembered decision of <@9>: `{tool}` not run."
    stored = await office.store.run(lambda tx: tx.turn(turn.id))
    assert stored
    assert stored.reply == "the answer", "the model never reads it as its own words"
