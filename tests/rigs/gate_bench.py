"""One turn through the runner and the gate, with a real store and a streamed model, driven by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, Tool

from signoff.agent.kept_runs import KeptRuns
from signoff.agent.runner import AgentRunner
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.approvals.model import Batch, Choice
from signoff.gate.pending_call import CallInfo, Preview, call_info
from signoff.store import Store
from signoff.turns.model import Step, Turn, TurnState, Waiting
from signoff.turns.ports import Progress
from tests.conftest import ADA, PLACE, HandClock, make_turn
from tests.rigs.scripted import Answer, Box, Script


@dataclass
class Bench:
    """One turn, driven by hand."""

    store: Store
    clock: HandClock
    desk: Desk
    box: Box = field(default_factory=Box)
    turn: Turn = field(default_factory=make_turn)
    script: Script = field(default_factory=lambda: Script(["done"]))
    runner: AgentRunner | None = None
    progress: Progress | None = None
    """Gets the reports of each step."""
    keeps: bool = True
    """Whether a run waits in memory for the decision. If not, it is run again from the store, as after a restart."""

    async def start(self, answers: list[Answer], tools: list[Any], **options: Any) -> Step:
        self.script = Script(answers)
        names = ("policy", "terms", "hold", "limits", "slots", "activity", "mask")
        settings = {name: options.pop(name) for name in names if name in options}
        agent = Agent(self.script.model(), instructions="Be brief.", tools=tools, **options)
        self.runner = AgentRunner(agent, self.store, self.clock, **settings)
        await self.store.run(lambda tx: tx.insert_turn(self.turn))
        await self.store.run(lambda tx: tx.move(self.turn.id, TurnState.QUEUED, TurnState.RUNNING))
        return await self.advance()

    async def advance(self) -> Step:
        assert self.runner
        turn = await self.store.run(lambda tx: tx.turn(self.turn.id))
        assert turn
        if not self.keeps:
            self.runner.kept.most = 0
        step = await self.runner.advance(turn, self.progress)
        if isinstance(step, Waiting):
            await self.store.run(lambda tx: self._wait(tx, step.batch))
        return step

    def _wait(self, tx: Any, batch: Batch) -> None:
        self.desk.open(tx, batch)
        tx.await_batch(self.turn.id, batch.id)

    def restart(self, **changes: Any) -> None:
        """Forget every run, as a restart does, and go on with a runner that differs in these fields."""
        assert self.runner
        self.runner = replace(self.runner, kept=KeptRuns(), **changes)

    async def decide(self, step: Step, choice: Choice, target: int | None = None) -> Step:
        assert isinstance(step, Waiting)
        where = step.batch.id if target is None else step.batch.requests[target].id
        shown = await self.store.run(lambda tx: tx.batch(step.batch.id))
        assert shown
        await self.desk.decide(Click(where, choice, ADA, PLACE.channel, revision=shown.revision))
        return await self.advance()


@pytest.fixture(params=["kept", pytest.param("stored", marks=pytest.mark.long)])
async def bench(request: pytest.FixtureRequest, store: Store, clock: HandClock) -> AsyncGenerator[Bench]:
    """Runs wait in memory for decisions, and once more, in the long tests, only in the store."""
    bench = Bench(store, clock, Desk(store, clock), keeps=request.param == "kept")
    yield bench
    if bench.runner:
        await bench.runner.quiesce(0)


def protected(box: Box, name: str = "danger") -> Tool:
    return Tool(box.tool(name), requires_approval=True)


def batch_of(step: Step) -> Batch:
    assert isinstance(step, Waiting)
    return step.batch


async def edit(bench: Bench, step: Step, args: dict[str, Any], which: int = 0) -> None:
    assert bench.runner
    request = batch_of(step).requests[which]
    await Editor(bench.desk, bench.runner).edit(request.id, args, request.call.digest, ADA, PLACE.channel, None)


async def accept(bench: Bench, step: Step) -> Step:
    return await bench.decide(step, Choice.ACCEPT)


class Shelf:
    """A thing with a state that a tool changes, previews and checks."""

    def __init__(self) -> None:
        self.state = "before"
        self.written: list[str] = []
        self.infos: list[CallInfo | None] = []

    def tool(self) -> Tool[Any]:
        def put(ctx: RunContext[Any], value: str) -> str:
            self.infos.append(call_info(ctx))
            self.written.append(value)
            return "put"

        async def preview(ctx: RunContext[Any], value: str) -> Preview:
            return Preview(f"- {self.state}\n+ {value}", {"shelf": self.state})

        return Tool(put, requires_approval=True, metadata={"preview": preview})
