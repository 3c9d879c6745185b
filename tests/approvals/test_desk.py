"""The desk settles a request once, no matter who decides and how many decide at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import AlreadySettled, NotAllowed, UnknownRequest
from signoff.approvals.model import Choice, Outcome, RequestKind, RequestState
from signoff.errors import StoreError
from signoff.store import Store
from tests.conftest import ADA, MAX, OLGA, PLACE, HandClock, make_batch, make_request
from tests.rigs.desk import opened


@pytest.fixture
def desk(store: Store, clock: HandClock) -> Desk:
    return Desk(store, clock)


async def test_accept_settles_every_call_of_the_batch_and_then_wakes_the_future(desk: Desk, store: Store) -> None:
    batch = make_batch(make_request(), make_request())
    future = await opened(desk, batch)
    outcome = await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert [r.state for r in outcome.batch.requests] == [RequestState.APPROVED] * 2
    woken = await asyncio.wait_for(future, 1)
    assert woken.settled
    stored = await store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    assert [r.settlement.by.id for r in stored.requests if r.settlement and r.settlement.by] == [ADA.id, ADA.id]


async def test_second_click_is_told_who_decided(desk: Desk) -> None:
    batch = make_batch()
    await opened(desk, batch)
    await desk.decide(Click(batch.id, Choice.REJECT, ADA, PLACE.channel))
    with pytest.raises(AlreadySettled) as caught:
        await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    request = caught.value.batch.requests[0]
    assert request.state is RequestState.REJECTED
    assert request.settlement is not None
    assert request.settlement.by == ADA


async def test_two_hundred_decisions_at_once_have_one_winner(desk: Desk) -> None:
    batch = make_batch()
    await opened(desk, batch)
    other = replace(ADA, id="100000000000000009", name="Grace")
    results = await asyncio.gather(
        *(
            desk.decide(
                Click(batch.id, Choice.ACCEPT if n % 2 else Choice.REJECT, ADA if n % 4 < 2 else other, PLACE.channel)
            )
            for n in range(200)
        ),
        return_exceptions=True,
    )
    winners = [r for r in results if isinstance(r, Outcome)]
    late = [r for r in results if isinstance(r, AlreadySettled)]
    assert (len(winners), len(late)) == (1, 199)
    ends = {str(e.batch.requests[0].state) for e in late}
    assert ends == {str(winners[0].batch.requests[0].state)}


@pytest.mark.parametrize(
    ("approvers", "actor", "allowed"),
    [
        (("manage_server",), ADA, True),
        (("manage_server",), MAX, False),
        (("asker",), MAX, True),
        (("asker",), OLGA, False),
        (("role:800000000000000001",), OLGA, True),
        (("role:800000000000000001",), ADA, False),
        (("user:100000000000000003",), OLGA, True),
        (("user:",), replace(OLGA, id=""), False),
        (("role:",), replace(OLGA, roles=frozenset({""})), False),
        (("everybody",), ADA, False),
        (("manage_server",), replace(ADA, is_bot=True), False),
    ],
)
async def test_only_whom_the_request_names_may_decide(
    desk: Desk, approvers: tuple[str, ...], actor: Any, allowed: bool
) -> None:
    batch = make_batch(make_request(approvers=approvers))
    await opened(desk, batch)
    if allowed:
        assert (await desk.decide(Click(batch.id, Choice.ACCEPT, actor, PLACE.channel))).batch.settled
        return
    with pytest.raises(NotAllowed):
        await desk.decide(Click(batch.id, Choice.ACCEPT, actor, PLACE.channel))
    assert not (await desk.store.run(lambda tx: tx.batch(batch.id))).settled  # type: ignore[union-attr]


async def test_authority_over_one_call_is_not_authority_over_its_siblings(desk: Desk) -> None:
    batch = make_batch(make_request(), make_request(approvers=("asker",)))
    await opened(desk, batch)
    outcome = await desk.decide(Click(batch.id, Choice.ACCEPT, MAX, PLACE.channel))
    assert [r.state for r in outcome.batch.requests] == [RequestState.PENDING, RequestState.APPROVED]
    with pytest.raises(NotAllowed):
        await desk.decide(Click(batch.id, Choice.ACCEPT, MAX, PLACE.channel))


async def test_forged_misplaced_and_other_servers_ids_are_unknown(desk: Desk) -> None:
    batch = make_batch()
    await opened(desk, batch)
    for target, actor, channel in [
        ("0" * 16, ADA, PLACE.channel),
        (batch.id, replace(ADA, server="900000000000000002"), PLACE.channel),
        (batch.id, ADA, "700000000000000099"),
        ("' OR 1=1 --", ADA, PLACE.channel),
    ]:
        with pytest.raises(UnknownRequest):
            await desk.decide(Click(target, Choice.ACCEPT, actor, channel))


async def test_a_choice_that_does_not_fit_the_request_is_unknown(desk: Desk) -> None:
    batch = make_batch()
    await opened(desk, batch)
    with pytest.raises(UnknownRequest):
        await desk.decide(Click(batch.id, Choice.RERUN, ADA, PLACE.channel))


async def test_accepting_a_mixed_card_leaves_what_may_have_run_open(desk: Desk) -> None:
    batch = make_batch(make_request(), make_request(kind=RequestKind.MAY_HAVE_RUN))
    await opened(desk, batch)
    outcome = await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert [r.state for r in outcome.batch.requests] == [RequestState.APPROVED, RequestState.PENDING]
    outcome = await desk.decide(Click(batch.requests[1].id, Choice.SKIP, ADA, PLACE.channel))
    assert outcome.batch.settled


async def test_partial_decisions_leave_the_others_open(desk: Desk) -> None:
    batch = make_batch(make_request(), make_request())
    future = await opened(desk, batch)
    first, second = batch.requests
    await desk.decide(Click(first.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert not future.done()
    outcome = await desk.decide(Click(second.id, Choice.REJECT, ADA, PLACE.channel))
    assert [r.state for r in outcome.batch.requests] == [RequestState.APPROVED, RequestState.REJECTED]
    assert future.done()


async def test_the_deadline_rejects_what_is_open_and_is_not_a_person(desk: Desk, clock: HandClock) -> None:
    batch = make_batch(make_request(), make_request(), make_request())
    future = await opened(desk, batch)
    await desk.decide(Click(batch.requests[1].id, Choice.ACCEPT, ADA, PLACE.channel))
    clock.at = batch.deadline - 0.001
    assert await desk.expire_due() == []
    clock.at = batch.deadline
    (expired,) = await desk.expire_due()
    first, decided, last = expired.requests
    assert (first.state, decided.state, last.state) == (
        RequestState.EXPIRED,
        RequestState.APPROVED,
        RequestState.EXPIRED,
    )
    assert first.settlement is not None
    assert first.settlement.by is None
    assert future.done()


async def test_a_click_at_the_deadline_finds_it_expired_and_settles_it(desk: Desk, clock: HandClock) -> None:
    batch = make_batch()
    future = await opened(desk, batch)
    clock.at = batch.deadline
    with pytest.raises(AlreadySettled) as caught:
        await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert caught.value.batch.requests[0].state is RequestState.EXPIRED
    assert future.done()
    assert await desk.expire_due() == []


async def test_a_batch_of_an_earlier_process_is_handed_over_as_unattended(store: Store, clock: HandClock) -> None:
    batch = make_batch()
    await opened(Desk(store, clock), batch)
    later = Desk(store, clock)
    await later.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert later.unattended.get_nowait().id == batch.id
    assert later.unattended.empty()


async def test_a_lost_card_cancels_its_batch(desk: Desk) -> None:
    batch = make_batch()
    future = await opened(desk, batch)
    await desk.store.run(lambda tx: tx.set_card(batch.id, "555"))
    assert await desk.card_deleted("556", "deleted") is None
    cancelled = await desk.card_deleted("555", "the card was deleted")
    assert cancelled is not None
    assert cancelled.requests[0].state is RequestState.CANCELLED
    assert future.done()
    assert await desk.card_deleted("555", "again") is None


@pytest.mark.parametrize(
    ("modes", "fields", "state"),
    [
        (Modes("auto_approve"), {}, RequestState.APPROVED),
        (Modes("auto_deny"), {}, RequestState.REJECTED),
        (Modes("auto_approve"), {"kind": RequestKind.MAY_HAVE_RUN}, RequestState.PENDING),
        (Modes("auto_deny"), {"kind": RequestKind.MAY_HAVE_RUN}, RequestState.REJECTED),
        (Modes(), {"approvers": ()}, RequestState.REJECTED),
        (Modes(on_no_approver="approve"), {"approvers": ()}, RequestState.APPROVED),
        (Modes(on_no_approver="approve"), {"approvers": (), "by_server": True}, RequestState.REJECTED),
        (Modes(on_no_approver="approve"), {"approvers": (), "kind": RequestKind.MAY_HAVE_RUN}, RequestState.REJECTED),
        (Modes(), {}, RequestState.PENDING),
    ],
)
async def test_modes_settle_without_people(
    store: Store, clock: HandClock, modes: Modes, fields: dict[str, Any], state: RequestState
) -> None:
    desk = Desk(store, clock, modes)
    batch = make_batch(make_request(**fields))
    future = await opened(desk, batch)
    stored = await store.run(lambda tx: tx.batch(batch.id))
    assert stored is not None
    assert stored.requests[0].state is state
    assert future.done() is (state is not RequestState.PENDING)


async def test_every_decision_is_announced_and_a_broken_subscriber_changes_nothing(desk: Desk) -> None:
    events: list[dict[str, Any]] = []

    def broken(event: dict[str, Any]) -> None:
        raise RuntimeError("no")

    desk.subscribers.extend([broken, events.append])
    batch = make_batch(make_request(), make_request())
    await opened(desk, batch)
    await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    await asyncio.sleep(0.01)  # the click gets its response first
    assert [(e["event"], e["tool"], e["approved"], e["by"]) for e in events] == [
        ("tool_approval", "delete_file", True, ADA.id)
    ] * 2
    assert events[0]["arguments"] == {"path": "a.txt"}


async def test_a_failing_store_approves_nothing(desk: Desk, store: Store) -> None:
    batch = make_batch()
    future = await opened(desk, batch)
    await store.close()
    with pytest.raises(StoreError):
        await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert not future.done()


async def test_a_lost_place_cancels_what_was_open_in_it(store: Store, clock: HandClock) -> None:
    here, elsewhere = make_batch(), make_batch(place=replace(PLACE, channel="2", conversation="2"))
    for batch in (here, elsewhere):
        await opened(Desk(store, clock), batch)
    # Use another desk, as after a restart: it has no memory of the card.
    ended = await Desk(store, clock).place_deleted(PLACE.channel, "the thread was deleted")
    assert [batch.id for batch in ended] == [here.id]
    assert ended[0].requests[0].state is RequestState.CANCELLED


async def test_a_click_notes_the_card_that_it_was_made_on(desk: Desk, store: Store) -> None:
    # The click may arrive before its card is recorded as posted, and the process may end in between.
    batch = make_batch()
    await opened(desk, batch)
    outcome = await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, card_message="555"))
    assert outcome.batch.card_message == "555"
    assert [b.id for b in await store.run(lambda tx: tx.unfinished_cards())] == [batch.id]
