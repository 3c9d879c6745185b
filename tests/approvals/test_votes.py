"""Quorum, four eyes, and which votes count at the click that completes the quorum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.automatic import NOTHING_APPROVED, Modes
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import AlreadySettled, AlreadyVoted, NotAllowed
from signoff.approvals.model import Actor, Batch, Choice, Outcome, RequestKind, RequestState, Settlement
from signoff.store import Store
from tests.conftest import ADA, MAX, OLGA, PLACE, HandClock, make_batch, make_request
from tests.rigs.desk import opened
from tests.rigs.people import BY_ROLE, GRACE, ROLE, HandDirectory, kinds


async def press(desk: Desk, batch: Batch, actor: Actor, choice: Choice = Choice.ACCEPT) -> Outcome:
    return await desk.decide(Click(batch.id, choice, actor, PLACE.channel))


async def test_two_have_to_accept_and_the_card_knows_who_has(desk: Desk) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    future = await opened(desk, batch)
    first = await press(desk, batch, OLGA)
    assert not first.batch.settled
    assert [vote.by.name for vote in first.batch.requests[0].votes] == ["Olga"]
    assert first.voted
    assert not future.done()
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    assert stored.requests[0].votes == first.batch.requests[0].votes
    second = await press(desk, batch, GRACE)
    assert second.batch.requests[0].state is RequestState.APPROVED
    assert [vote.by.name for vote in second.batch.requests[0].votes] == ["Olga", "Grace"]
    assert future.done()
    assert await kinds(desk) == ["asked", "vote", "approved"]


async def test_one_person_is_one_vote(desk: Desk) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    await opened(desk, batch)
    await press(desk, batch, OLGA)
    with pytest.raises(AlreadyVoted) as caught:
        await press(desk, batch, OLGA)
    assert len(caught.value.batch.requests[0].votes) == 1


async def test_the_first_reject_settles_whatever_the_quorum(desk: Desk) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=3))
    await opened(desk, batch)
    await press(desk, batch, OLGA)
    outcome = await press(desk, batch, GRACE, Choice.REJECT)
    assert outcome.batch.requests[0].state is RequestState.REJECTED


async def test_somebody_who_voted_may_still_reject(desk: Desk) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    await opened(desk, batch)
    await press(desk, batch, OLGA)
    assert (await press(desk, batch, OLGA, Choice.REJECT)).batch.requests[0].state is RequestState.REJECTED


@pytest.mark.parametrize(
    "now", [replace(OLGA, roles=frozenset()), None, replace(OLGA, is_bot=True)], ids=["role lost", "left", "bot"]
)
async def test_a_vote_of_somebody_who_may_no_longer_decide_is_void(
    desk: Desk, directory: HandDirectory, now: Actor | None
) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    await opened(desk, batch)
    await press(desk, batch, OLGA)
    directory.people[OLGA.id] = now
    outcome = await press(desk, batch, GRACE)
    assert not outcome.batch.settled
    assert [vote.by.name for vote in outcome.batch.requests[0].votes] == ["Grace"]
    assert [vote.by.name for vote in outcome.batch.requests[0].void] == ["Olga"]
    assert await desk.store.run(lambda tx: tx.batch(batch.id)) == outcome.batch
    assert "vote_void" in await kinds(desk)
    third = replace(GRACE, id="100000000000000005", name="Edsger")
    directory.people[third.id] = third
    assert (await press(desk, batch, third)).batch.settled


async def test_a_void_vote_counts_again_once_its_voter_may_decide_and_says_so(
    desk: Desk, directory: HandDirectory
) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    await opened(desk, batch)
    await press(desk, batch, OLGA)
    directory.people[OLGA.id] = replace(OLGA, roles=frozenset())
    await press(desk, batch, GRACE)
    directory.people[OLGA.id] = OLGA
    (request,) = (await press(desk, batch, OLGA)).batch.requests
    assert request.state is RequestState.APPROVED
    assert [vote.by.name for vote in request.votes] == ["Grace", "Olga"]
    assert request.void == ()


async def test_voters_are_looked_up_only_by_the_click_that_would_complete(desk: Desk, directory: HandDirectory) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=3))
    await opened(desk, batch)
    await press(desk, batch, OLGA)
    await press(desk, batch, GRACE)
    assert directory.asked == []
    third = replace(GRACE, id="100000000000000005", name="Edsger")
    assert (await press(desk, batch, third)).batch.settled
    assert sorted(directory.asked) == sorted([OLGA.id, GRACE.id])


async def test_nothing_is_decided_if_voters_cannot_be_looked_up(desk: Desk, directory: HandDirectory) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    await opened(desk, batch)
    await press(desk, batch, OLGA)
    directory.fails = True
    with pytest.raises(ConnectionError):
        await press(desk, batch, GRACE)
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    assert [vote.by.name for vote in stored.requests[0].votes] == ["Olga"]
    directory.fails = False
    assert (await press(desk, batch, GRACE)).batch.settled


async def test_without_a_directory_earlier_votes_do_not_count(store: Store, clock: HandClock) -> None:
    desk = Desk(store, clock)
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    await opened(desk, batch)
    await press(desk, batch, OLGA)
    assert not (await press(desk, batch, GRACE)).batch.settled


@pytest.mark.parametrize("choice", [Choice.ACCEPT, Choice.REJECT])
async def test_four_eyes_keep_the_asker_from_deciding(desk: Desk, choice: Choice) -> None:
    """Row 13: MAX is the asker and also named as an approver."""
    batch = make_batch(make_request(approvers=("asker", "manage_server"), four_eyes=True), asker=MAX)
    await opened(desk, batch)
    with pytest.raises(NotAllowed) as caught:
        await press(desk, batch, MAX, choice)
    assert "four eyes" in caught.value.why
    assert (await press(desk, batch, ADA)).batch.settled


async def test_the_askers_earlier_vote_does_not_count_once_an_edit_brought_four_eyes(desk: Desk) -> None:
    batch = make_batch(make_request(approvers=("asker", *BY_ROLE), quorum=2), asker=MAX)
    await opened(desk, batch)
    await press(desk, batch, MAX)
    request = replace(batch.requests[0], four_eyes=True, votes=(await _votes(desk, batch)))
    await desk.store.run(lambda tx: tx.rewrite(request))
    assert not (await press(desk, batch, OLGA)).batch.settled


async def _votes(desk: Desk, batch: Batch):  # type: ignore[no-untyped-def]
    stored = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    return stored.requests[0].votes


async def test_a_bot_never_decides_even_if_it_is_named(desk: Desk) -> None:
    robot = replace(OLGA, id="100000000000000077", is_bot=True)
    batch = make_batch(make_request(approvers=(f"user:{robot.id}", *BY_ROLE)))
    await opened(desk, batch)
    with pytest.raises(NotAllowed):
        await press(desk, batch, robot)


async def test_running_it_again_takes_the_same_quorum(desk: Desk) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2, kind=RequestKind.MAY_HAVE_RUN))
    await opened(desk, batch)
    assert not (await press(desk, batch, OLGA, Choice.RERUN)).batch.settled
    assert (await press(desk, batch, GRACE, Choice.RERUN)).batch.settled


async def test_specifications_joined_by_and_name_only_those_whom_all_name(desk: Desk) -> None:
    batch = make_batch(make_request(approvers=(f"role:{ROLE}&manage_server",)))
    await opened(desk, batch)
    for actor in (OLGA, ADA):
        with pytest.raises(NotAllowed):
            await press(desk, batch, actor)
    assert (await press(desk, batch, replace(OLGA, manages_server=True))).batch.settled


async def test_an_approver_that_is_gone_means_nobody(desk: Desk, directory: HandDirectory) -> None:
    """Row 20: a deleted role means nobody, never everybody, and the request is rejected at once."""
    directory.gone = set(BY_ROLE)
    batch = await desk.look_for_approvers(make_batch(make_request(approvers=BY_ROLE)))
    assert batch.requests[0].missing == BY_ROLE
    future = await opened(desk, batch)
    request = future.result().requests[0]
    assert request.state is RequestState.REJECTED
    assert request.settlement is not None
    assert request.settlement.by is None
    with pytest.raises(AlreadySettled):
        await press(desk, batch, ADA)


async def test_one_of_two_approvers_gone_leaves_the_other(desk: Desk, directory: HandDirectory) -> None:
    directory.gone = set(BY_ROLE)
    batch = await desk.look_for_approvers(make_batch(make_request(approvers=(*BY_ROLE, "manage_server"))))
    await opened(desk, batch)
    assert (await press(desk, batch, ADA)).batch.settled


async def test_two_hundred_accepts_of_two_people_approve_once(desk: Desk) -> None:
    import asyncio

    batch = make_batch(make_request(approvers=BY_ROLE, quorum=2))
    await opened(desk, batch)
    results = await asyncio.gather(
        *(press(desk, batch, OLGA if n % 2 else GRACE) for n in range(200)), return_exceptions=True
    )
    assert sum(isinstance(r, Outcome) and bool(r.settled) for r in results) == 1
    assert sum(isinstance(r, Outcome) and bool(r.voted) for r in results) == 1
    assert all(isinstance(r, Outcome | AlreadyVoted | AlreadySettled) for r in results)


@pytest.mark.parametrize(
    "fields",
    [
        {"approvers": ("asker",), "four_eyes": True},
        {"approvers": (f"user:{ADA.id}",), "quorum": 2},
        {"approvers": ("user:1&user:2",)},
        {"approvers": ("asker", f"user:{MAX.id}"), "quorum": 2},
    ],
    ids=str,
)
async def test_what_nobody_could_ever_settle_is_rejected_at_once(desk: Desk, fields: dict[str, Any]) -> None:
    future = await opened(desk, make_batch(make_request(**fields), asker=MAX))
    assert future.result().requests[0].state is RequestState.REJECTED


@pytest.mark.parametrize(
    "fields",
    [
        {"approvers": (f"user:{ADA.id}", "asker"), "quorum": 2},
        {"approvers": (f"user:{ADA.id}&manage_server",)},
        {"approvers": BY_ROLE, "quorum": 9},
    ],
    ids=str,
)
async def test_what_could_be_settled_waits(desk: Desk, fields: dict[str, Any]) -> None:
    assert not (await opened(desk, make_batch(make_request(**fields), asker=MAX))).done()


async def test_auto_deny_leaves_what_needs_no_approval_alone(store: Store, clock: HandClock) -> None:
    desk = Desk(store, clock, Modes("auto_deny"))
    future = await opened(desk, make_batch(make_request(held=True)))
    assert [r.state for r in future.result().requests] == [RequestState.APPROVED]


async def test_auto_deny_of_every_question_ends_the_held_calls_without_a_person(store: Store, clock: HandClock) -> None:
    desk = Desk(store, clock, Modes("auto_deny"))
    future = await opened(desk, make_batch(make_request(), make_request(held=True)))
    question, held = future.result().requests
    assert (question.state, held.state) == (RequestState.REJECTED, RequestState.REJECTED)
    assert held.settlement == Settlement(Choice.REJECT, None, clock.now(), NOTHING_APPROVED)
