"""The transaction that settles a batch also claims its turn: what else arrives at that moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, Tool

from signoff.agent.runner import AgentRunner, Extras
from signoff.approvals.clicks import Click
from signoff.approvals.model import Batch, Choice, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.approvals.server_rules import Rulebook
from signoff.errors import StoreError
from signoff.store import Store
from signoff.turns.model import Turn, TurnState
from signoff.turns.pausing import Pausing
from tests.conftest import ADA, HandClock
from tests.rigs.driver_office import Office, batch_of, in_thread
from tests.rigs.scripted import Answer, Box, Script, calls

ACT = calls(("act", {"value": "x"}))


@asynccontextmanager
async def one_commit(store: Store) -> AsyncGenerator[None]:
    """Let the jobs that are queued inside share a commit: nobody gets a result before all of them are durable."""
    going = threading.Event()
    blocking = asyncio.ensure_future(store.run(lambda tx: going.wait()))
    await asyncio.sleep(0.05)  # longer than a group accepts further jobs
    try:
        yield
        await asyncio.sleep(0.02)
    finally:
        going.set()
        await blocking


def accept(batch: Batch) -> Click:
    return Click(batch.id, Choice.ACCEPT, ADA, batch.place.channel)


@dataclass
class Agency(Office):
    """An office with the real runner, a scripted model, and a tool `act` that asks."""

    script: Script = field(default_factory=lambda: Script([ACT, "done"]))
    box: Box = field(default_factory=Box)
    checks: Callable[[], Awaitable[None]] | None = None
    """Checks the final text of a run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rules = Rulebook(Policy(rules=(Rule("act", Verdict.ASK),)), self.store, self.clock)
        agent = Agent(self.script.model(), tools=[Tool(self.box.tool("act"))])

        if checks := self.checks:

            @agent.output_validator
            async def check(text: str) -> str:
                await checks()
                return text

        extras = Extras(own_output=self.checks is not None)
        self.driver.runner = AgentRunner(agent, self.store, self.clock, self.rules, extras=extras)
        self.pausing = Pausing(self.store, self.desk, self.driver.runner, self.driver, self.clock)

    async def card(self, turn: Turn) -> Batch:
        await self.until_state(turn, TurnState.WAITING)
        await self.until(lambda: self.front.cards)
        batch = await self.store.run(lambda tx: tx.batch(self.front.cards[-1]))
        assert batch
        return batch

    async def uses(self) -> int:
        """How many model responses count."""
        return await self.store.run(lambda tx: tx.db.all("SELECT COUNT(*) FROM usage")[0][0])


OpenAgency = Callable[..., Agency]


@pytest.fixture
async def agencies() -> AsyncIterator[list[Agency]]:
    opened: list[Agency] = []
    yield opened
    for one in opened:
        await one.driver.stop(0)


@pytest.fixture
def open_agency(store: Store, clock: HandClock, agencies: list[Agency]) -> OpenAgency:
    def build(*answers: Answer, checks: Callable[[], Awaitable[None]] | None = None) -> Agency:
        agencies.append(Agency(store, clock, script=Script(list(answers) or [ACT, "done"]), checks=checks))
        return agencies[-1]

    return build


# Orders that arrive at the moment of the settling click


async def test_a_stop_in_the_commit_of_the_settling_click_ends_the_step_before_it_begins(
    office: Office, pausing: Pausing
) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    async with one_commit(office.store):
        deciding = asyncio.ensure_future(office.desk.decide(accept(batch)))
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(pausing.stop(ADA))
    await asyncio.gather(deciding, stopping)
    await office.until(lambda: office.front.replies)
    await asyncio.sleep(0.05)
    assert office.runner.advanced == [turn.id], "the model was asked for a turn that was stopped"
    assert await office.state(turn) is TurnState.STOPPED
    ((_, said),) = office.front.replies
    assert said.startswith("Stopped by Ada.")


async def test_a_stop_in_the_commit_of_a_rejection_asks_the_model_nothing(open_agency: OpenAgency) -> None:
    agency, turn = open_agency(), in_thread(1)
    await agency.take(turn)
    batch = await agency.card(turn)
    async with one_commit(agency.store):
        click = Click(batch.id, Choice.REJECT, ADA, batch.place.channel)
        deciding = asyncio.ensure_future(agency.desk.decide(click))
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(agency.pausing.stop(ADA))
    await asyncio.gather(deciding, stopping)
    await agency.until(lambda: agency.front.replies)
    await asyncio.sleep(0.05)
    assert len(agency.script.asked) == 1
    assert len(agency.front.replies) == 1


async def test_a_pause_in_the_commit_of_the_settling_click_holds_the_tool_until_resumed(
    open_agency: OpenAgency,
) -> None:
    agency, turn = open_agency(), in_thread(1)
    await agency.take(turn)
    batch = await agency.card(turn)
    async with one_commit(agency.store):
        deciding = asyncio.ensure_future(agency.desk.decide(accept(batch)))
        await asyncio.sleep(0)
        pausing = asyncio.ensure_future(agency.pausing.pause(ADA))
    await asyncio.gather(deciding, pausing)
    await asyncio.sleep(0.05)
    assert agency.box.ran == []
    await agency.pausing.resume(ADA)
    await agency.until_state(turn, TurnState.DONE)
    assert agency.box.ran == [("act", "x", None)]


async def test_a_server_rule_in_the_commit_of_the_settling_click_is_in_force(open_agency: OpenAgency) -> None:
    agency, turn = open_agency(), in_thread(1)
    await agency.take(turn)
    batch = await agency.card(turn)
    async with one_commit(agency.store):
        deciding = asyncio.ensure_future(agency.desk.decide(accept(batch)))
        await asyncio.sleep(0)
        protecting = asyncio.ensure_future(agency.rules.protect(Rule("act", Verdict.DENY), ADA))
    await asyncio.gather(deciding, protecting)
    await agency.until_state(turn, TurnState.DONE)
    assert agency.box.ran == []


# Clicks and processes that end at that moment


async def test_a_cancelled_click_that_was_committed_lets_its_run_go_on_at_once(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    events: list[dict[str, Any]] = []
    office.desk.subscribers.append(events.append)
    await office.asked(turn, batch)
    async with one_commit(office.store):
        deciding = asyncio.ensure_future(office.desk.decide(accept(batch)))
        await asyncio.sleep(0.01)
        deciding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deciding
    await office.until_state(turn, TurnState.DONE)  # the sweeper, which takes turns that woke nobody, does not run
    await office.until(lambda: office.front.refreshed and office.front.refreshed[-1].settled)
    assert office.runner.advanced == [turn.id] * 2
    assert len(events) == 1


async def test_a_cancelled_click_that_came_too_late_wakes_nobody(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    async with one_commit(office.store):
        first = asyncio.ensure_future(office.desk.decide(accept(batch)))
        second = asyncio.ensure_future(office.desk.decide(accept(batch)))
        await asyncio.sleep(0.01)
        second.cancel()
    assert (await first).settled
    await office.until_state(turn, TurnState.DONE)
    await asyncio.sleep(0.02)
    assert office.runner.advanced == [turn.id] * 2
    assert office.desk.unattended.empty()


async def test_a_turn_that_is_claimed_while_the_process_ends_is_left_to_the_next_one(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    before = office.store.commits
    deciding = asyncio.ensure_future(office.desk.decide(accept(batch)))
    await asyncio.sleep(0)
    while office.store.commits == before:
        threading.Event().wait(0.001)  # the loop stands still, so the click does not know of its commit yet
    await office.driver.stop(0)
    await deciding
    await asyncio.sleep(0.02)
    assert await office.state(turn) is TurnState.RUNNING
    assert office.runner.advanced == [turn.id]
    successor = office.successor()
    await successor.driver.recover()
    await successor.until_state(turn, TurnState.DONE)
    await successor.until(lambda: successor.front.refreshed)
    assert successor.front.refreshed[-1].settled
    assert successor.runner.advanced == [turn.id]
    await successor.driver.stop(0)


# What the model used


async def test_what_a_run_used_counts_once_though_it_failed(open_agency: OpenAgency) -> None:
    async def fail() -> None:
        raise RuntimeError("a validator with a bug")

    agency, turn = open_agency("the answer", checks=fail), in_thread(1)
    await agency.take(turn)
    await agency.until_state(turn, TurnState.FAILED)
    assert len(agency.script.asked) == 1
    assert await agency.uses() == 1


async def test_what_a_run_used_counts_once_though_it_was_stopped(open_agency: OpenAgency) -> None:
    reached = asyncio.Event()

    async def hang() -> None:
        reached.set()
        await asyncio.Event().wait()

    agency, turn = open_agency("the answer", checks=hang), in_thread(1)
    await agency.take(turn)
    await reached.wait()
    await agency.pausing.stop(ADA)
    await agency.until(lambda: agency.front.replies)
    await agency.until(lambda: turn.id not in agency.driver._steps)
    assert await agency.uses() == 1


async def test_every_response_counts_if_the_model_has_to_try_again(open_agency: OpenAgency) -> None:
    tries: list[int] = []

    async def refuse_once() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ModelRetry("say it with other words")

    agency, turn = open_agency("first", "second", checks=refuse_once), in_thread(1)
    await agency.take(turn)
    await agency.until_state(turn, TurnState.DONE)
    assert len(agency.script.asked) == await agency.uses() == 2


async def test_a_run_that_failed_is_not_repeated_because_its_use_could_not_be_stored(
    open_agency: OpenAgency, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise RuntimeError("a validator with a bug")

    agency, turn = open_agency("the answer", checks=fail), in_thread(1)
    real, failed = agency.store.run, list[int]()

    async def run(work: Callable[[Any], Any]) -> Any:
        if work.__qualname__.startswith("Saver.save"):
            failed.append(1)
            raise StoreError("the disk is full")
        return await real(work)

    monkeypatch.setattr(agency.store, "run", run)
    await agency.take(turn)
    await agency.until_state(turn, TurnState.FAILED)
    assert failed
    assert len(agency.script.asked) == 1
