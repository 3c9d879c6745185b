"""Roles and people who may decide, and are gone while a card is open: the card changes, and the admins are told.

Asks the desk, which knows what is open and ends what nobody can decide any more; the driver shows that on its card.
People who leave are not told to us without a privileged intent: they are noticed at the start, or by their vote.
"""

from __future__ import annotations

import logging

import discord

from signoff.approvals.model import Batch
from signoff.bot import sending
from signoff.bot.ports import Desk
from signoff.bot.responses import Refresh
from signoff.bot.sending import Failure, nonce
from signoff.errors import SignoffError
from signoff.turns.messages import missing_approvers_notice

log = logging.getLogger(__name__)


class LostApprovers:
    def __init__(self, client: discord.Client, desk: Desk, refresh: Refresh) -> None:
        self._client = client
        self._desk = desk
        self._refresh = refresh

    async def role(self, role: int) -> None:
        await self.look(f"role:{role}")

    async def look(self, naming: str = "") -> None:
        """Whether everybody is still there, or those whom the deletion of one role concerns."""
        try:
            changed = await self._desk.recheck_approvers(naming)
        except Exception:
            # Nothing is open to anybody by that: who is gone cannot click, and the deadline ends what is left.
            log.exception("could not look whether those who may decide are still there")
            return
        for batch in changed:
            await self._say(batch)
            if not batch.settled:
                await self._redraw(batch)

    async def _redraw(self, batch: Batch) -> None:
        drawn: Batch | None = None
        try:
            # Until it is what is stored: a click may draw the same card at the same moment.
            while (latest := await self._desk.look(batch.id, batch.asker, batch.place.channel, None)) != drawn:
                await self._refresh(latest)
                drawn = latest
        except SignoffError as error:
            log.warning("the card of %s does not show who is gone: %s", batch.id, error)

    async def _say(self, batch: Batch) -> None:
        words = missing_approvers_notice(batch)
        key = nonce("gone", batch.id, words)
        try:
            await sending.send(self._client, batch.place.channel, words, key=key, answers=batch.card_message)
        except Failure as error:
            log.warning("could not say in %s that an approver is gone: %s", batch.place.channel, error)
