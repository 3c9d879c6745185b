"""Answering an interaction: in time, privately or on the message that was pressed, as its first answer or a later one.

Whether it is the first is looked up at every answer, since slow work takes the first one to ask for more time. Nothing
pings. Words nothing and decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, TypeVar

import discord

from signoff.bot.sending import NOBODY, Failure, while_open

log = logging.getLogger(__name__)

T = TypeVar("T")


async def in_time(interaction: discord.Interaction[Any], work: Awaitable[T], patience: float) -> T:
    """Ask Discord for more time if the work takes longer. It is never given up: it may be on its way, or half done."""
    working = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({working}, timeout=patience)
    if not done:
        try:
            # Private for a command, whose answer is a new message; for a press nothing is seen until it is changed.
            await while_open(interaction.client, interaction.response.defer(ephemeral=True))
        except Failure as error:
            log.warning("could not ask for more time: %s", error)
    return await working


async def whisper(interaction: discord.Interaction[Any], text: str, file: discord.File | None = None) -> None:
    """Say something that only this person can see."""
    more: dict[str, Any] = {} if file is None else {"file": file}
    await show_privately(interaction, content=text, suppress_embeds=True, **more)


async def show_privately(interaction: discord.Interaction[Any], **what: Any) -> None:
    """A message that only this person can see: a text or a view, as the library takes them."""

    async def send() -> None:
        post = interaction.followup.send if interaction.response.is_done() else interaction.response.send_message
        await post(ephemeral=True, allowed_mentions=NOBODY, **what)

    await while_open(interaction.client, send())


async def redraw(interaction: discord.Interaction[Any], view: discord.ui.LayoutView, **more: Any) -> None:
    """Change the message that was pressed."""

    async def edit() -> None:
        late = interaction.response.is_done()
        change = interaction.edit_original_response if late else interaction.response.edit_message
        await change(view=view, allowed_mentions=NOBODY, **more)

    await while_open(interaction.client, edit())


async def open_form(interaction: discord.Interaction[Any], form: discord.ui.Modal) -> None:
    await while_open(interaction.client, interaction.response.send_modal(form))
