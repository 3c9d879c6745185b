"""Shows a turn to people: its card, the settled card, its reply, reminders and notices, with retries.

The store keeps what was shown, so that nothing is shown twice and the next start shows the rest. This module does not
decide when a turn runs: it claims nothing, moves no turn and starts no task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from itertools import chain, repeat

from signoff.approvals.automatic import OwnMode
from signoff.approvals.desk import Desk
from signoff.approvals.errors import Refused
from signoff.approvals.model import Batch, RequestState
from signoff.dataclass import dataclass
from signoff.errors import CardDelayed, CardFailed, CopiesRefused, Undeliverable
from signoff.turns import messages
from signoff.turns.model import Turn, TurnState
from signoff.turns.notifying import Notifying
from signoff.turns.ports import FrontEnd, TurnStore, TurnTx
from signoff.turns.progress import EVERY, Changes

log = logging.getLogger(__name__)

CLICK_GRACE = 4.0
"""Seconds that the settling click has to update its card. After that, `finish_card` updates it."""
MOMENT = 1.0
"""Seconds after an accept before the card shows how the calls are doing. Most calls have ended by then."""
DELAYS = (0.0, 1.0, 5.0, 30.0, 60.0, 60.0, 60.0, 600.0, 3600.0)
"""Seconds before each attempt, more than an hour in all. After that, the next start of the program tries again.

Several attempts fall into the first minutes, because a card may be open for only five.
"""

CARD_DELAYS = (5.0, 15.0, 30.0, 60.0)
"""Seconds before each further attempt to post a card while Discord is failing or busy. The last one repeats."""


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """What a reply says besides its text."""

    granted: Sequence[Batch]
    """The batches that got no card, because remembered decisions settled them."""
    own_mode: OwnMode | None
    """The mode of the schedule that started the turn."""

    @classmethod
    def read(cls, tx: TurnTx, turn_id: str) -> ReplyFacts:
        return cls(tx.settled_by_grants(turn_id), tx.own_mode(turn_id))


@dataclass(frozen=True)
class Delivery:
    store: TurnStore
    desk: Desk
    front: FrontEnd
    notifying: Notifying
    changes: Changes = field(default_factory=Changes)

    # Cards

    async def post_card(self, batch: Batch) -> None:
        """Post the card. If that fails for good, cancel the batch and say so: nobody could decide it."""
        try:
            card = await self._shown(batch)
        except CardFailed as failure:
            await self._cancel(batch, str(failure))
        except Exception as error:
            log.exception("the card of %s could not be made", batch.id)
            await self._cancel(batch, f"something failed on my side ({type(error).__name__})")
        else:
            if card is not None:
                await self._steadily(f"the card of {batch.id} is not noted", lambda: self._posted(batch.id, card))
                if batch.untold:
                    await self.tell_approvers(batch)

    async def _shown(self, batch: Batch) -> str | None:
        """Post the card, again and again until its deadline while the front end is delayed.

        Returns None if the requests were settled before anybody saw them. If they expired, the asker is told why.
        """
        for delay in chain(CARD_DELAYS, repeat(CARD_DELAYS[-1])):
            try:
                return await self.front.post_card(batch)
            except CardDelayed as delayed:
                log.warning("the card of %s is posted again in %g seconds: %s", batch.id, delay, delayed)
                why = str(delayed)
            await asyncio.sleep(max(min(delay, batch.deadline - self.desk.clock.now()), 0.0))
            if self.desk.clock.now() >= batch.deadline:
                await self.desk.expire_due()
            current = await self.store.run(lambda tx: tx.batch(batch.id))
            if current is None or current.settled:
                expired = current and any(r.state is RequestState.EXPIRED for r in current.requests)
                if expired and (turn := await self.store.run(lambda tx: tx.turn(batch.turn))):
                    await self.say(turn, messages.expired_unseen(why))
                return None
        return None

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
        settled = await self.desk.card_posted(batch_id, card)
        current = settled or await self.store.run(lambda tx: tx.batch(batch_id))
        if card != batch.card_message:
            try:
                await self.front.retire_card(batch)
                if current and current.copies:
                    await self.front.refresh_card(current)  # the copies link to the new card
            except Exception:
                log.exception("the old card of %s could not be emptied", batch_id)
        if settled:
            await self._show_again(settled)
        return True

    async def _show_again(self, batch: Batch) -> None:
        """Draw a card that was settled while it was posted again. `finish_card` follows its calls if they still run."""
        try:
            await self.front.refresh_card(batch)
            if batch.ended:
                await self.desk.mark_card_final(batch.id, batch.copies)
        except Exception:
            log.exception("the new card of %s does not show its end", batch.id)
        self.changes.ring(batch.turn)

    async def _posted(self, batch_id: str, card: str) -> None:
        if settled := await self.desk.card_posted(batch_id, card):  # while the card was on its way
            await self.finish_card(settled)

    async def _cancel(self, batch: Batch, why: str) -> None:
        async def work() -> None:
            await self.desk.cancel(batch.id, why)
            if turn := await self.store.run(lambda tx: tx.turn(batch.turn)):
                await self.say(turn, messages.not_asked(why))

        await self._steadily(f"the request {batch.id}, which nobody sees, is not cancelled", work)

    async def finish_card(self, batch: Batch) -> None:
        """Show the settled state on the card, unless the settling click has done so, and how the approved calls do.

        It edits the card only if something has changed, at most every `EVERY` seconds, until nothing more can change.
        """
        shown: Batch | None = None
        read: Batch | None = None
        finished = False

        async def work() -> None:
            nonlocal shown, read, finished
            current, read = read or await self.store.run(lambda tx: tx.batch(batch.id)), None
            finished = current is None or current.card_message is None or current.card_final
            if current is None or finished:
                return
            if current != shown:
                try:
                    await self.front.refresh_card(current)
                except Undeliverable as failure:
                    log.error("the card of %s stays as it is, and its buttons decide nothing: %s", batch.id, failure)
                    await self.desk.mark_card_final(batch.id, current.copies)
                    finished = True
                    return
                except CopiesRefused as failure:
                    log.error("a copy of the card of %s stays as it is and decides nothing: %s", batch.id, failure)
                    for channel, message in failure.copies:
                        await self.desk.copies_deleted(channel, message)
                shown = current
            if current.ended:
                finished = await self.desk.mark_card_final(batch.id, current.copies)
                if not finished:  # a copy was posted meanwhile, and is drawn next
                    self.changes.ring(batch.turn)

        if any(r.settlement and r.settlement.by for r in batch.requests):
            read = await self._leave_to_click(batch)
        while not finished:
            changed = self.changes.next(batch.turn)
            if not await self._steadily(f"the card of {batch.id} does not show its end", work):
                return
            if not finished:
                await asyncio.sleep(EVERY)
                await changed.wait()

    async def _leave_to_click(self, batch: Batch) -> Batch | None:
        """Wait while the settling click updates the card. If calls run meanwhile, wait only for a moment.

        Returns the batch if it was read just now.
        """
        changed = self.changes.next(batch.turn)
        if not any(r.state is RequestState.APPROVED for r in batch.requests):
            await asyncio.sleep(CLICK_GRACE)
            return None
        await asyncio.sleep(MOMENT)
        current = await self.store.run(lambda tx: tx.batch(batch.id))
        if current is None or current.card_final or any(r.run for r in current.requests):
            return current
        try:
            await asyncio.wait_for(changed.wait(), max(CLICK_GRACE - MOMENT, 0.0))
        except TimeoutError:
            pass
        return None

    # Approvers

    async def tell_approvers(self, batch: Batch) -> None:
        """Tell the approvers in the ways that the batch names, and make late copies show the current state."""

        async def work() -> None:
            current = await self.notifying.announce(batch)
            if current and current.settled:
                await self.finish_card(current)

        await self._steadily(f"the approvers of {batch.id} are not told", work)

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

    async def reply(self, turn: Turn, text: str, facts: ReplyFacts | None = None) -> None:
        # A front end takes the markup of a finished turn's reply only: other texts are shown as they are.
        markup = turn.state is TurnState.DONE

        async def work() -> None:
            known = facts or await self.store.run(lambda tx: ReplyFacts.read(tx, turn.id))
            mode = self.desk.modes.of_run(known.own_mode).mode
            lines = [*messages.mode_lines(mode), *messages.grant_lines(known.granted, markup=markup)]
            said = messages.with_lines(text, lines, markup=markup)
            try:
                await self.front.reply(turn, said)
            except Undeliverable as failure:
                # A later start must not repeat it either: Discord bans bots that repeat refused requests.
                log.error("the reply of turn %s is kept, but cannot be posted: %s", turn.id, failure)
            await self.store.run(lambda tx: tx.set_reply_posted(turn.id))

        await self._steadily(f"the reply of turn {turn.id} is kept, but not posted", work)

    async def remove_status(self, turn: Turn) -> None:
        """Delete the turn's status message. Without an id, nobody knows whether it was posted: only forget it."""

        async def work() -> None:
            message = turn.status_message or ""
            if message:
                try:
                    await self.front.remove_status(turn)
                except Undeliverable as failure:
                    log.warning("the status message of turn %s stays: %s", turn.id, failure)
            await self.store.run(lambda tx: tx.clear_status(turn.id, message))

        await self._steadily(f"the status message of turn {turn.id} is not removed", work)

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

    async def _steadily(self, what: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Run `work` and retry it later if it fails. Repeating is safe: store and front end do each thing only once.

        Returns False if every attempt failed.
        """
        failure: Exception | None = None
        for delay in DELAYS:
            if delay:
                await asyncio.sleep(delay)
            try:
                await work()
            except Exception as error:
                log.info("%s: %s", what, error)
                failure = error
            else:
                return True
        log.error("%s, until the next start", what, exc_info=failure)
        return False
