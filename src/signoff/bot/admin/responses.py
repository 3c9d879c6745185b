"""Private responses of commands: in time, without pings, and never cut, however long they are."""

from __future__ import annotations

import io
from collections.abc import Awaitable
from typing import Any, TypeVar

import discord

from signoff.bot import quoting, responses
from signoff.bot.responses import whisper
from signoff.bot.split import LIMIT, sendable, split
from signoff.text.visible import visible

T = TypeVar("T")
PATIENCE = 1.5
"""Seconds to wait before asking Discord for more time. Discord's limit is three seconds, network time included."""
MOST_PARTS = 3
"""A response that needs more messages than this is attached as a file."""
ATTACHED = "The response is too long for messages, so it is attached."
SAYING = 1500


async def in_time(interaction: discord.Interaction[Any], work: Awaitable[T]) -> T:
    return await responses.in_time(interaction, work, PATIENCE)


async def tell(interaction: discord.Interaction[Any], text: str, *, name: str = "signoff") -> None:
    """Send markdown to one person: in a few messages, or as a file called `name`."""
    whole = sendable(text).strip() or "Nothing."
    parts = split(whole) if len(whole) <= LIMIT * MOST_PARTS else []
    if 0 < len(parts) <= MOST_PARTS:
        for part in parts:
            await whisper(interaction, part)
        return
    await whisper(interaction, ATTACHED, file=discord.File(io.BytesIO(whole.encode()), filename=f"{name}.md"))


def inert(text: str) -> str:
    """Escape text that may quote somebody, and bound its length."""
    return quoting.escape(visible(text[:SAYING]).text[:SAYING])
