"""Presses of the Stop button on a status message: each gets a private response.

Who may stop a run is checked at the press, by `turns.pausing`.
"""

from __future__ import annotations

import logging
from typing import Any

import discord

from signoff.approvals.errors import DeskError
from signoff.bot.responses import PATIENCE, Visit, in_time, tell, visit
from signoff.bot.sending import Failure
from signoff.cards.model import Line
from signoff.text.visible import visible
from signoff.turns.administration import Administration

log = logging.getLogger(__name__)

STOPPED: Line = ("Stopped.",)
ENDED: Line = ("This run has already ended.",)
FAILED: Line = ("The run may not be stopped: something failed on my side. Try again; the reason is in the bot's log.",)
UNAVAILABLE: Line = ("This bot cannot stop runs.",)


class Stopping:
    def __init__(self, administration: Administration | None, patience: float = PATIENCE) -> None:
        self._administration = administration
        self._patience = patience

    async def press(self, interaction: discord.Interaction[Any], turn_id: str) -> None:
        try:
            await tell(interaction, await self._stop(interaction, turn_id))
        except Failure as error:
            log.warning("a press of Stop by %s on %s got no response: %s", interaction.user.id, turn_id, error)

    async def _stop(self, interaction: discord.Interaction[Any], turn_id: str) -> Line:
        visitor = visit(interaction)
        if not isinstance(visitor, Visit):
            return visitor
        if self._administration is None:
            return UNAVAILABLE
        try:
            stopping = self._administration.stop_turn(visitor.actor, turn_id)
            return STOPPED if await in_time(interaction, stopping, self._patience) else ENDED
        except DeskError as refusal:
            return (visible(str(refusal)).text,)
        except Exception:
            log.exception("the run %s was not stopped", turn_id)
            return FAILED
