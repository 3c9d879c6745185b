"""Defences of the desk and the editor that no other test covers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, RunContext, Tool

from signoff.approvals.clicks import Click
from signoff.approvals.desk import EARLY, Desk
from signoff.approvals.edits import Editor
from signoff.approvals.errors import AlreadySettled, Outdated
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import (
    ApprovalRequest,
    Batch,
    Choice,
    JsonObject,
    Remember,
    RequestState,
    Ruling,
    Terms,
    Verdict,
)
from signoff.approvals.ports import Revised
from signoff.store import Store
from signoff.turns.model import Finished, Waiting
from tests.conftest import ADA, PLACE, HandClock, make_batch, make_call, make_request
from tests.rigs.desk import opened
from tests.rigs.driver_office import Office, in_thread
from tests.rigs.gate_bench import Bench, accept, batch_of, edit
from tests.rigs.people import BY_ROLE, HandDirectory, HandReviser
from tests.rigs.scripted import calls

AFTER = {"path": "b.txt"}
ASKS = Ruling(Verdict.ASK, "a rule")


@pytest.fixture
def desk(store: Store, clock: HandClock) -> Desk:
    return Desk(store, clock, grants=GrantTerms(Remember.ALWAYS), directory=HandDirectory())


async def stored(desk: Desk, batch: Batch) -> Batch:
    found = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert found is not None
    return found


async def test_a_grant_for_one_call_leaves_its_sibling_to_people(desk: Desk) -> None:
    first = make_batch(make_request(make_call(args={"path": "known"})))
    await opened(desk, first)
    await desk.decide(Click(first.id, Choice.ACCEPT, ADA, PLACE.channel, remember=Remember.SESSION))
    both = make_batch(make_request(make_call(args={"path": "known"})), make_request(make_call(args={"path": "other"})))
    await opened(desk, both)
    assert [r.state for r in (await stored(desk, both)).requests] == [RequestState.APPROVED, RequestState.PENDING]


async def test_a_call_that_waits_for_no_other_is_not_asked_about(desk: Desk) -> None:
    """The other call may have failed in its preview, for example. Nobody is shown a card that decides nothing."""
    batch = make_batch(make_request(held=True))
    await opened(desk, batch)
    (request,) = (await stored(desk, batch)).requests
    assert (request.state, request.settlement and request.settlement.by) == (RequestState.APPROVED, None)


async def test_a_held_call_that_nobody_may_decide_is_not_rejected_for_that(desk: Desk) -> None:
    asking = make_request(make_call(args={"n": 1}), approvers=("manage_server",))
    held = make_request(make_call(args={"n": 2}), held=True, approvers=("user:7",), missing=("user:7",))
    batch = make_batch(asking, held)
    future = await opened(desk, batch)
    assert [r.state for r in (await stored(desk, batch)).requests] == [RequestState.PENDING, RequestState.PENDING]
    assert not future.done()
    await desk.decide(Click(asking.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert [r.state for r in future.result().requests] == [RequestState.APPROVED, RequestState.APPROVED]


async def test_a_remembered_no_must_be_about_what_was_shown(desk: Desk) -> None:
    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    await Editor(desk, HandReviser()).edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    no = Click(request.id, Choice.REJECT, ADA, PLACE.channel, remember=Remember.SESSION, revision=0)
    with pytest.raises(Outdated):
        await desk.decide(no)
    await desk.decide(replace(no, revision=1))
    (grant,) = await desk.standing_grants(PLACE.server)
    assert grant.args == '{"path":"b.txt"}'


async def test_accept_all_covers_the_page_that_was_shown(desk: Desk) -> None:
    batch = make_batch(*(make_request(make_call(args={"n": n})) for n in range(5)))
    await opened(desk, batch)
    await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, revision=0, page=1))
    assert [r.id for r in (await stored(desk, batch)).pending] == [r.id for r in batch.requests[:4]]


async def test_an_edited_call_is_asked_about_on_the_operators_terms(desk: Desk) -> None:
    batch = make_batch(make_request(), make_request(make_call(args={"n": 2})))
    await opened(desk, batch)
    request = batch.requests[0]
    editor = Editor(desk, HandReviser(ASKS), Terms(approvers=(*BY_ROLE, "manage_server"), quorum=2, four_eyes=True))
    edited = (await editor.edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)).batch.requests[0]
    assert (edited.approvers, edited.quorum, edited.four_eyes) == ((*BY_ROLE, "manage_server"), 2, True)
    assert (await stored(desk, batch)).requests[0] == edited


async def test_what_is_decided_while_an_edit_is_checked_stays_decided(desk: Desk) -> None:
    class Slow(HandReviser):
        async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
            await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, revision=0))
            return await super().revise(batch, request, args)

    batch = make_batch()
    await opened(desk, batch)
    request = batch.requests[0]
    with pytest.raises(AlreadySettled):
        await Editor(desk, Slow()).edit(request.id, AFTER, request.call.digest, ADA, PLACE.channel, None)
    after = await stored(desk, batch)
    assert (after.revision, after.requests[0].call) == (0, request.call)


async def test_an_edited_call_whose_own_code_asks_again_keeps_its_edit_and_no_void_votes(bench: Bench) -> None:
    tries: list[str] = []

    def put(ctx: RunContext[Any], value: str) -> str:
        tries.append(value)
        if len(tries) == 1:
            raise ApprovalRequired
        return f"put {value}"

    step = await bench.start([calls(("put", {"value": "x"})), "done"], [Tool(put, requires_approval=True)])
    await edit(bench, step, {"value": "y"})
    again = await accept(bench, step)
    (request,) = batch_of(again).requests
    assert request.call.args == {"value": "y"}
    assert request.edit is not None
    assert (request.edit.original, request.edit.voided) == ({"value": "x"}, ())
    assert isinstance(await accept(bench, again), Finished)
    assert tries == ["y", "y"]


async def test_the_admins_are_told_that_an_approver_is_gone(office: Office) -> None:
    """Row 20: nobody may approve, and a notice tells the admins."""
    office.desk.directory = HandDirectory(gone=set(BY_ROLE))
    turn = in_thread(1)
    request = make_request(make_call(place=turn.place), approvers=BY_ROLE)
    office.runner.script(turn, Waiting(make_batch(request, turn=turn.id, place=turn.place)))
    await office.take(turn)
    await office.until(lambda: office.front.notices)
    assert BY_ROLE[0].replace(":", " ") in office.front.notices[0]
    assert "nobody can decide" in office.front.notices[0]


async def test_a_card_that_is_deleted_before_it_was_noted_is_cancelled_all_the_same(desk: Desk) -> None:
    batch = make_batch()
    future = await opened(desk, batch)
    assert await desk.card_deleted("77", "the card was deleted") is None
    for other in range(EARLY - 1):  # other messages that are deleted meanwhile
        await desk.card_deleted(f"other {other}", "the card was deleted")
    noted = await desk.card_posted(batch.id, "77")
    assert noted
    assert noted.requests[0].state is RequestState.CANCELLED
    assert future.result().settled
    assert await desk.card_deleted("77", "again") is None


async def test_deleted_messages_are_not_kept_in_mind_for_ever(desk: Desk) -> None:
    batch = make_batch()
    await opened(desk, batch)
    for number in range(EARLY + 1):
        await desk.card_deleted(str(number), "the card was deleted")
    assert await desk.card_posted(batch.id, "0") is None, "it is still open"
    assert (noted := await desk.find(batch.id))
    assert (noted.card_message, noted.settled) == ("0", False)
