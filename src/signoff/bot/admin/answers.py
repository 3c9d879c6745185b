"""Private answers: seen by one person, no pings, in time, and whole however long they are. Words nothing itself."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import discord

from signoff.bot import quoting
from signoff.bot.delivery import NOBODY, Failure
from signoff.bot.split import LIMIT, sendable, split
from signoff.cards.visible import visible

log = logging.getLogger(__name__)

T = TypeVar("T")
PATIENCE = 1.5
"""Seconds before Discord is asked for more time; its own limit is three, and the way there counts."""
MOST_PARTS = 3
"""What takes more messages than this is attached."""
ATTACHED = "This is too long for messages, so it is attached."
SAYING = 1500


async def in_time(interaction: discord.Interaction[Any], work: Awaitable[T], *, thinking: bool = True) -> T:
    """Await the work, asking Discord for more time if it is slow. It is never given up: it may be half done."""
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=PATIENCE)
    if not done:
        try:
            await interaction.response.defer(ephemeral=True, thinking=thinking)
        except Failure as error:
            log.warning("could not ask for more time: %s", error)
    return await task


async def tell(interaction: discord.Interaction[Any], text: str, *, name: str = "signoff") -> None:
    """Markdown for one person: in a few messages, or as a file called `name`."""
    whole = sendable(text).strip() or "Nothing."
    parts = split(whole) if len(whole) <= LIMIT * MOST_PARTS else []
    if 0 < len(parts) <= MOST_PARTS:
        for part in parts:
            await _send(interaction, part)
        return
    await _send(interaction, ATTACHED, file=discord.File(io.BytesIO(whole.encode()), filename=f"{name}.md"))


def inert(text: str) -> str:
    """Words that may hold something foreign, as plain text of bounded length."""
    return quoting.escape(visible(text[:SAYING]).text[:SAYING])


async def _send(interaction: discord.Interaction[Any], text: str, **more: Any) -> None:
    how: dict[str, Any] = {"ephemeral": True, "allowed_mentions": NOBODY, "suppress_embeds": True, **more}
    if interaction.response.is_done():
        await interaction.followup.send(text, **how)
    else:
        await interaction.response.send_message(text, **how)
