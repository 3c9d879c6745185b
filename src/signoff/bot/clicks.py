"""What a click on a card leads to: the desk decides, and whoever clicked gets an answer within Discord's three seconds.

Knows how to answer, not who may decide. Nothing raised here goes further: the library would swallow it, and the person
would see Discord's "This interaction failed" without a word why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import discord

from signoff.approvals.model import Batch, Choice
from signoff.bot import people, quoting
from signoff.bot.approval_view import CLAIMED, parse, render
from signoff.bot.delivery import NOBODY, Failure
from signoff.bot.ports import Desk, Now
from signoff.cards import words
from signoff.cards.model import Line
from signoff.errors import AlreadySettled, CardFailed, NotAllowed, SignoffError, UnknownRequest

log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds to wait for the desk before asking Discord for more time; its own limit is three."""

BOTS: Line = ("Bots cannot decide.",)

Refresh = Callable[[Batch], Awaitable[None]]


class Clicks:
    """Answers every click on a button of ours."""

    def __init__(self, desk: Desk, refresh: Refresh, now: Now, patience: float = PATIENCE) -> None:
        self._desk = desk
        self._refresh = refresh
        self._now = now
        self._patience = patience

    async def click(self, interaction: discord.Interaction[Any], choice: Choice, target: str) -> None:
        try:
            await self._click(interaction, choice, target)
        except Failure as error:
            log.warning("a click by %s on %s got no answer: %s", interaction.user, target, error)
        except Exception:
            log.exception("a click on %s failed", target)

    async def unclaimed(self, interaction: discord.Interaction[Any]) -> None:
        """The fallback for components that no button took: gone from the message meanwhile, forged, or very old.

        An id that reads as one of ours goes through the desk like any other: it says who decided, or that it knows of
        no such request. But where the card still has buttons and this is none of them, it was not offered.
        """
        if interaction.type is not discord.InteractionType.component or interaction.extras.get(CLAIMED):
            return
        located = parse((interaction.data or {}).get("custom_id"))
        if located is not None and not _has_buttons(interaction.message):
            await self.click(interaction, *located)
            return
        try:
            await _tell(interaction, words.UNKNOWN_REQUEST)
        except Failure as error:
            log.info("an unknown component was not answered: %s", error)

    async def _click(self, interaction: discord.Interaction[Any], choice: Choice, target: str) -> None:
        result = await self._decide(interaction, choice, target)
        if isinstance(result, Batch):
            await self._show(interaction, result)
        else:
            await _tell(interaction, result)

    async def _decide(self, interaction: discord.Interaction[Any], choice: Choice, target: str) -> Batch | Line:
        """The batch as this click left it, or what to tell the person if it did not count."""
        actor = people.clicker(interaction)
        if actor is None or interaction.channel_id is None:
            return words.UNKNOWN_REQUEST
        if actor.is_bot:
            return BOTS
        try:
            card = str(interaction.message.id) if interaction.message else None
            decision = self._desk.decide(target, choice, actor, str(interaction.channel_id), card)
            deciding = asyncio.ensure_future(decision)
            await self._keep_open(interaction, deciding)
            return (await deciding).batch
        except AlreadySettled as error:
            return words.already_settled(error.batch, target)
        except NotAllowed as error:
            return words.not_allowed(error.batch, target)
        except UnknownRequest:
            return words.UNKNOWN_REQUEST
        except Exception:
            log.exception("the desk failed on a click by %s on %s", actor.id, target)
            return words.NOT_SAVED

    async def _keep_open(self, interaction: discord.Interaction[Any], deciding: asyncio.Future[Any]) -> None:
        """Ask for more time if the desk is slow. The decision itself is never given up: it may be on its way."""
        done, _ = await asyncio.wait({deciding}, timeout=self._patience)
        if not done:
            try:
                await interaction.response.defer()
            except Failure as error:
                log.warning("could not ask for more time: %s", error)

    async def _show(self, interaction: discord.Interaction[Any], batch: Batch) -> None:
        """Answer the click that counted with the card as it now stands; by a plain edit if that is refused."""
        try:
            await self._edit(interaction, batch)
        except (*Failure, CardFailed) as error:
            log.warning("the answer to the deciding click failed, editing the card instead: %s", error)
            # A click may come before the store has heard which message the card became.
            clicked = str(interaction.message.id) if interaction.message else None
            await self._refresh(replace(batch, card=batch.card or clicked))
        if batch.settled:
            try:
                await self._desk.mark_card_final(batch.id)
            except SignoffError:
                # The decision stands; recovery will look at the card once more.
                log.exception("card of %s not marked as final", batch.id)

    async def _edit(self, interaction: discord.Interaction[Any], batch: Batch) -> None:
        rendered = render(batch, self._now())
        changes: dict[str, Any] = {"view": rendered.view, "allowed_mentions": NOBODY}
        if rendered.card.files:
            # Sent again, byte for byte, because a component may only show a file that came with the same answer.
            changes["attachments"] = rendered.files()
        if interaction.response.is_done():
            await interaction.edit_original_response(**changes)
        else:
            await interaction.response.edit_message(**changes)


def _has_buttons(message: discord.Message | None) -> bool:
    waiting: list[object] = list(message.components) if message else []
    while waiting:
        component = waiting.pop()
        if isinstance(component, discord.Button):
            return True
        waiting += getattr(component, "children", [])
    return False


async def _tell(interaction: discord.Interaction[Any], said: Line) -> None:
    """Say something that only the person who clicked can see."""
    text = quoting.line(said)
    if interaction.response.is_done():
        await interaction.followup.send(text, ephemeral=True, allowed_mentions=NOBODY, suppress_embeds=True)
    else:
        await interaction.response.send_message(text, ephemeral=True, allowed_mentions=NOBODY, suppress_embeds=True)
