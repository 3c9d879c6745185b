"""Orders, wakes and cards that cross each other; and steps that cannot be kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Batch, Choice, Remember, RequestState
from signoff.errors import StoreError
from signoff.turns.model import TurnState, Waiting
from signoff.turns.pausing import Pausing
from tests.conftest import ADA, SERVER, make_batch, make_call, make_request
from tests.rigs.driver_office import FINISH, Office, batch_of, in_thread


async def test_a_pause_that_crosses_a_resume_holds(office: Office, pausing: Pausing) -> None:
    await pausing.pause(ADA)
    await asyncio.gather(pausing.resume(ADA), pausing.pause(ADA))
    assert await office.store.run(lambda tx: tx.pause_of(SERVER)) is not None
    assert office.runner.paused == {SERVER}


async def test_a_pause_that_could_not_be_stored_holds_until_somebody_resumes(
    office: Office, pausing: Pausing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(work: Callable[[Any], Any]) -> Any:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(office.store, "run", broken)
        with pytest.raises(StoreError):
            await pausing.pause(ADA)
    assert office.runner.paused == {SERVER}
    await pausing.resume(ADA)
    assert office.runner.paused == set()


async def test_a_late_wake_for_an_old_batch_does_not_run_a_turn_that_waits_for_another(office: Office) -> None:
    turn = in_thread(1)
    first, second = batch_of(turn), batch_of(turn)
    office.runner.script(turn, Waiting(first), Waiting(second))
    await office.take(turn)
    await office.until_state(turn, TurnState.WAITING)
    await office.desk.decide(Click(first.id, Choice.ACCEPT, ADA, turn.place.channel))

    async def waits_for_the_second() -> bool:
        found = await office.store.run(lambda tx: tx.turn(turn.id))
        return bool(found and found.batch == second.id and found.state is TurnState.WAITING)

    await office.until_true(waits_for_the_second)
    await office.driver.recover()
    office.desk.unattended.put_nowait(await office.batch(first))
    await asyncio.sleep(0.05)
    assert office.desk.unattended.empty()
    assert office.runner.advanced == [turn.id] * 2
    assert await office.state(turn) is TurnState.WAITING


async def test_a_step_that_cannot_be_written_ends_its_turn_and_says_so(office: Office) -> None:
    turn = in_thread(1)
    request = make_request(make_call(place=turn.place), metadata={"x": object()})
    office.runner.script(turn, Waiting(make_batch(request, turn=turn.id, place=turn.place)))
    await office.take(turn)
    await office.until_state(turn, TurnState.FAILED)
    await office.until(lambda: office.front.replies)
    assert "failed on my side" in office.front.replies[0][1]


async def test_a_grant_revoked_while_its_call_is_held_by_a_pause_does_not_let_it_run(
    office: Office, pausing: Pausing
) -> None:
    office.desk.grants = GrantTerms(Remember.ALWAYS)
    turn, other = in_thread(1), in_thread(2)
    asked = batch_of(turn)
    await office.asked(turn, asked)
    await office.desk.decide(Click(asked.id, Choice.ACCEPT, ADA, turn.place.channel, remember=Remember.ALWAYS))
    await office.until_state(turn, TurnState.DONE)
    going = asyncio.Event()
    covered = batch_of(other)
    office.runner.script(other, going, Waiting(covered))
    await office.take(other)
    await office.until_state(other, TurnState.RUNNING)
    await pausing.pause(ADA)
    going.set()
    await office.until_state(other, TurnState.WAITING)
    (grant,) = await office.desk.standing_grants(SERVER)
    await office.desk.revoke(grant.id, ADA)
    await pausing.resume(ADA)
    await office.until_state(other, TurnState.DONE)
    assert (await office.batch(covered)).requests[0].state is RequestState.CANCELLED


async def test_the_sweeper_survives_anything(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failed = office.desk.expire_due, list[int]()

    async def broken() -> Any:
        if not failed:
            failed.append(1)
            raise RuntimeError("a spoiled row")
        return await real()

    monkeypatch.setattr(office.desk, "expire_due", broken)
    turn = in_thread(1)
    batch = batch_of(turn, deadline=office.clock.at)
    await office.driver.recover()
    office.runner.script(turn, Waiting(batch), FINISH)
    await office.take(turn)

    async def settled() -> bool:
        opened = await office.store.run(lambda tx: tx.batch(batch.id))
        return opened is not None and opened.settled

    await office.until_true(settled)
    assert failed


async def test_a_card_that_is_settled_while_it_is_posted_again_shows_its_end(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    posted = asyncio.Event()

    async def slowly(batch: Batch) -> str:
        await posted.wait()
        return "later card"

    monkeypatch.setattr(office.front, "repost_card", slowly)
    reposting = asyncio.ensure_future(office.driver.repost(batch.id))
    await asyncio.sleep(0.05)
    await office.desk.cancel(batch.id, "the thread is gone")
    await office.until(lambda: office.front.refreshed)
    posted.set()
    await reposting
    await office.until(lambda: office.front.refreshed[-1].card_message == "later card")


async def test_a_card_that_is_on_its_way_when_its_turn_is_stopped_shows_that(office: Office, pausing: Pausing) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.posting = asyncio.Event()
    office.runner.script(turn, Waiting(batch))
    await office.take(turn)
    await office.until(lambda: office.front.cards)
    await pausing.stop(ADA)
    office.front.posting.set()
    await office.until(lambda: office.front.refreshed)
    assert office.front.refreshed[-1].card_message == f"card of {batch.id}"


async def test_a_decided_turn_goes_on_though_the_store_failed_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.turns.driver.SWEEP_AT_LEAST", 0.05)
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.driver.recover()
    await office.asked(turn, batch)
    real, failed = office.store.run, list[int]()

    async def run(work: Callable[[Any], Any]) -> Any:
        if "_continue" in work.__qualname__ and not failed:
            failed.append(1)
            raise StoreError("the disk is full")
        return await real(work)

    monkeypatch.setattr(office.store, "run", run)
    await office.desk.cancel(batch.id, "the card was deleted")  # a click would have claimed the turn already
    await office.until_state(turn, TurnState.DONE)
    assert failed
