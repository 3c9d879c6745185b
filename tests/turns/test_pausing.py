"""Pause, resume and stop: the switch of a server, while runs are under way and cards are open."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.errors import AlreadySettled, Refused
from signoff.approvals.model import Actor, Choice, Place, RequestState
from signoff.store import Store
from signoff.turns.model import Turn, TurnState, Waiting
from signoff.turns.pausing import Pausing
from tests.conftest import ADA, MAX, OLGA, SERVER, HandClock, make_turn
from tests.rigs.driver_office import FINISH, Office, batch_of, halts_of, in_thread


async def test_a_pause_cancels_open_cards_and_holds_their_runs_until_resumed(office: Office, pausing: Pausing) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    assert await pausing.pause(ADA) == 1
    await office.until(lambda: office.front.refreshed)
    request = office.front.refreshed[0].requests[0]
    assert request.state is RequestState.CANCELLED
    assert request.settlement is not None
    assert request.settlement.note == "paused by Ada"
    with pytest.raises(AlreadySettled):
        await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await asyncio.sleep(0.05)
    assert await office.state(turn) is TurnState.WAITING
    assert office.runner.advanced == [turn.id]
    assert await pausing.resume(ADA)
    await office.until_state(turn, TurnState.DONE)
    assert not await pausing.resume(ADA)


async def test_what_is_asked_in_a_paused_server_is_queued_and_comes_back(office: Office, pausing: Pausing) -> None:
    await pausing.pause(ADA)
    turn = in_thread(1)
    admission = await office.driver.submit(turn)
    assert (admission.kind, "Ada has paused me" in admission.text) == ("queued", True)
    await office.driver.go(turn.id)
    await asyncio.sleep(0.05)
    assert await office.state(turn) is TurnState.QUEUED
    await pausing.resume(ADA)
    await office.until_state(turn, TurnState.DONE)


async def test_another_server_goes_on(office: Office, pausing: Pausing) -> None:
    await pausing.pause(replace(ADA, server="900000000000000002"))
    turn = in_thread(1)
    await office.take(turn)
    await office.until_state(turn, TurnState.DONE)


async def test_a_run_that_wants_a_card_in_a_paused_server_gets_it_cancelled(office: Office, pausing: Pausing) -> None:
    turn, going = in_thread(1), asyncio.Event()
    batch = batch_of(turn)
    office.runner.script(turn, going, Waiting(batch))
    await office.take(turn)
    await office.until_state(turn, TurnState.RUNNING)
    await pausing.pause(ADA)
    going.set()
    await office.until_state(turn, TurnState.WAITING)
    stored = await office.batch(batch)
    assert stored.requests[0].state is RequestState.CANCELLED
    assert office.front.cards == []


async def test_a_pause_outlives_the_process(store: Store, clock: HandClock) -> None:
    first = Office(store, clock)
    turn = in_thread(1)
    batch = batch_of(turn)
    await first.asked(turn, batch)
    await halts_of(first).pause(ADA)
    await first.driver.stop(0)
    second = Office(store, clock)
    await second.driver.recover()
    await asyncio.sleep(0.05)
    assert await second.state(turn) is TurnState.WAITING
    assert second.runner.paused == {SERVER}
    await halts_of(second).resume(ADA)
    await second.until_state(turn, TurnState.DONE)
    assert second.runner.paused == set()
    await second.driver.stop(0)


async def test_stop_ends_running_waiting_and_queued_runs_of_a_conversation(office: Office, pausing: Pausing) -> None:
    waiting, running, other = in_thread(1), in_thread(2), in_thread(3)
    batch = batch_of(waiting)
    await office.asked(waiting, batch)
    never = asyncio.Event()
    office.runner.script(running, never, FINISH)
    office.runner.script(other, never, FINISH)
    for turn in (running, other):
        await office.take(turn)
        await office.until_state(turn, TurnState.RUNNING)
        await office.store.run(lambda tx, turn=turn: tx.set_prompted(turn.id))  # as the start of its first call does
    queued = replace(in_thread(4), place=running.place)
    await office.take(queued)
    assert await pausing.stop(ADA, running.place.conversation) == 2
    assert await office.state(running) is TurnState.STOPPED
    assert await office.state(queued) is TurnState.STOPPED
    assert await office.state(other) is TurnState.RUNNING
    assert await pausing.stop(ADA) == 2
    assert await office.state(waiting) is TurnState.STOPPED
    stored = await office.batch(batch)
    assert stored.requests[0].state is RequestState.CANCELLED
    await office.until(lambda: len(office.front.replies) == 4)
    ran = "Stopped by Ada. A tool that was running may have had an effect. Nothing further will run."
    waited = "Stopped by Ada. Nothing further will run."
    assert sorted(text for _, text in office.front.replies) == [ran, ran, waited, waited]
    never.set()
    await asyncio.sleep(0.05)
    assert await office.state(other) is TurnState.STOPPED


async def test_stop_everywhere_leaves_the_runs_of_other_servers_alone(office: Office, pausing: Pausing) -> None:
    elsewhere = Place("900000000000000002", "720000000000000001", "720000000000000001")
    stranger = replace(MAX, id="100000000000000009", server=elsewhere.server)
    never = asyncio.Event()
    own, running = in_thread(1), make_turn(place=elsewhere, asker=stranger)
    other_thread = replace(elsewhere, channel="720000000000000002", conversation="720000000000000002")
    waiting = make_turn(place=other_thread, asker=stranger)
    card = batch_of(waiting)
    await office.asked(waiting, card)
    for turn in (own, running):
        office.runner.script(turn, never, FINISH)
        await office.take(turn)
        await office.until_state(turn, TurnState.RUNNING)
    queued = replace(make_turn(asker=stranger), place=elsewhere)
    await office.take(queued)

    assert await pausing.stop(ADA) == 1

    assert await office.state(own) is TurnState.STOPPED
    states = [await office.state(turn) for turn in (running, waiting, queued)]
    assert states == [TurnState.RUNNING, TurnState.WAITING, TurnState.QUEUED]
    assert (await office.batch(card)).requests[0].state is RequestState.PENDING
    assert await pausing.stop(ADA, elsewhere.conversation) == 0, "nor by naming a conversation of theirs"
    never.set()
    await office.until_state(running, TurnState.DONE)
    await office.until_state(queued, TurnState.DONE)


async def test_the_next_one_starts_after_a_stop(office: Office, pausing: Pausing) -> None:
    turn, never = in_thread(1), asyncio.Event()
    office.runner.script(turn, never, FINISH)
    await office.take(turn)
    await office.until_state(turn, TurnState.RUNNING)
    await pausing.stop(ADA, turn.place.conversation)
    after = replace(in_thread(2), place=turn.place)
    await office.take(after)
    await office.until_state(after, TurnState.DONE)


async def test_the_reply_of_a_stopped_run_knows_when_the_run_ended(
    office: Office, pausing: Pausing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a front end looks for an earlier post of it from the mention on, and finds that of another run."""
    turn, replied = in_thread(1), list[Turn]()
    reply = office.front.reply

    async def noting(turn: Turn, text: str) -> None:
        replied.append(turn)
        await reply(turn, text)

    monkeypatch.setattr(office.front, "reply", noting)
    office.runner.script(turn, asyncio.Event(), FINISH)
    await office.take(turn)
    await office.until_state(turn, TurnState.RUNNING)
    office.clock.at += 90
    await pausing.stop_turn(turn.asker, turn.id)
    await office.until(lambda: replied)
    assert (replied[0].state, replied[0].ended) == (TurnState.STOPPED, office.clock.at)


@pytest.mark.parametrize("actor", [MAX, replace(ADA, is_bot=True)], ids=["member", "bot"])
async def test_only_those_who_manage_the_server_may(office: Office, pausing: Pausing, actor: Actor) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    for order in (pausing.pause, pausing.resume):
        with pytest.raises(Refused):
            await order(actor)
    assert not (await office.batch(batch)).settled
    assert office.runner.paused == set()


async def test_people_without_manage_server_stop_only_their_own_runs(office: Office, pausing: Pausing) -> None:
    own, other = in_thread(1), in_thread(2, asker=OLGA)
    cards = batch_of(own), batch_of(other)
    for turn, card in zip((own, other), cards, strict=True):
        await office.asked(turn, card)
    assert await pausing.stop(MAX, other.place.conversation) == 0
    assert await pausing.stop(MAX) == 1
    assert (await office.batch(cards[0])).requests[0].state is RequestState.CANCELLED
    assert not (await office.batch(cards[1])).settled
    with pytest.raises(Refused):
        await pausing.stop(replace(ADA, is_bot=True))
    assert not (await office.batch(cards[1])).settled


@pytest.mark.parametrize("actor", [OLGA, replace(ADA, server="900000000000000009"), replace(MAX, is_bot=True)])
async def test_others_cannot_stop_a_run_with_its_id(office: Office, pausing: Pausing, actor: Actor) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    with pytest.raises(Refused):
        await pausing.stop_turn(actor, turn.id)
    with pytest.raises(Refused):
        await pausing.stop_turn(ADA, "no such turn")
    assert not (await office.batch(batch)).settled


@pytest.mark.parametrize("actor", [MAX, ADA], ids=["asker", "admin"])
async def test_the_asker_and_admins_stop_a_run_once(office: Office, pausing: Pausing, actor: Actor) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    assert await pausing.stop_turn(actor, turn.id)
    assert not await pausing.stop_turn(actor, turn.id), "it has ended already"
    (request,) = (await office.batch(batch)).requests
    assert request.state is RequestState.CANCELLED
    assert request.settlement
    assert request.settlement.note == f"stopped by {actor.name}"
    await office.until(lambda: office.front.replies)
    assert office.front.replies[0][1].startswith(f"Stopped by {actor.name}.")
    rows = await office.store.run(lambda tx: tx.audit_page(SERVER, kind="stopped"))
    assert [(row.actor, row.subject) for row in rows] == [(actor.id, turn.id)]


async def test_ten_runs_and_ten_cards_are_paused_and_come_back(office: Office, pausing: Pausing) -> None:
    waiting = [replace(in_thread(n), asker=replace(MAX, id=f"20{n}")) for n in range(10)]
    running = [replace(in_thread(n), asker=replace(MAX, id=f"20{n}")) for n in range(10, 20)]
    batches = [batch_of(turn) for turn in waiting]
    for turn, batch in zip(waiting, batches, strict=True):
        await office.asked(turn, batch)
    going = asyncio.Event()
    for turn in running:
        office.runner.script(turn, going, FINISH)
        await office.take(turn)
        await office.until_state(turn, TurnState.RUNNING)
    queued = in_thread(30)
    before = list(office.runner.advanced)
    assert await pausing.pause(ADA) == 10
    await office.take(queued)
    await office.until(lambda: len(office.front.refreshed) == 10)
    assert all(batch.requests[0].state is RequestState.CANCELLED for batch in office.front.refreshed)
    assert office.runner.advanced == before
    await pausing.resume(ADA)
    going.set()
    for turn in (*waiting, *running, queued):
        await office.until_state(turn, TurnState.DONE)


async def test_the_switch_is_on_record(office: Office, pausing: Pausing) -> None:
    turn, never = in_thread(1), asyncio.Event()
    office.runner.script(turn, never, FINISH)
    await office.take(turn)
    await office.until_state(turn, TurnState.RUNNING)
    await pausing.pause(ADA)
    await pausing.resume(ADA)
    await pausing.stop(ADA)
    rows = await office.store.run(lambda tx: tx.audit_page(SERVER))
    assert [(row.kind, row.actor) for row in reversed(rows)] == [
        ("paused", ADA.id),
        ("resumed", ADA.id),
        ("stopped", ADA.id),
    ]


async def test_a_reminder_is_posted_once_and_only_while_open(office: Office) -> None:
    turn, other = in_thread(1), in_thread(2)
    soon = replace(batch_of(turn), remind_at=office.clock.at + 100)
    settled = replace(batch_of(other), remind_at=office.clock.at + 100)
    await office.asked(turn, soon)
    await office.asked(other, settled)
    await office.desk.decide(Click(settled.id, Choice.ACCEPT, ADA, other.place.channel))
    sweeping = asyncio.ensure_future(office.driver._sweep())
    await asyncio.sleep(0.05)
    assert office.front.reminded == []
    office.clock.at += 100
    office.driver._sweep_now.set()
    await office.until(lambda: office.front.reminded)
    office.driver._sweep_now.set()
    await asyncio.sleep(0.05)
    assert office.front.reminded == [soon.id]
    sweeping.cancel()


async def test_an_open_card_is_posted_once_more(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    assert await office.driver.repost(batch.id)
    assert (await office.batch(batch)).card_message == f"later card of {batch.id}"
    await office.desk.decide(
        Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel, card_message=f"later card of {batch.id}")
    )
    assert not await office.driver.repost(batch.id)


async def test_a_stopped_run_is_shown_as_stopped(office: Office, pausing: Pausing) -> None:
    """For then what is said are our words, which quote somebody, and not the agent's."""
    turn, states = in_thread(1), list[TurnState]()

    async def reply(turn: Turn, text: str) -> None:
        states.append(turn.state)

    office.front.reply = reply  # type: ignore[method-assign]
    await office.asked(turn, batch_of(turn))
    await pausing.stop(ADA)
    await office.until(lambda: states)
    assert states == [TurnState.STOPPED]
