"""An ordinary discord.py client for tests, with helpers to start it and to wait for the events that it gets."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import discord
from discord import app_commands

from discord_sandbox import Plan, discord_py

TOKEN = Plan.token
PATIENCE = 60.0
"""Seconds to wait for things that normally take a fraction of one: these machines are noisy."""
CHAT = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)


class Bot(discord.Client):
    """An ordinary client that only stores what it hears."""

    def __init__(self, intents: discord.Intents = CHAT, **options: object) -> None:
        super().__init__(intents=intents, **options)  # type: ignore[arg-type]
        self.tree = app_commands.CommandTree(self)
        self.heard: list[discord.Message] = []
        self.events: list[str] = []
        self.interactions: list[discord.Interaction] = []
        self.answer: Callable[[discord.Interaction], Awaitable[object]] | None = None
        self._connection.guild_ready_timeout = 0.05

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Skip the five seconds that Discord requires between identifies; the sandbox does not."""

    async def on_socket_event_type(self, name: str) -> None:
        self.events.append(name)

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.interactions.append(interaction)
        if self.answer is not None:
            await self.answer(interaction)

    async def hears(self, text: str) -> discord.Message:
        await until(lambda: any(text in message.content for message in self.heard))
        return next(message for message in self.heard if text in message.content)

    async def receives(self, event: str, times: int = 1) -> None:
        await until(lambda: self.events.count(event) >= times)


async def until(condition: Callable[[], object], timeout: float = PATIENCE) -> None:
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110 - the client has no event for most of this
            await asyncio.sleep(0.005)


def running(bot: discord.Client, token: str = TOKEN) -> AbstractAsyncContextManager[None]:
    """Logs in, waits until ready, and leaves no task behind."""
    return discord_py.running(bot, token, timeout=PATIENCE)


def text_channel(bot: discord.Client, name: str = "general") -> discord.TextChannel:
    return next(channel for channel in bot.get_all_channels() if channel.name == name)  # type: ignore[return-value]
