"""After a time without a decision further people may decide, once, on the record, and never against another rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.approvers import can_be_met
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.approvals.errors import NotAllowed, Refused
from signoff.approvals.escalation import narrowed, with_escalation
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import (
    DIRECT,
    ApprovalRequest,
    Batch,
    Choice,
    Escalation,
    Place,
    Remember,
    RequestState,
    Ruling,
    Terms,
    Verdict,
)
from signoff.approvals.policy import Context, Policy, Rule, together
from signoff.approvals.policy import Layer as Rules
from tests.conftest import ADA, MAX, OLGA, PLACE, HandClock, make_batch, make_call, make_request
from tests.rigs.desk import opened
from tests.rigs.people import BY_ROLE, GRACE, HandDirectory, HandReviser, kinds

TO_ADA = (f"user:{ADA.id}",)
ROLE_A, ROLE_B, ROLE_C = ("role:1",), ("role:2",), ("role:3",)


def escalating(**fields: Any) -> ApprovalRequest:
    return make_request(approvers=BY_ROLE, escalate_to=TO_ADA, escalate_at=1_000_060.0, **fields)


async def stored(desk: Desk, batch: Batch) -> Batch:
    found = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert found is not None
    return found


def accept(batch: Batch, **fields: Any) -> Click:
    return Click(batch.id, Choice.ACCEPT, fields.pop("actor", ADA), PLACE.channel, **fields)


async def test_before_the_time_has_come_the_others_may_not_decide(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(escalating())
    await opened(desk, batch)
    clock.at += 59
    assert await desk.escalate_due() == []
    with pytest.raises(NotAllowed):
        await desk.decide(accept(batch))


async def test_afterwards_they_may_and_so_may_the_approvers(desk: Desk, clock: HandClock) -> None:
    first, second = make_batch(escalating()), make_batch(escalating())
    for batch in (first, second):
        await opened(desk, batch)
    clock.at += 60
    assert {batch.id for batch in await desk.escalate_due()} == {first.id, second.id}
    outcome = await desk.decide(accept(first))
    assert outcome.batch.requests[0].state is RequestState.APPROVED
    assert (await desk.decide(accept(second, actor=OLGA))).batch.settled


async def test_it_happens_once_and_is_on_the_record(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(escalating())
    await opened(desk, batch)
    clock.at += 60
    (escalated,) = await desk.escalate_due()
    assert escalated == await stored(desk, batch)
    assert (escalated.untold, escalated.requests[0].escalated) == (True, True)
    assert await desk.escalate_due() == []
    assert await kinds(desk) == ["asked", "escalated"]
    (row, *_) = await desk.store.run(lambda tx: tx.audit_page(PLACE.server, limit=1))
    assert (row.details["to"], row.actor) == (TO_ADA[0], "signoff")


async def test_the_sweeper_wakes_for_it(desk: Desk, clock: HandClock) -> None:
    await opened(desk, make_batch(escalating()))
    assert await desk.store.run(lambda tx: tx.next_deadline()) == clock.at + 60
    clock.at += 60
    await desk.escalate_due()
    assert await desk.store.run(lambda tx: tx.next_deadline()) == clock.at + 240


async def test_what_is_settled_is_not_escalated(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(escalating())
    await opened(desk, batch)
    await desk.decide(accept(batch, actor=OLGA))
    clock.at += 60
    assert await desk.escalate_due() == []


async def test_quorum_and_four_eyes_still_hold(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(escalating(quorum=2, four_eyes=True), asker=ADA)
    other = make_batch(escalating(quorum=2))
    for one in (batch, other):
        await opened(desk, one)
    clock.at += 60
    await desk.escalate_due()
    with pytest.raises(NotAllowed, match="four eyes"):
        await desk.decide(accept(batch))
    assert not (await desk.decide(accept(other))).batch.settled
    assert (await desk.decide(accept(other, actor=GRACE))).batch.settled


async def test_a_vote_of_somebody_named_by_the_escalation_counts_at_the_last_vote(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(escalating(quorum=2))
    await opened(desk, batch)
    clock.at += 60
    await desk.escalate_due()
    await desk.decide(accept(batch))
    assert [vote.by.id for vote in (await desk.decide(accept(batch, actor=OLGA))).batch.requests[0].votes] == [
        ADA.id,
        OLGA.id,
    ]


async def test_their_decision_cannot_be_remembered_and_the_approvers_can(desk: Desk, clock: HandClock) -> None:
    desk.grants = GrantTerms(Remember.ALWAYS)
    batch = make_batch(escalating())
    await opened(desk, batch)
    clock.at += 60
    await desk.escalate_due()
    with pytest.raises(Refused, match="because it was escalated"):
        await desk.decide(accept(batch, remember=Remember.SESSION))
    assert not (await stored(desk, batch)).settled
    assert (await desk.decide(accept(batch, actor=OLGA, remember=Remember.SESSION))).batch.settled


async def test_a_request_that_only_the_escalation_can_meet_waits_for_it(
    desk: Desk, directory: HandDirectory, clock: HandClock
) -> None:
    directory.gone = set(BY_ROLE)
    batch = await desk.look_for_approvers(make_batch(escalating()))
    assert can_be_met(batch.requests[0], batch)
    await opened(desk, batch)
    assert not (await stored(desk, batch)).settled
    directory.gone |= set(TO_ADA)
    (changed,) = await desk.recheck_approvers()
    assert changed.requests[0].state is RequestState.REJECTED


async def test_an_edit_keeps_the_escalation_to_the_same_people(desk: Desk, clock: HandClock) -> None:
    ruling = Ruling(Verdict.ASK, "why", approvers=BY_ROLE, escalate=Escalation(60, TO_ADA))
    editor = Editor(desk, HandReviser(ruling), Terms())
    batch = make_batch(escalating())
    await opened(desk, batch)
    clock.at += 60
    await desk.escalate_due()
    request = batch.requests[0]
    edited = await editor.edit(request.id, {"path": "b"}, request.call.digest, ADA, PLACE.channel, None)
    assert edited.batch.requests[0].escalated
    assert (await stored(desk, batch)).requests[0].escalate_to == TO_ADA


async def test_an_edit_to_a_call_without_escalation_ends_it(desk: Desk, clock: HandClock) -> None:
    editor = Editor(desk, HandReviser(Ruling(Verdict.ASK, "why", approvers=BY_ROLE)), Terms())
    batch = make_batch(escalating())
    await opened(desk, batch)
    clock.at += 60
    await desk.escalate_due()
    request = batch.requests[0]
    edited = await editor.edit(request.id, {"path": "b"}, request.call.digest, ADA, PLACE.channel, None)
    assert edited.batch.requests[0].current_approvers == BY_ROLE
    with pytest.raises(NotAllowed):
        await desk.decide(accept(batch, revision=1))


@pytest.mark.parametrize("seconds", [300.0, 301.0])
def test_an_escalation_at_or_after_the_deadline_is_left_out(seconds: float) -> None:
    escalation = Escalation(seconds, TO_ADA)
    request = with_escalation(make_request(), escalation, PLACE, 1_000_000.0, 1_000_300.0)
    assert (request.escalate_to, request.escalate_at) == ((), None)


def test_there_is_none_in_direct_messages_and_none_for_held_calls() -> None:
    direct = Place(DIRECT, "1", "1")
    escalation = Escalation(1.0, TO_ADA)
    assert with_escalation(make_request(), escalation, direct, 0.0, 9.0).escalate_to == ()
    assert with_escalation(make_request(held=True), escalation, PLACE, 0.0, 9.0).escalate_to == ()
    assert with_escalation(make_request(), escalation, PLACE, 0.0, 9.0).escalate_at == 1.0


def ruling(approvers: tuple[str, ...] | None = None, escalate: Escalation | None = None, **fields: Any) -> Ruling:
    return Ruling(Verdict.ASK, "why", approvers=approvers, escalate=escalate, **fields)


def test_an_escalation_cannot_bypass_another_rule_that_names_approvers() -> None:
    escalates = ruling(ROLE_A, Escalation(60, ROLE_B))
    assert together([escalates, ruling(ROLE_C)]).escalate == Escalation(60, ("role:2&role:3",))
    assert together([escalates, ruling(ROLE_A)]).escalate is None
    assert together([ruling(None, Escalation(60, ROLE_B)), ruling(ROLE_C)]).escalate is None


def test_of_several_escalations_the_latest_time_counts() -> None:
    both_escalate = together([ruling(ROLE_A, Escalation(60, ROLE_B)), ruling(ROLE_A, Escalation(90, ROLE_B))])
    assert both_escalate.escalate == Escalation(90, ROLE_B)
    assert together([ruling(None, Escalation(60, ROLE_B)), ruling()]).escalate == Escalation(60, ROLE_B)
    assert together([ruling(ROLE_A), ruling(ROLE_B)]).escalate is None


async def test_the_operators_default_does_not_widen_the_approvers_of_a_server_rule() -> None:
    default = Escalation(60, ROLE_B)
    server = Rules((Rule("*", Verdict.ASK, approvers=ROLE_C),))
    call, context = make_call(), Context(PLACE, MAX)
    for policy, declared in ((Policy(escalate=default), Verdict.ASK), (Policy(escalate=default), Verdict.ALLOW)):
        decided = await policy.decide(call, declared, context, server)
        assert Terms(escalate=default).fill(decided).escalate is None
    named = await Policy(approvers=ROLE_A, escalate=default).decide(call, Verdict.ASK, context, server)
    assert Terms(escalate=default).fill(named).escalate == Escalation(60, ("role:2&role:3",))
    alone = await Policy(escalate=default).decide(call, Verdict.ASK, context)
    assert Terms(escalate=default).fill(alone).escalate == default


def test_todays_rules_narrow_an_escalation_and_never_widen_it() -> None:
    old = make_request(approvers=ROLE_A, escalate_to=ROLE_B)
    assert narrowed(old, old, (*ROLE_A, *ROLE_B)) == old
    assert narrowed(old, old, ROLE_A).current_approvers == ROLE_A
    assert narrowed(old, old, (*ROLE_A, *ROLE_B, *ROLE_C)) == replace(old, escalate_to=(ROLE_B[0],))
    plain = make_request(approvers=ROLE_A)
    assert narrowed(plain, plain, (*ROLE_A, *ROLE_B)) == plain
