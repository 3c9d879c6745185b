"""Shows a turn to people: its card, the settled card, its reply, reminders and notices, with retries.

The store keeps what was shown, so that nothing is shown twice and the next start shows the rest. This module does not
decide when a turn runs: it claims nothing, moves no turn and starts no task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from signoff.approvals.desk import Desk
from signoff.approvals.errors import Refused
from signoff.approvals.model import Batch
from signoff.errors import CardFailed
from signoff.turns import messages
from signoff.turns.model import Turn
from signoff.turns.notifying import Notifying
from signoff.turns.ports import FrontEnd, TurnStore

log = logging.getLogger(__name__)

CLICK_GRACE = 4.0
"""Seconds that the settling click has to update its card. After that, `finish_card` updates it."""
DELAYS = (0.0, 1.0, 5.0, 60.0, 600.0, 3600.0)
"""Seconds before each attempt, more than an hour in all. After that, the next start of the program tries again."""


@dataclass(frozen=True)
class Delivery:
    store: TurnStore
    desk: Desk
    front: FrontEnd
    notifying: Notifying

    # Cards

    async def post_card(self, batch: Batch) -> None:
        """Post the card. If that fails, cancel the batch and say so: nobody could decide it."""
        try:
            card = await self.front.post_card(batch)
        except CardFailed as failure:
            await self._cancel(batch, str(failure))
        except Exception as error:
            log.exception("the card of %s could not be made", batch.id)
            await self._cancel(batch, f"something failed on my side ({type(error).__name__})")
        else:
            await self._steadily(f"the card of {batch.id} is not noted", lambda: self._posted(batch.id, card))
            await self.tell_approvers(batch)

    async def repost(self, batch_id: str) -> bool:
        """Post an open card again. Return False if it is no longer open.

        Raises Refused while the card is being posted for the first time.
        """
        batch = await self.store.run(lambda tx: tx.batch(batch_id))
        if batch is None or batch.settled:
            return False
        if batch.card_message is None:
            raise Refused("This card is still being posted. Try again in a moment.")
        card = await self.front.repost_card(batch)
        # Store the new card first: from then on only its clicks count.
        current = await self.desk.card_posted(batch_id, card)
        if card != batch.card_message:
            try:
                await self.front.retire_card(batch)
            except Exception:
                log.exception("the old card of %s could not be emptied", batch_id)
        if current and current.settled:
            await self.finish_card(current)
        return True

    async def _posted(self, batch_id: str, card: str) -> None:
        current = await self.desk.card_posted(batch_id, card)
        if current and current.settled:  # settled while the card was on its way
            await self.finish_card(current)

    async def _cancel(self, batch: Batch, why: str) -> None:
        async def work() -> None:
            await self.desk.cancel(batch.id, why)
            if turn := await self.store.run(lambda tx: tx.turn(batch.turn)):
                await self.say(turn, messages.not_asked(why))

        await self._steadily(f"the request {batch.id}, which nobody sees, is not cancelled", work)

    async def finish_card(self, batch: Batch) -> None:
        """Show the settled state on the card, unless the settling click has done so."""

        async def work() -> None:
            current = await self.store.run(lambda tx: tx.batch(batch.id))
            if current and current.card_message and not current.card_final:
                await self.front.refresh_card(current)
                await self.desk.mark_card_final(batch.id)

        if any(r.settlement and r.settlement.by for r in batch.requests):
            await asyncio.sleep(CLICK_GRACE)
        await self._steadily(f"the card of {batch.id} does not show its end", work)

    # Approvers

    async def tell_approvers(self, batch: Batch) -> None:
        """Tell the approvers in the ways that the batch names, and make late copies show the current state."""
        try:
            current = await self.notifying.announce(batch)
        except Exception:
            log.exception("the approvers of %s were not told; the next start tries again", batch.id)
            return
        if current and current.settled:
            await self.finish_card(current)

    async def escalated(self, batch: Batch) -> None:
        """Show an escalation on the card, and tell the people who may decide now, too."""
        drawn: Batch | None = None
        try:
            # Repeat until the card shows what is stored: a click may draw the same card at the same moment.
            while (latest := await self.store.run(lambda tx: tx.batch(batch.id))) and latest != drawn:
                await self.front.refresh_card(latest)
                drawn = latest
        except Exception:
            log.exception("the card of %s does not show its escalation", batch.id)
        await self.tell_approvers(batch)

    async def tidy(self, batch_id: str) -> None:
        """Remove the pings and reminders of a settled card."""
        await self._steadily(f"pings about {batch_id} are still there", lambda: self.notifying.tidy(batch_id))

    # Messages

    async def reply(self, turn: Turn, text: str) -> None:
        async def work() -> None:
            await self.front.reply(turn, text)
            await self.store.run(lambda tx: tx.set_reply_posted(turn.id))

        await self._steadily(f"the reply of turn {turn.id} is kept, but not posted", work)

    async def remind(self, batch: Batch) -> None:
        """Try once: nothing depends on a reminder."""
        try:
            if message := await self.front.remind(batch):
                await self.notifying.note_reminder(batch, message)
        except Exception:
            log.exception("the reminder of %s was not posted", batch.id)

    async def say(self, turn: Turn, text: str) -> None:
        """Post a notice. A failure is logged only, so that it does not end the turn's step."""
        try:
            await self.front.notice(turn, text)
        except Exception:
            log.exception("could not say to %s: %s", turn.place.channel, text)

    async def _steadily(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` and retry it later if it fails. Repeating is safe: store and front end do each thing only once."""
        failure: Exception | None = None
        for delay in DELAYS:
            await asyncio.sleep(delay)
            try:
                await work()
            except Exception as error:
                log.info("%s: %s", what, error)
                failure = error
            else:
                return
        log.error("%s, until the next start", what, exc_info=failure)
