"""An agent whose tools are those of MCP servers, driven by hand, with a real store."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.toolsets import AbstractToolset

from signoff.agent.mcp import build_servers
from signoff.agent.runner import AgentRunner
from signoff.agent.setup import build_policy
from signoff.approvals.answering import Answering
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Batch, Choice, JsonObject, Place, Remember
from signoff.config.schema import Config, load_config
from signoff.store import Store
from signoff.turns.model import Step, TurnState, Waiting
from tests.conftest import ADA, PLACE, HandClock, make_turn
from tests.rigs.scripted import Answer, Script

RIGS = Path(__file__).parent


@dataclass
class Shop:
    """An agent whose only tools are those of the shop's server."""

    folder: Path
    store: Store
    clock: HandClock
    turns: int = 0
    place: Place = PLACE
    script: Script = field(default_factory=lambda: Script(["done"]))
    runner: AgentRunner | None = None
    desk: Desk = field(init=False)

    def __post_init__(self) -> None:
        self.desk = Desk(self.store, self.clock, grants=GrantTerms(Remember.SESSION))

    @property
    def ledger(self) -> list[dict[str, Any]]:
        file = self.folder / "ledger"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def done(self) -> list[dict[str, Any]]:
        return [entry for entry in self.ledger if "tool" in entry]

    @property
    def command(self) -> str:
        return self.command_of("shop_tools.py")

    def command_of(self, script: str) -> str:
        """Return the command of a server over stdio, as a configuration writes it."""
        return json.dumps([sys.executable, str(RIGS / script), str(self.folder / "ledger")])

    @asynccontextmanager
    async def served(self, script: str) -> AsyncGenerator[str]:
        """Run a server over HTTP, as a provider would. Yields its address."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(RIGS / script), str(self.folder / "ledger"), str(port)),
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(60):
                while True:
                    try:
                        _, writer = await asyncio.open_connection("127.0.0.1", port)
                        break
                    except OSError:
                        await asyncio.sleep(0.05)
            writer.close()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def config(self, text: str) -> Config:
        (self.folder / "signoff.toml").write_text(text, encoding="utf-8")
        return load_config(self.folder / "signoff.toml", required=True)

    def open(self, text: str) -> None:
        """Give the agent the servers of this configuration."""
        config = self.config(text)
        self.use(build_servers(config), config)

    def use(self, toolsets: list[AbstractToolset[Any]], config: Config | None = None) -> None:
        policy = build_policy(config or Config())
        agent = Agent(self.script.model(), toolsets=toolsets)
        self.runner = AgentRunner(agent, self.store, self.clock, policy)

    async def ask(self, *answers: Answer) -> Step:
        self.script.answers = list(answers)
        self.turns += 1
        turn = make_turn(f"turn{self.turns}", self.place)
        await self.store.run(lambda tx: tx.insert_turn(turn))
        await self.store.run(lambda tx: tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING))
        return await self.advance(turn.id)

    async def advance(self, turn_id: str) -> Step:
        assert self.runner
        turn = await self.store.run(lambda tx: tx.turn(turn_id))
        assert turn
        step = await self.runner.advance(turn)
        if isinstance(step, Waiting):
            await self.store.run(lambda tx: self.desk.open(tx, step.batch))
        else:
            await self.store.run(lambda tx: tx.move(turn_id, TurnState.RUNNING, TurnState.DONE))
        return step

    async def accept(self, step: Step, remember: Remember = Remember.NONE) -> Step:
        batch = batch_of(step)
        await self.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, self.place.channel, remember=remember))
        return await self.advance(batch.turn)

    async def answer(self, step: Step, answer: JsonObject) -> Step:
        """Answer what the call asks people."""
        batch = batch_of(step)
        await Answering(self.desk).answer(batch.requests[0].id, answer, ADA, self.place.channel, None)
        return await self.advance(batch.turn)

    async def decline(self, step: Step) -> Step:
        batch = batch_of(step)
        await self.desk.decide(Click(batch.requests[0].id, Choice.DECLINE, ADA, self.place.channel))
        return await self.advance(batch.turn)


def batch_of(step: Step) -> Batch:
    assert isinstance(step, Waiting), step
    return step.batch


@pytest.fixture
def shop(tmp_path: Path, store: Store, clock: HandClock) -> Shop:
    return Shop(tmp_path, store, clock)
