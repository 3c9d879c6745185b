"""Cards that somebody deleted, alone or with their thread or channel: the request is cancelled, and that is said.

Knows message ids and asks the desk; which of them is a card, and whether it is still open, only the desk knows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import discord

from signoff.approvals.model import Batch
from signoff.bot import delivery
from signoff.bot.delivery import Failure, nonce
from signoff.bot.open_cards import OpenCards
from signoff.bot.places import origin
from signoff.bot.ports import Desk

log = logging.getLogger(__name__)

SAID = "{what} was deleted, so the request on it is cancelled. Nothing on it will run."


class LostCards:
    def __init__(self, client: discord.Client, desk: Desk, cards: OpenCards) -> None:
        self._client = client
        self._desk = desk
        self._cards = cards

    async def messages(self, channel: int, messages: Iterable[int]) -> None:
        for message in messages:
            self._cards.forget(str(message))
            batch = await self._lost(str(message), "the card was deleted")
            if batch is not None:
                await self._say(batch, str(channel), SAID.format(what="The approval card"))

    async def thread(self, thread: int, parent: int) -> None:
        for card in self._cards.close(str(thread)):
            batch = await self._lost(card, "the thread with the card was deleted")
            if batch is not None:
                await self._say(batch, str(parent), SAID.format(what="The thread with the approval card"))

    async def channel(self, channel: int) -> None:
        for card in self._cards.close(str(channel)):
            batch = await self._lost(card, "the channel with the card was deleted")
            if batch is not None:
                await self._whisper(batch, SAID.format(what="The channel with the approval card"))

    async def _lost(self, card: str, reason: str) -> Batch | None:
        try:
            return await self._desk.card_lost(card, reason)
        except Exception:
            # Still open, and still closed in effect: nobody can accept it, and its deadline ends it.
            log.exception("card %s is gone, but its request could not be cancelled", card)
            return None

    async def _say(self, batch: Batch, channel: str, text: str) -> None:
        source = origin(batch.turn)
        answers = source.message if source is not None and source.channel == channel else None
        try:
            await delivery.send(self._client, channel, text, key=nonce("lost", batch.id), answers=answers)
        except Failure as error:
            log.info("could not say in %s that a card was lost: %s", channel, error)
            if delivery.lasting(error):
                await self._whisper(batch, text)

    async def _whisper(self, batch: Batch, text: str) -> None:
        try:
            direct = await self._client.create_dm(discord.Object(int(batch.asker.id)))
            await delivery.send(self._client, str(direct.id), text, key=nonce("lost", batch.id, "direct"))
        except Failure as error:
            log.info("could not tell %s that a card was lost: %s", batch.asker.id, error)
