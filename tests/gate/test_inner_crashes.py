"""Agents inside tools and the death of the process: it dies after each transaction of a turn in turn, and goes on.

No call runs twice, no decision is lost, nobody is asked about the tool that only runs agents, and the model is asked
at most once more than without a crash.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from pydantic_ai import Agent, Tool

from signoff.agent.runner import AgentRunner
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.model import ApprovalRequest, Choice, RequestKind, RequestState
from signoff.gate import delegation
from signoff.store import Store
from signoff.store.store import Tx
from signoff.turns.model import Finished, Turn, TurnState, Waiting
from signoff.turns.ports import TurnStore
from tests.conftest import ADA, HandClock
from tests.rigs.driver_office import in_thread
from tests.rigs.steady_agents import steady_agent

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
T = TypeVar("T")
_threads = itertools.count(1)


class Killed(BaseException):
    """The process is dead: nothing reaches the store any more."""


@dataclass
class MortalStore(TurnStore):
    store: Store
    left: int
    """How many transactions are committed before the process dies."""
    late: bool = False
    """Whether it dies just before the next one, instead of just after the last one."""

    async def run(self, work: Callable[[Tx], T]) -> T:
        if self.left <= 0:
            raise Killed
        self.left -= 1
        result = await self.store.run(work)
        if self.left == 0 and not self.late:
            raise Killed
        return result


@dataclass
class World:
    """What outlives the process: the tools' effects, and how often each model was asked."""

    ran: Counter[str]
    asked: Counter[str]

    def agent(self) -> Agent[Any, Any]:
        """Two agents inside tools, and one of them has an agent inside its own tool. Each has two rounds."""

        def leaf(value: str) -> str:
            self.ran[value] += 1
            return f"did {value}"

        def note(name: str) -> None:
            self.asked[name] += 1

        guarded = Tool(leaf, requires_approval=True)
        deep = steady_agent("deep", [[("leaf", {"value": "deep 1"})]], [guarded], note)

        async def ask_deep(topic: str) -> str:
            return (await deep.run(topic)).output

        first = steady_agent(
            "first", [[("leaf", {"value": "first 1"})], [("leaf", {"value": "first 2"})]], [guarded], note
        )
        rounds = [[("leaf", {"value": "second 1"}), ("ask_deep", {"topic": "x"})], [("leaf", {"value": "second 2"})]]
        second = steady_agent("second", rounds, [guarded, ask_deep], note)

        async def ask_both(topic: str) -> str:
            runs = await asyncio.gather(first.run(topic), second.run(topic))
            return " / ".join(run.output for run in runs)

        return steady_agent(
            "outer", [[("ask_both", {"topic": "t"}), ("leaf", {"value": "own"})]], [ask_both, guarded], note
        )

    def plain_agent(self) -> Agent[Any, Any]:
        """One agent with one call, inside a tool that does not look as if it ran agents."""

        def leaf(value: str) -> str:
            self.ran[value] += 1
            return f"did {value}"

        agents = {"one": steady_agent("one", [[("leaf", {"value": "1"})]], [Tool(leaf, requires_approval=True)])}

        async def ask(topic: str) -> str:
            return (await agents["one"].run(topic)).output

        return steady_agent("outer", [[("ask", {"topic": "t"})]], [ask])


@pytest.fixture(autouse=True)
def brief_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation, "QUIET_SECONDS", 0.002)


LEAVES = {"first 1", "first 2", "second 1", "second 2", "deep 1", "own"}
REJECTED = "second 2"
MODELS = {"first": 3, "second": 3, "deep": 2, "outer": 2}


async def decide(desk: Desk, step: Waiting, doubts: list[ApprovalRequest]) -> None:
    """Accept everything but one leaf. Nobody repeats a call that may have run."""
    for request in step.batch.requests:
        choice = Choice.REJECT if request.call.args.get("value") == REJECTED else Choice.ACCEPT
        if request.kind is RequestKind.MAY_HAVE_RUN:
            doubts.append(request)
            choice = Choice.SKIP
        if request.state is RequestState.PENDING and not request.held:
            await desk.decide(Click(request.id, choice, ADA, step.batch.place.channel))


async def play(
    store: Store, clock: HandClock, dies_after: int, *, plain: bool = False, late: bool = False
) -> tuple[World, list[ApprovalRequest], str, int]:
    """Play the turn to its end; the process dies once, after so many transactions of its steps."""
    world, doubts, desk = World(Counter(), Counter()), list[ApprovalRequest](), Desk(store, clock)
    turn = in_thread(next(_threads))
    await store.run(lambda tx: tx.insert_turn(turn))
    await store.run(lambda tx: tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING))
    mortal = MortalStore(store, dies_after, late)
    agent = world.plain_agent if plain else world.agent
    runner = AgentRunner(agent(), mortal, clock)
    while True:
        current = await store.run(lambda tx: tx.turn(turn.id))
        assert isinstance(current, Turn)
        try:
            step = await runner.advance(current)
        except BaseException:
            assert mortal.left <= 0, "only the death of the process ends a step"
            runner = AgentRunner(agent(), store, clock)
            continue
        if isinstance(step, Finished):
            used = dies_after - mortal.left
            return world, doubts, step.text, used
        await store.run(lambda tx, batch=step.batch: desk.open(tx, batch))
        await decide(desk, step, doubts)


async def test_without_a_crash_each_call_runs_once(store: Store, clock: HandClock) -> None:
    world, doubts, text, _ = await play(store, clock, 10**6)
    assert dict(world.ran) == dict.fromkeys(LEAVES - {REJECTED}, 1)
    assert dict(world.asked) == MODELS
    assert not doubts
    assert "first: did first 1; did first 2 / second: did second 1; deep: did deep 1; Rejected by user Ada" in text


async def test_killed_after_any_transaction_each_call_still_runs_at_most_once(store: Store, clock: HandClock) -> None:
    """`make soak` tries each of them."""
    _, _, _, all_of_them = await play(store, clock, 10**6)
    for dies_after in range(1, all_of_them, 1 if SOAK else 11):
        world, doubts, text, _ = await play(store, clock, dies_after, late=dies_after % 2 == 0)
        skipped = {str(request.call.args.get("value")) for request in doubts}
        assert all(count == 1 for count in world.ran.values()), (dies_after, world.ran)
        assert LEAVES - {REJECTED} - skipped <= set(world.ran), (dies_after, text)
        assert skipped <= LEAVES, "only leaves may have run"
        repeated = {name: world.asked[name] - count for name, count in MODELS.items() if world.asked[name] != count}
        assert all(0 < more <= 1 for more in repeated.values()), (dies_after, repeated)


async def test_a_tool_that_was_not_known_to_run_agents_is_not_in_doubt_once_it_has_run_one(
    store: Store, clock: HandClock
) -> None:
    """Each transaction is tried; the death right after it only where the later one left a doubt, and in `make soak`."""
    _, _, _, all_of_them = await play(store, clock, 10**6, plain=True)
    in_doubt: Counter[str] = Counter()
    for dies_after in range(1, all_of_them):
        for late in (True, False):
            world, doubts, _, _ = await play(store, clock, dies_after, plain=True, late=late)
            assert all(count == 1 for count in world.ran.values()), (dies_after, world.ran)
            assert len(doubts) <= 1
            in_doubt.update(request.call.tool for request in doubts)
            if not doubts and not SOAK:
                break
    # The leaf: it had started, or had run. The tool: it had started, or was about to run its first agent.
    assert in_doubt == {"leaf": 2, "ask": 2}
