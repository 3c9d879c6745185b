"""One sandbox and one real bot, connected by real sockets, with a desk and a driver that record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from discord_sandbox import Person, Plan, SandboxClient
from discord_sandbox.discord_py import knows_its_servers
from discord_sandbox.seen import SeenMessage
from signoff.approvals.edits import Editor
from signoff.approvals.model import Actor, Batch, Place
from signoff.bot.access import Access
from signoff.bot.client import Bot, SignoffClient
from signoff.bot.directory import DiscordDirectory
from signoff.bot.front_end import DiscordFrontEnd
from signoff.cards.actions import Offers
from signoff.turns.listening import Listening
from signoff.turns.model import Turn
from tests.rigs.bot_fakes import EchoReviser, RecordingDesk, RecordingDriver

TOKEN = Plan.token
PATIENCE = 60.0
"""Seconds to wait for things that normally take a fraction of one: these machines are noisy."""


async def until(condition: Callable[[], object], timeout: float = PATIENCE) -> None:
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@dataclass
class Rig:
    """One sandbox and one bot."""

    sandbox: SandboxClient
    server: str
    desk: RecordingDesk = field(default_factory=RecordingDesk)
    driver: RecordingDriver = field(default_factory=RecordingDriver)
    access: Access = field(default_factory=Access)
    reviser: EchoReviser | None = None
    """If set, arguments can be edited."""
    offers: Offers = field(default_factory=Offers)
    listening: Listening | None = None
    """If set, mentions that were sent before the bot ran are looked for."""
    catch_up: float = 3600.0
    client: SignoffClient = field(init=False)
    front_end: DiscordFrontEnd = field(init=False)
    bot: Bot = field(init=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SignoffClient]:
        self.client = SignoffClient(guild_ready_timeout=0.05)
        self.desk.directory = DiscordDirectory(self.client)
        editor = Editor(self.desk, self.reviser) if self.reviser else None
        self.front_end = DiscordFrontEnd(self.client, replace(self.offers, edit=editor is not None), time.time)
        self.bot = Bot(
            self.client,
            self.front_end,
            self.desk,
            self.driver,
            self.access,
            editor=editor,
            listening=self.listening,
            catch_up=self.catch_up,
        )
        task = asyncio.create_task(self.bot.run(TOKEN))
        try:
            await until(lambda: knows_its_servers(self.client) or task.done())
            if task.done():
                await task
            yield self.client
        finally:
            await self.client.close()
            await asyncio.gather(task, return_exceptions=True)

    async def hears(self, count: int = 1) -> None:
        """Wait until the bot has started this many turns."""
        await until(lambda: sum(1 for step in self.driver.order if step.startswith("go")) >= count)

    async def place(self, channel: str = "general") -> Place:
        found = str((await self.sandbox.channel(channel)).id)
        return Place(self.server, found, found)

    async def asker(self, name: str = "Max") -> Actor:
        person = await self.sandbox.person(name)
        return Actor(str(person.id), name, self.server)

    async def turn(self, person: Person, channel: str = "general", text: str = "hello") -> Turn:
        """Return a turn as a mention in the channel makes it, with the reply in the same channel."""
        said = await person.say(channel, text)
        place = await self.place(channel)
        return Turn(f"{place.channel}-{said.id}", place, str(said.id), await self.asker(person.name), text, 0.0)


async def show(rig: Rig, batch: Batch) -> tuple[Batch, SeenMessage]:
    """Post a card as the driver does, and return it as Max sees it."""
    card = await rig.front_end.post_card(batch)
    posted = rig.desk.open(replace(batch, card_message=card))
    max_ = await rig.sandbox.person("Max")
    return posted, await max_.wait_for_message(batch.place.channel, lambda m: str(m.id) == card)
