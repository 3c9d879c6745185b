"""Tells approvers about open cards and escalations, and removes what told them once a card is settled.

The store keeps each message, so that nobody is told twice and the next start removes what is left. The notifier
knows how to reach people; this module knows what was said already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Protocol
from weakref import WeakValueDictionary

from signoff.approvals.desk import Desk
from signoff.approvals.model import Batch, CardCopy
from signoff.approvals.notify import DM, PING, copy_channels
from signoff.dataclass import dataclass
from signoff.errors import CardDelayed, CardFailed, NotDelivered
from signoff.turns.model import Notice
from signoff.turns.ports import TurnStore, TurnTx

log = logging.getLogger(__name__)

REMINDER = "reminder"
ESCALATION = "escalation"
LOOKED_FOR = 86400.0
"""Seconds after a card was opened in which copies that were not noted are looked for."""


class NotAllTold(NotDelivered):
    """Some approvers could not be told now, but may be told later."""

    def __init__(self, reason: str, sent: Sequence[Notice] = ()) -> None:
        super().__init__(reason)
        self.sent = sent
        """The messages to the others."""


class Notifier(Protocol):
    """The way to approvers. Everything may be called again after a crash and must then do no harm.

    `ping`, `send_directly` and `report_escalation` raise NotAllTold if calling again later may help.
    """

    async def post_copy(self, batch: Batch, channel: str) -> str:
        """Show the card in this channel too and return the message id. Raises CardFailed with a reason for people."""
        ...

    async def find_copy(self, batch: Batch, channel: str) -> str | None:
        """Return the message in this channel that still shows the card with buttons; None if there is none.

        Raises NotDelivered if that may be known later.
        """
        ...

    async def ping(self, batch: Batch, problems: Sequence[str]) -> Notice | None:
        """Name those who may decide in a message below the card, with what went wrong. None if it was not posted."""
        ...

    async def send_directly(self, batch: Batch, told: Collection[str]) -> tuple[Sequence[Notice], str]:
        """Send each approver a direct message, except in the channels `told`.

        Returns what was sent, and why somebody was not reached; empty if everybody was.
        """
        ...

    async def report_escalation(self, batch: Batch, kind: str, told: Collection[str] = ()) -> Sequence[Notice]:
        """Name those who may decide now, too, below the card and below each copy, except in the channels `told`.

        The notices get this kind.
        """
        ...

    async def remove(self, notice: Notice, batch: Batch) -> None:
        """Remove a message about a settled card, or change it into one line. Raises an error if that may work later."""
        ...


@dataclass(frozen=True)
class Notifying:
    store: TurnStore
    desk: Desk
    notifier: Notifier | None = None
    """None: this front end shows cards to nobody but the asker."""
    _telling: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary[str, asyncio.Lock])
    """Batch id -> the lock to hold while telling its approvers."""

    async def announce(self, batch: Batch) -> Batch | None:
        """Tell the approvers what they were not told yet. Returns the batch as it is afterwards.

        Raises CardDelayed or NotAllTold if something can be posted only later: call again.
        """
        if self.notifier is None:
            return None
        async with self._telling.setdefault(batch.id, asyncio.Lock()):
            current = await self._current(batch.id)
            if current is None or current.card_message is None:
                return None  # while the card is on its way, the approvers are told after it
            failure: Exception | None = None
            if current.settled and current.untold:
                await self._find_copies(current, self.notifier)
            if not current.settled:
                if not current.untold:
                    return None
                try:
                    while not await self._announced(current, self.notifier):
                        current = await self._current(batch.id) or current
                except Exception as error:
                    failure = error
        current = await self._current(batch.id)
        if current and current.settled:  # perhaps while the approvers were told
            await self.tidy(batch.id)
        elif failure:
            raise failure
        return current

    async def _announced(self, batch: Batch, notifier: Notifier) -> bool:
        """Tell the approvers about this state. Returns False if the card was escalated meanwhile: tell them again."""
        await self._announce(batch, notifier)

        def work(tx: TurnTx) -> bool:
            latest = tx.batch(batch.id)
            if latest and not latest.settled and _escalations(latest) != _escalations(batch):
                return False
            tx.set_untold(batch.id, False)
            return True

        return await self.store.run(work)

    async def _announce(self, batch: Batch, notifier: Notifier) -> None:
        notices = await self.store.run(lambda tx: tx.notices_of(batch.id))
        kinds = {notice.kind for notice in notices}
        delayed: CardDelayed | NotAllTold | None
        problems, delayed = await self._post_copies(batch, notifier)
        if DM in batch.notify:
            try:
                sent, problem = await notifier.send_directly(batch, {n.channel for n in notices if n.kind == DM})
            except NotAllTold as delay:
                sent, problem, delayed = delay.sent, "", delay
            await self._note(sent)
            problems += [problem] if problem else []
        if (problems or PING in batch.notify) and PING not in kinds:
            try:
                pinged = await notifier.ping(batch, problems)
                await self._note([pinged] if pinged else [])
            except NotAllTold as delay:
                delayed = delay
        # The calls of a card may be escalated at different times; each escalation is reported.
        escalations = _escalations(batch)
        kind = f"{ESCALATION} {escalations}"
        if escalations:
            current = await self._current(batch.id)
            reported = {notice.channel for notice in notices if notice.kind == kind}
            try:
                sent = await notifier.report_escalation(current or batch, kind, reported)
            except NotAllTold as delay:
                sent, delayed = delay.sent, delay
            await self._note(sent)
        if delayed:
            raise delayed

    async def _post_copies(self, batch: Batch, notifier: Notifier) -> tuple[list[str], CardDelayed | None]:
        """Post the copies that are not there yet. Returns why some cannot be posted, and whether to try again."""
        problems: list[str] = []
        delayed: CardDelayed | None = None
        for channel in set(copy_channels(batch)) - {copy.channel for copy in batch.copies}:
            try:
                message = await notifier.post_copy(batch, channel)
            except CardDelayed as delay:
                delayed = delay
            except CardFailed as failure:
                log.warning("the card of %s is not shown in the approvals channel %s: %s", batch.id, channel, failure)
                problems.append(f"I could not show this card in the approvals channel {channel}: {failure}.")
            else:
                await self.desk.copy_posted(batch.id, CardCopy(channel, message))
        return problems, delayed

    async def _find_copies(self, batch: Batch, notifier: Notifier) -> None:
        """Note the copies that an earlier process posted but did not note, so that they show the end of the card.

        No copy is posted any more. Raises NotDelivered if a channel can be looked at only later.
        """
        unknown = set(copy_channels(batch)) - {copy.channel for copy in batch.copies}
        for channel in sorted(unknown) if self.desk.clock.now() - batch.opened < LOOKED_FOR else ():
            message = await notifier.find_copy(batch, channel)
            if message is not None:
                log.info("a copy of the card of %s was found again in %s", batch.id, channel)
                await self.desk.copy_posted(batch.id, CardCopy(channel, message))
        await self.store.run(lambda tx: tx.set_untold(batch.id, False))

    async def note_reminder(self, batch: Batch, message: str) -> None:
        """Store a reminder's message, and remove it at once if the card was settled meanwhile."""
        await self._note([Notice(batch.id, REMINDER, batch.place.channel, message)])
        current = await self._current(batch.id)
        if current and current.settled:
            await self.tidy(batch.id)

    async def tidy(self, batch_id: str) -> None:
        """Remove the messages about a settled card. Raises the last error, so that it is tried again."""
        if self.notifier is None:
            return
        notices = await self.store.run(lambda tx: tx.notices_of(batch_id))
        batch = await self._current(batch_id) if notices else None
        if batch is None or not batch.settled:
            return
        failure: Exception | None = None
        for notice in notices:
            try:
                await self.notifier.remove(notice, batch)
                await self.store.run(lambda tx, notice=notice: tx.drop_notice(notice))
            except Exception as error:
                failure = error
        if failure:
            raise failure

    async def _note(self, notices: Sequence[Notice]) -> None:
        def work(tx: TurnTx) -> None:
            for notice in notices:
                tx.add_notice(notice)

        if notices:
            await self.store.run(work)

    async def _current(self, batch_id: str) -> Batch | None:
        return await self.store.run(lambda tx: tx.batch(batch_id))


def _escalations(batch: Batch) -> int:
    """Return how many calls of this card were escalated."""
    return sum(request.escalated for request in batch.questions)
