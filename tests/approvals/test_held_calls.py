"""Held calls cost nobody a decision: they are settled together with the questions of their batch."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.automatic import NO_APPROVAL_NEEDED, NOTHING_APPROVED
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.approvals.errors import AlreadySettled, AlreadyVoted, NotAllowed, Refused, UnknownRequest
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import ApprovalRequest, Batch, Choice, Remember, RequestState, Settlement
from signoff.store import Store
from tests.conftest import ADA, MAX, OLGA, PLACE, HandClock, make_batch, make_call, make_request
from tests.rigs.desk import opened
from tests.rigs.people import GRACE, HandDirectory, HandReviser

APPROVED, REJECTED, EXPIRED = RequestState.APPROVED, RequestState.REJECTED, RequestState.EXPIRED
CANCELLED, PENDING = RequestState.CANCELLED, RequestState.PENDING


def question(**fields: Any) -> ApprovalRequest:
    return make_request(make_call("delete_file"), **fields)


def held(tool: str = "roll_dice", **fields: Any) -> ApprovalRequest:
    return make_request(make_call(tool), held=True, **fields)


def click(target: str, choice: Choice = Choice.ACCEPT, **fields: Any) -> Click:
    return Click(target, choice, fields.pop("by", ADA), PLACE.channel, **fields)


async def stored(desk: Desk, batch: Batch) -> Batch:
    now = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert now is not None
    return now


def states(batch: Batch) -> list[RequestState]:
    return [r.state for r in batch.requests]


async def test_one_accept_runs_the_question_and_its_held_calls(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(held(), question(), held("current_time"))
    future = await opened(desk, batch)
    outcome = await desk.decide(click(batch.id, remember=Remember.NONE))
    settled = future.result()
    assert states(settled) == [APPROVED] * 3
    assert [r.call.tool for r in settled.requests] == ["delete_file", "roll_dice", "current_time"]
    for request in settled.held:
        assert request.settlement == Settlement(Choice.ACCEPT, None, clock.now(), NO_APPROVAL_NEEDED)
        assert request.votes == ()
    assert {r.id for r in outcome.settled} == {r.id for r in batch.requests}


async def test_the_record_tells_how_a_held_call_was_settled(desk: Desk) -> None:
    batch = make_batch(question(), held())
    await opened(desk, batch)
    await desk.decide(click(batch.requests[0].id))
    rows = await desk.store.run(lambda tx: tx.audit_page(PLACE.server, subject=batch.requests[1].id))
    assert [(row.kind, row.actor) for row in rows] == [("approved", "signoff"), ("asked", MAX.id)]
    assert rows[0].details["note"] == NO_APPROVAL_NEEDED


async def test_held_calls_wait_for_the_last_question(desk: Desk) -> None:
    first, second, other = question(), question(quorum=2), held()
    batch = make_batch(first, second, other)
    await opened(desk, batch)
    await desk.decide(click(first.id))
    assert states(await stored(desk, batch)) == [APPROVED, PENDING, PENDING]
    await desk.decide(click(second.id))
    assert states(await stored(desk, batch)) == [APPROVED, PENDING, PENDING], "one of two has accepted"
    await desk.decide(click(second.id, Choice.REJECT))
    assert states(await stored(desk, batch)) == [APPROVED, REJECTED, APPROVED]


async def test_nothing_held_runs_where_every_question_was_rejected(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(question(), question(), held())
    await opened(desk, batch)
    await desk.decide(click(batch.id, Choice.REJECT, note="not today"))
    last = (await stored(desk, batch)).requests[-1]
    assert last.state is REJECTED
    assert last.settlement == Settlement(Choice.REJECT, None, clock.now(), NOTHING_APPROVED)


async def test_held_calls_expire_and_are_cancelled_with_the_questions(desk: Desk, clock: HandClock) -> None:
    late, lost = make_batch(question(), held()), make_batch(question(), held())
    for batch in (late, lost):
        await opened(desk, batch)
    await desk.cancel(lost.id, "the card was deleted")
    clock.at = late.deadline
    await desk.expire_due()
    assert states(await stored(desk, late)) == [EXPIRED] * 2
    assert states(await stored(desk, lost)) == [CANCELLED] * 2
    for batch in (late, lost):
        end = (await stored(desk, batch)).requests[1].settlement
        assert end is not None
        assert (end.choice, end.by, end.note) == (None, None, NOTHING_APPROVED)


async def test_a_deadline_lets_the_held_calls_of_an_accepted_question_run(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(question(), question(), held())
    await opened(desk, batch)
    await desk.decide(click(batch.requests[0].id))
    clock.at = batch.deadline
    await desk.expire_due()
    assert states(await stored(desk, batch)) == [APPROVED, EXPIRED, APPROVED]


async def test_an_explicit_reject_of_a_held_call_stands(desk: Desk) -> None:
    batch = make_batch(question(), held(), held())
    await opened(desk, batch)
    await desk.decide(click(batch.requests[1].id, Choice.REJECT, remember=Remember.NONE))
    await desk.decide(click(batch.id))
    after = await stored(desk, batch)
    assert states(after) == [APPROVED, REJECTED, APPROVED]
    end = after.requests[1].settlement
    assert end is not None
    assert end.by == ADA


async def test_an_approver_of_a_question_may_reject_a_held_call_and_others_may_not(desk: Desk) -> None:
    batch = make_batch(question(approvers=(f"user:{OLGA.id}",)), held(), held())
    await opened(desk, batch)
    await desk.decide(click(batch.requests[1].id, Choice.REJECT, by=OLGA))
    with pytest.raises(NotAllowed):
        await desk.decide(click(batch.requests[2].id, Choice.REJECT, by=MAX))
    with pytest.raises(NotAllowed):
        await desk.decide(click(batch.requests[2].id, Choice.REJECT, by=replace(OLGA, is_bot=True)))


async def test_accept_all_is_no_right_over_held_calls(desk: Desk) -> None:
    """Somebody who is an approver only of a held call decides nothing with the card's own buttons."""
    batch = make_batch(question(approvers=(f"user:{OLGA.id}",)), held())
    await opened(desk, batch)
    with pytest.raises(NotAllowed):
        await desk.decide(click(batch.id))
    assert states(await stored(desk, batch)) == [PENDING] * 2


async def test_an_old_button_that_accepts_a_held_call_settles_it_for_nobody(store: Store, clock: HandClock) -> None:
    """Cards of an earlier version gave each held call its own buttons."""
    desk = Desk(store, clock, grants=GrantTerms(Remember.ALWAYS), directory=HandDirectory())
    batch = make_batch(question(), held(quorum=2, four_eyes=True))
    await opened(desk, batch)
    await desk.decide(click(batch.requests[1].id, remember=Remember.ALWAYS))
    after = await stored(desk, batch)
    assert states(after) == [PENDING, APPROVED]
    assert after.requests[1].settlement == Settlement(Choice.ACCEPT, None, clock.now(), NO_APPROVAL_NEEDED)
    assert await desk.standing_grants(PLACE.server) == []
    await desk.decide(click(batch.requests[0].id, Choice.REJECT))
    assert states(await stored(desk, batch)) == [REJECTED, APPROVED]


async def test_a_rejected_held_call_is_never_remembered(store: Store, clock: HandClock) -> None:
    desk = Desk(store, clock, grants=GrantTerms(Remember.ALWAYS))
    batch = make_batch(question(), held())
    await opened(desk, batch)
    await desk.decide(click(batch.requests[1].id, Choice.REJECT, remember=Remember.ALWAYS))
    end = (await stored(desk, batch)).requests[1].settlement
    assert end is not None
    assert end.remember is Remember.NONE
    assert await desk.standing_grants(PLACE.server) == []


async def left_by_an_older_version(desk: Desk, *requests: ApprovalRequest, **fields: Any) -> Batch:
    """Store a batch as an older version did: not in the desk's order, and with its held calls unsettled."""
    batch = make_batch(*requests, **fields)
    await desk.store.run(lambda tx: tx.insert_batch(batch))
    return batch


async def test_an_old_batch_with_held_calls_left_open_is_settled_by_a_click(desk: Desk, clock: HandClock) -> None:
    end = Settlement(Choice.ACCEPT, ADA, clock.now())
    batch = await left_by_an_older_version(desk, replace(question(), state=APPROVED, settlement=end), held())
    with pytest.raises(AlreadySettled):
        await desk.decide(click(batch.id))
    assert states(await stored(desk, batch)) == [APPROVED] * 2


async def test_an_old_accept_of_a_page_covers_only_what_that_page_showed(desk: Desk) -> None:
    """The old page had four calls, some of them held; the fifth call was on the next page."""
    batch = await left_by_an_older_version(desk, question(), held(), held(), held(), question())
    await desk.decide(click(batch.id, page=0))
    assert states(await stored(desk, batch)) == [APPROVED, PENDING, PENDING, PENDING, PENDING]
    with pytest.raises(UnknownRequest):
        await desk.decide(click(batch.id, page=1))


async def test_a_held_call_cannot_be_edited(desk: Desk) -> None:
    batch = make_batch(question(), held())
    await opened(desk, batch)
    request = batch.requests[1]
    with pytest.raises(Refused, match="needs no approval"):
        await Editor(desk, HandReviser()).edit(request.id, {"n": 1}, request.call.digest, ADA, PLACE.channel, None)


MOVES = st.sampled_from(["accept", "reject", "accept all", "reject all", "deadline", "cancel", "other accept"])


@given(
    quorums=st.lists(st.integers(1, 2), min_size=1, max_size=3),
    count=st.integers(1, 3),
    moves=st.lists(st.tuples(MOVES, st.integers(0, 5)), max_size=12),
)
async def test_held_calls_run_if_and_only_if_a_question_was_accepted(
    quorums: list[int], count: int, moves: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with await Store.open(f"sqlite:///{folder}/signoff.db") as store:
            clock = HandClock()
            desk = Desk(store, clock, directory=HandDirectory())
            approvers = ("manage_server", f"user:{GRACE.id}")
            batch = make_batch(
                *(held() for _ in range(count)), *(question(quorum=q, approvers=approvers) for q in quorums)
            )
            future = await opened(desk, batch)
            for move, number in [*moves, ("deadline", 0)]:
                target = batch.requests[number % len(batch.requests)]
                await play(desk, clock, batch, target, move)
                check(await stored(desk, batch))
            assert future.done()


async def play(desk: Desk, clock: HandClock, batch: Batch, target: ApprovalRequest, move: str) -> None:
    if move == "deadline":
        clock.at = batch.deadline
        await desk.expire_due()
    elif move == "cancel":
        await desk.cancel(batch.id, "the card was deleted")
    elif not (target.held and move != "reject" and "all" not in move):
        choice = Choice.REJECT if "reject" in move else Choice.ACCEPT
        by = GRACE if move == "other accept" else ADA
        try:
            await desk.decide(click(batch.id if "all" in move else target.id, choice, by=by))
        except (AlreadySettled, AlreadyVoted, UnknownRequest):
            pass


def check(batch: Batch) -> None:
    questions_open = bool(batch.open_questions)
    accepted = any(q.state is APPROVED for q in batch.questions)
    for request in batch.held:
        by_person = bool(request.settlement and request.settlement.by)
        assert not (by_person and request.state is not REJECTED), "nobody approves a held call"
        assert (request.state is APPROVED) == (not questions_open and accepted and not by_person)
        assert request.votes == ()
        assert (request.state is PENDING) == (questions_open and not by_person)
