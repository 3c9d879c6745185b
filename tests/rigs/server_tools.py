"""The Discord tools behind the real gate, with a real store and a real client against a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import discord
from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset

from discord_sandbox import Permission, Plan, SandboxClient, discord_py
from signoff.agent.runner import AgentRunner
from signoff.agent.tools.servers import discord_tools
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.model import Actor, Choice, Outcome, Place
from signoff.approvals.policy import Policy
from signoff.bot.client import SignoffClient
from signoff.bot.servers import DiscordServers
from signoff.gate.tool_slots import ToolSlots
from signoff.gate.tool_threads import ToolThreads
from signoff.store import Store
from signoff.turns.model import Finished, Turn, TurnState, Waiting
from tests.conftest import HandClock, make_turn
from tests.rigs.scripted import Script, calls

P = Permission
RIGHTS = int(
    P.VIEW_CHANNEL | P.SEND_MESSAGES | P.SEND_MESSAGES_IN_THREADS | P.READ_MESSAGE_HISTORY | P.CREATE_PUBLIC_THREADS
    | P.MANAGE_MESSAGES | P.PIN_MESSAGES | P.MANAGE_CHANNELS | P.MANAGE_ROLES | P.KICK_MEMBERS | P.BAN_MEMBERS
    | P.MODERATE_MEMBERS
)  # fmt: skip
"""Everything that the Discord tools need."""


class CurrentServers:
    """The servers of the test that runs: the tools are made once for all tests, because their schemas take time."""

    servers: DiscordServers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.servers, name)


CURRENT = CurrentServers()


@cache
def _tools() -> FunctionToolset[Any]:
    current: Any = CURRENT
    return FunctionToolset(discord_tools(["discord"], current))


@dataclass
class Moderated:
    """One sandbox, one client, and turns that a script drives."""

    sandbox: SandboxClient
    client: SignoffClient
    servers: DiscordServers
    store: Store
    clock: HandClock
    server: str
    policy: Policy = field(default_factory=Policy)
    script: Script = field(default_factory=lambda: Script(["done"]))
    turn: Turn = field(default_factory=make_turn)

    @property
    def tools(self) -> FunctionToolset[Any]:
        CURRENT.servers = self.servers
        return _tools()

    async def actor(self, name: str) -> Actor:
        return Actor(str((await self.sandbox.person(name)).id), name, self.server, manages_server=name == "Ada")

    async def id_of(self, name: str) -> str:
        return str((await self.sandbox.person(name)).id)

    async def place(self, channel: str = "general") -> Place:
        number = str((await self.sandbox.channel(channel)).id)
        return Place(self.server, number, f"{number}-{self.turn.id}")

    async def ask(
        self, tool: str, args: dict[str, Any], who: str = "Ada", server: str | None = None
    ) -> Waiting | Finished:
        """Let the model call one tool for somebody; return how the step ends."""
        self.script = Script([calls((tool, args)), "done"])
        self.turn = make_turn()
        place = await self.place()
        if server is not None:
            place = Place(server, place.channel, place.conversation)
        self.turn = make_turn(place=place, asker=await self.actor(who))
        await self.store.run(lambda tx: tx.insert_turn(self.turn))
        await self.store.run(lambda tx: tx.move(self.turn.id, TurnState.QUEUED, TurnState.RUNNING))
        return await self.advance()

    async def advance(self) -> Waiting | Finished:
        agent = Agent(self.script.model(), toolsets=[self.tools])
        slots = ToolSlots(60.0, threads=ToolThreads())
        runner = AgentRunner(agent, self.store, self.clock, self.policy, slots=slots)
        turn = await self.store.run(lambda tx: tx.turn(self.turn.id))
        assert turn
        step = await runner.advance(turn)
        if isinstance(step, Waiting):
            await self.store.run(lambda tx: self.desk.open(tx, step.batch))
        return step

    @property
    def desk(self) -> Desk:
        return Desk(self.store, self.clock)

    async def click(self, step: Waiting | Finished, choice: Choice = Choice.ACCEPT, who: str = "Ada") -> Outcome:
        assert isinstance(step, Waiting), self.result
        click = Click(step.batch.id, choice, await self.actor(who), self.turn.place.channel, revision=0)
        return await self.desk.decide(click)

    async def accept(self, step: Waiting | Finished) -> str:
        """Ada accepts; return what the model reads."""
        await self.click(step)
        await self.advance()
        return self.result

    async def run(self, tool: str, args: dict[str, Any], who: str = "Ada") -> str:
        """Ask, accept, and return what the model reads."""
        return await self.accept(await self.ask(tool, args, who))

    async def refused(self, tool: str, args: dict[str, Any], who: str = "Ada", server: str | None = None) -> str:
        """Ask, check that there is no card, and return what the model reads."""
        step = await self.ask(tool, args, who, server)
        assert isinstance(step, Finished), step.batch.requests[0].preview
        return self.result

    @property
    def result(self) -> str:
        return next(iter(self.script.results.values()))

    async def knows(self, condition: Callable[[discord.Guild], object]) -> None:
        """Wait until the gateway has told the client of a change."""
        async with asyncio.timeout(60):
            while not condition(self.client.guilds[0]):  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def bans(self) -> list[str]:
        calls = await self.sandbox.rest_calls("PUT", "/bans/")
        return [call["path"].rpartition("/")[2] for call in calls]


def preview_of(step: Waiting | Finished) -> str:
    assert isinstance(step, Waiting)
    return step.batch.requests[0].preview


@asynccontextmanager
async def moderated(sandbox: SandboxClient, store: Store, clock: HandClock) -> AsyncGenerator[Moderated]:
    await sandbox.change_role("Bot", permissions=RIGHTS)
    client = SignoffClient(guild_ready_timeout=0.05)
    servers = DiscordServers(client)
    async with discord_py.running(client, Plan.token):
        yield Moderated(sandbox, client, servers, store, clock, str(await sandbox.guild_id()))
