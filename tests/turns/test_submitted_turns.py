"""A mention is claimed by the transaction that stores it: what else may happen before its step begins."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from signoff.errors import StoreError
from signoff.store import Store
from signoff.turns import driver as driver_module
from signoff.turns.model import Finished, TurnState
from signoff.turns.pausing import Pausing
from tests.conftest import ADA, HandClock
from tests.rigs.driver_office import Office, in_thread


async def test_a_mention_is_stored_and_claimed_with_one_commit(office: Office, store: Store) -> None:
    before, turn, going = store.commits, in_thread(1), asyncio.Event()
    office.runner.script(turn, going, Finished("the answer"))
    await office.driver.submit(turn)
    assert store.commits == before + 1
    await office.driver.go(turn.id)
    await office.until(lambda: office.runner.advanced)
    assert store.commits == before + 1, "its step begins without another one"
    going.set()
    await office.until_state(turn, TurnState.DONE)


async def test_the_model_may_be_asked_while_the_thread_is_opened(office: Office) -> None:
    turn, next_one = in_thread(1), replace(in_thread(1), id="the next one", message="the next one")
    await office.driver.submit(turn)
    await office.driver.submit(next_one)
    assert office.runner.begun == [turn.id], "the other one is queued behind it"
    assert office.runner.advanced == []


async def test_a_turn_whose_new_place_is_not_stored_runs_where_it_is(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, elsewhere = in_thread(1), in_thread(2).place
    await office.driver.submit(turn)

    async def fail(work: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(office.store, "run", fail)
        with pytest.raises(StoreError):
            await office.driver.relocate(turn.id, elsewhere)
    await office.driver.go(turn.id)
    await office.until_state(turn, TurnState.DONE)


async def test_a_turn_whose_place_changes_is_claimed_anew_and_waits_if_that_place_is_busy(office: Office) -> None:
    turn, other = in_thread(1), in_thread(2)
    await office.driver.submit(turn)
    await office.driver.submit(other)
    await office.driver.relocate(turn.id, other.place)
    assert office.runner.given_up == [turn.id], "its model is asked again in the new place"
    await office.driver.go(turn.id)
    assert await office.state(turn) is TurnState.QUEUED
    await office.driver.go(other.id)
    await office.until_state(turn, TurnState.DONE)
    assert office.runner.advanced == [other.id, turn.id]
    stored = await office.store.run(lambda tx: tx.turn(turn.id))
    assert stored
    assert stored.place == other.place


async def test_a_turn_that_is_stopped_while_its_thread_is_opened_does_not_run(office: Office, pausing: Pausing) -> None:
    turn = in_thread(1)
    await office.driver.submit(turn)
    assert await pausing.stop(replace(ADA, server=turn.place.server)) == 1
    await office.driver.go(turn.id)
    await office.until(lambda: office.front.replies)
    assert await office.state(turn) is TurnState.STOPPED
    assert office.runner.advanced == []
    assert "may have had an effect" not in office.front.replies[0][1]


async def test_a_turn_whose_thread_takes_long_is_not_run_by_the_sweeper(
    office: Office, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "SWEEP_AT_LEAST", 0.01)
    turn = in_thread(1)
    await office.driver.submit(turn)
    sweeping = asyncio.ensure_future(office.driver._sweep())
    await asyncio.sleep(0.05)
    clock.at += 2 * driver_module.STRAY
    await asyncio.sleep(0.05)
    assert office.runner.advanced == []
    await office.driver.go(turn.id)
    await office.until_state(turn, TurnState.DONE)
    sweeping.cancel()


async def test_a_turn_whose_process_died_before_its_thread_was_open_runs_at_the_next_start(office: Office) -> None:
    turn = in_thread(1)
    await office.driver.submit(turn)
    await office.driver.stop(0)
    successor = office.successor()
    await successor.driver.recover()
    await successor.until_state(turn, TurnState.DONE)
    assert successor.runner.advanced == [turn.id]
    await successor.driver.stop(0)
