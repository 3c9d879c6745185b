"""How often a turn waits for the disk, and what must not happen before something is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, Tool

from signoff.agent.runner import AgentRunner
from signoff.approvals.clicks import Click
from signoff.approvals.model import Choice
from signoff.errors import StoreError
from signoff.store import Store
from signoff.turns import driver as driver_module
from signoff.turns.model import TurnState
from signoff.turns.pausing import Pausing
from tests.conftest import ADA, HandClock
from tests.rigs.driver_office import Office, in_thread
from tests.rigs.scripted import Box, Script, calls


class Jobs:
    """Notes the name of each job of the store, and holds back or fails those that a test names."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.held: dict[str, asyncio.Event] = {}
        self.fails = ""
        self._run = store.run
        monkeypatch.setattr(store, "run", self.run)

    async def run(self, work: Callable[[Any], Any]) -> Any:
        name = work.__qualname__.removesuffix(".<locals>.work")
        self.names.append(name)
        if name in self.held:
            await self.held[name].wait()
        if name == self.fails:
            raise StoreError("the disk is full")
        return await self._run(work)


@pytest.fixture
def jobs(store: Store, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    return Jobs(store, monkeypatch)


def asking_office(store: Store, clock: HandClock, script: Script, box: Box) -> Office:
    agent = Agent(script.model(), tools=[Tool(box.tool("act"), requires_approval=True), Tool(box.tool("look"))])
    return Office(store, clock, runner=AgentRunner(agent, store, clock))  # type: ignore[arg-type]


async def test_a_mention_is_stored_twice_before_its_card_and_a_decision_twice_before_the_tool(
    store: Store, clock: HandClock, jobs: Jobs
) -> None:
    box, script, turn = Box(), Script([calls(("act", {"value": "x"})), "done"]), in_thread(1)
    office = asking_office(store, clock, script, box)
    await office.take(turn)
    await office.until(lambda: office.front.cards)
    assert jobs.names[:2] == ["Driver.submit", "Driver._wait_for_people"]
    await office.until(lambda: len(jobs.names) == 3)
    jobs.names.clear()
    await office.desk.decide(Click(office.front.cards[0], Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: office.front.replies)
    of_the_card = ("Delivery.", "Desk.mark_card_final")
    of_the_turn = [name for name in jobs.names if not name.startswith(of_the_card)]
    assert of_the_turn[:4] == ["Desk._taken", "Journal.enter", "Journal._end", "Driver._end"]
    await office.driver.stop(0)


async def test_a_response_is_durable_before_its_first_call_runs(store: Store, clock: HandClock, jobs: Jobs) -> None:
    """The start of the call and the response are one transaction: neither is there without the other."""
    box, script, turn = Box(), Script([calls(("look", {"value": "x"})), "done"]), in_thread(1)
    office = asking_office(store, clock, script, box)
    jobs.held["Journal._end"] = asyncio.Event()
    await office.take(turn)
    await office.until(lambda: box.ran)
    stored = await store.run(lambda tx: tx.history(turn.place.conversation))
    assert len(stored) == 2, "the prompt and the response"
    jobs.held["Journal._end"].set()
    await office.until_state(turn, TurnState.DONE)
    await office.driver.stop(0)


async def test_the_model_is_asked_while_a_result_is_stored_but_nothing_follows_from_its_response_before(
    store: Store, clock: HandClock, jobs: Jobs
) -> None:
    looks = [calls(("look", {"value": one})) for one in "xy"]
    box, script, turn = Box(), Script([*looks, "done"]), in_thread(1)
    office = asking_office(store, clock, script, box)
    jobs.held["Journal._end"] = asyncio.Event()
    await office.take(turn)
    await office.until(lambda: len(script.asked) == 2)
    await asyncio.sleep(0.05)
    assert [value for _, value, _ in box.ran] == ["x"], "the second call waits for the result of the first"
    jobs.held["Journal._end"].set()
    await office.until_state(turn, TurnState.DONE)
    assert [value for _, value, _ in box.ran] == ["x", "y"]
    await office.driver.stop(0)


async def test_no_reply_is_posted_before_the_last_result_is_durable(
    store: Store, clock: HandClock, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "STEP_DELAYS", (60.0,))
    box, script, turn = Box(), Script([calls(("look", {"value": "x"})), "done"]), in_thread(1)
    office = asking_office(store, clock, script, box)
    jobs.fails = "Journal._end"
    await office.take(turn)
    await office.until(lambda: len(script.asked) == 2)
    await asyncio.sleep(0.05)
    assert await office.state(turn) is TurnState.RUNNING
    assert office.front.replies == []
    assert "Driver._end" not in jobs.names
    await office.driver.stop(0)


# Between the mention and its step, while the thread is opened


async def test_a_turn_whose_place_changes_is_claimed_anew_and_waits_if_that_place_is_busy(office: Office) -> None:
    turn, other = in_thread(1), in_thread(2)
    await office.driver.submit(turn)
    await office.driver.submit(other)
    await office.driver.relocate(turn.id, other.place)
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
