"""A role or person deleted while its card is open can approve nothing, and requests without approvers are settled."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.answer_forms import inquire
from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import AlreadySettled
from signoff.approvals.model import DIRECT, Batch, Choice, Place, RequestKind, RequestState
from signoff.store import Store
from tests.conftest import ADA, MAX, OLGA, PLACE, HandClock, make_batch, make_request
from tests.rigs.desk import opened
from tests.rigs.people import BY_ROLE, HandDirectory, kinds

OTHER = ("role:800000000000000009",)


async def stored(desk: Desk, batch: Batch) -> Batch:
    found = await desk.store.run(lambda tx: tx.batch(batch.id))
    assert found is not None
    return found


async def test_what_nobody_can_decide_any_more_is_rejected_and_the_run_goes_on(
    desk: Desk, directory: HandDirectory, clock: HandClock
) -> None:
    events: list[dict[str, Any]] = []
    desk.subscribers.append(events.append)
    batch = make_batch(make_request(approvers=BY_ROLE))
    future = await opened(desk, batch)
    directory.gone = set(BY_ROLE)
    clock.at += 60
    (changed,) = await desk.recheck_approvers(BY_ROLE[0])
    request = (await asyncio.wait_for(future, 1)).requests[0]
    assert (request.state, request.missing) == (RequestState.REJECTED, BY_ROLE)
    assert request.settlement is not None
    assert (request.settlement.by, request.settlement.at) == (None, clock.at)
    assert request.settlement.note == "nobody may decide this request"
    assert await stored(desk, batch) == changed == future.result()
    assert await kinds(desk) == ["asked", "approver_gone", "rejected"]
    assert [event["state"] for event in events] == ["rejected"]
    with pytest.raises(AlreadySettled):
        await desk.decide(Click(batch.id, Choice.ACCEPT, OLGA, PLACE.channel))


async def test_while_others_may_decide_it_stays_open_and_is_told_once(desk: Desk, directory: HandDirectory) -> None:
    batch = make_batch(make_request(approvers=(*BY_ROLE, "manage_server")))
    future = await opened(desk, batch)
    directory.gone = set(BY_ROLE)
    (changed,) = await desk.recheck_approvers()
    assert changed.requests[0].missing == BY_ROLE
    assert await stored(desk, batch) == changed
    assert await desk.recheck_approvers() == []
    assert await kinds(desk) == ["asked", "approver_gone"]
    assert not future.done()
    await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert future.done()


async def test_only_those_who_are_named_are_looked_for(desk: Desk, directory: HandDirectory) -> None:
    one = make_batch(make_request(approvers=(f"{BY_ROLE[0]}&manage_server",)))
    other = make_batch(make_request(approvers=OTHER))
    for batch in (one, other):
        await opened(desk, batch)
    directory.gone = {*BY_ROLE, *OTHER}
    changed = await desk.recheck_approvers(BY_ROLE[0])
    assert [batch.id for batch in changed] == [one.id]
    assert changed[0].settled
    assert changed[0].requests[0].missing == BY_ROLE
    assert directory.looked_for == [*BY_ROLE]
    assert not (await stored(desk, other)).settled


async def test_each_call_of_a_card_is_judged_by_itself(desk: Desk, directory: HandDirectory) -> None:
    done, lost, left = make_request(), make_request(approvers=BY_ROLE), make_request(approvers=OTHER)
    batch = make_batch(done, lost, left)
    await opened(desk, batch)
    await desk.decide(Click(done.id, Choice.ACCEPT, ADA, PLACE.channel))
    directory.gone = set(BY_ROLE)
    (changed,) = await desk.recheck_approvers()
    states = [RequestState.APPROVED, RequestState.REJECTED, RequestState.PENDING]
    assert [r.state for r in changed.requests] == states
    assert [r.missing for r in changed.requests] == [(), BY_ROLE, ()]


async def test_a_held_call_ends_with_the_question_that_nobody_may_decide(desk: Desk, directory: HandDirectory) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE), make_request(held=True))
    future = await opened(desk, batch)
    directory.gone = set(BY_ROLE)
    await desk.recheck_approvers()
    assert [r.state for r in future.result().requests] == [RequestState.REJECTED, RequestState.REJECTED]


@pytest.mark.parametrize("modes", [Modes(), Modes(on_no_approver="approve")])
@pytest.mark.parametrize("kind", RequestKind)
async def test_nobody_approves_an_open_card_by_deleting_a_role(
    desk: Desk, directory: HandDirectory, kind: RequestKind, modes: Modes
) -> None:
    desk.modes = modes
    inquiry = inquire("Really?", {"type": "boolean"}) if kind is RequestKind.ANSWER else None
    future = await opened(desk, make_batch(make_request(approvers=BY_ROLE, kind=kind, inquiry=inquiry)))
    directory.gone = set(BY_ROLE)
    await desk.recheck_approvers()
    assert future.result().requests[0].state is RequestState.REJECTED


async def test_what_cannot_be_found_out_changes_nothing(desk: Desk, directory: HandDirectory) -> None:
    batch = make_batch(make_request(approvers=BY_ROLE))
    await opened(desk, batch)
    directory.gone, directory.fails = set(BY_ROLE), True
    assert await desk.recheck_approvers() == []
    assert await stored(desk, batch) == batch


async def test_nobody_is_looked_for_in_a_direct_conversation(desk: Desk, directory: HandDirectory) -> None:
    place, asker = Place(DIRECT, "1", "1"), replace(MAX, server=DIRECT)
    await opened(desk, make_batch(make_request(approvers=("asker",)), place=place, asker=asker))
    assert await desk.recheck_approvers() == []
    assert directory.looked_for == []


async def test_a_card_of_an_earlier_process_wakes_its_run(
    desk: Desk, store: Store, clock: HandClock, directory: HandDirectory
) -> None:
    """The role was deleted while the bot was not running."""
    batch = make_batch(make_request(approvers=BY_ROLE))
    await opened(desk, batch)
    later = Desk(store, clock, directory=directory)
    directory.gone = set(BY_ROLE)
    await later.recheck_approvers()
    assert later.unattended.get_nowait().id == batch.id
    assert later.unattended.empty()
