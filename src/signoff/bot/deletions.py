"""Deletions in Discord: of cards, of their threads and channels, and of roles that may decide.

Open requests of a deleted card are cancelled, and a missing approver is named on the card. A notice reports both.
Only the desk knows which message is a card, which requests are open, and who may decide, so this module asks the desk.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Sequence

import discord

from signoff.approvals.desk import Desk
from signoff.approvals.model import Batch, RequestState
from signoff.bot import sending
from signoff.bot.origins import origin
from signoff.bot.responses import Refresh
from signoff.bot.sending import Failure, nonce
from signoff.errors import SignoffError
from signoff.turns.messages import missing_approvers_notice

log = logging.getLogger(__name__)

SAID = "{what} was deleted, so its open requests were cancelled."
COPY_DELETED = "The copy of this card in the approvals channel was deleted. The card here is still open."
GOES_ON = "Calls that were already accepted still run."


def said(batch: Batch, what: str) -> str:
    """Word the notice. It warns the person who deleted the card that calls accepted before the deletion still run."""
    accepted = any(request.state is RequestState.APPROVED for request in batch.requests)
    return " ".join([SAID.format(what=what), *([GOES_ON] if accepted else [])])


KEPT = 10_000


class DeletedChannels:
    """Channels and threads that were deleted while the bot was connected: a reply must not open them again.

    It forgets the oldest first.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._deleted: OrderedDict[str, None] = OrderedDict()

    def note(self, channel: str) -> None:
        self._deleted[channel] = None
        while len(self._deleted) > self._kept:
            self._deleted.popitem(last=False)

    def __contains__(self, channel: str) -> bool:
        return channel in self._deleted


class DeletedCards:
    def __init__(self, client: discord.Client, desk: Desk, deleted: DeletedChannels) -> None:
        self._client = client
        self._desk = desk
        self._deleted = deleted

    async def messages(self, channel: int, messages: Iterable[int]) -> None:
        for message in messages:
            if await self._copies(str(channel), str(message)):
                continue
            for batch in await self._cancelled(self._desk.card_deleted(str(message), "the card was deleted")):
                await self._say(batch, str(channel), said(batch, "The approval card"))

    async def thread(self, thread: int, parent: int) -> None:
        self._deleted.note(str(thread))
        await self._copies(str(thread))
        for batch in await self._cancelled(
            self._desk.place_deleted(str(thread), "the thread with the card was deleted")
        ):
            await self._say(batch, str(parent), said(batch, "The thread with the approval card"))

    async def channel(self, channel: int) -> None:
        self._deleted.note(str(channel))
        await self._copies(str(channel))
        for batch in await self._cancelled(
            self._desk.place_deleted(str(channel), "the channel with the card was deleted")
        ):
            await self._whisper(batch, said(batch, "The channel with the approval card"))

    async def _copies(self, channel: str, message: str = "") -> bool:
        """Say in each conversation that the copy of its card was deleted. The card itself stays open."""
        try:
            batches = await self._desk.copies_deleted(channel, message)
        except Exception:
            log.exception("copies of cards were deleted in %s, which could not be noted", channel)
            return False
        for batch in batches:
            key = nonce("copy deleted", batch.id, channel)
            try:
                answers = batch.card_message
                await sending.send(self._client, batch.place.channel, COPY_DELETED, key=key, answers=answers)
            except Failure as error:
                log.warning("could not say in %s that a copy was deleted: %s", batch.place.channel, error)
        return bool(batches)

    async def _cancelled(self, cancelling: Awaitable[Batch | Sequence[Batch] | None]) -> Sequence[Batch]:
        try:
            ended = await cancelling
        except Exception:
            # The request is still open, but nobody can accept it any more, and its deadline ends it.
            log.exception("a card was deleted, but its requests could not be cancelled")
            return ()
        if ended is None:
            return ()
        return (ended,) if isinstance(ended, Batch) else ended

    async def _say(self, batch: Batch, channel: str, text: str) -> None:
        source = origin(batch.turn)
        answers = source.message if source is not None and source.channel == channel else None
        try:
            await sending.send(self._client, channel, text, key=nonce("lost", batch.id), answers=answers)
        except Failure as error:
            log.info("could not say in %s that a card was deleted: %s", channel, error)
            if sending.lasting(error):
                await self._whisper(batch, text)

    async def _whisper(self, batch: Batch, text: str) -> None:
        try:
            opening = self._client.create_dm(discord.Object(int(batch.asker.id)))
            direct = await sending.while_open(self._client, opening)
            await sending.send(self._client, str(direct.id), text, key=nonce("lost", batch.id, "direct"))
        except Failure as error:
            log.info("could not tell %s that a card was deleted: %s", batch.asker.id, error)


class MissingApprovers:
    """Reports approvers that go missing while a card is open, on the card and in a notice.

    Without a privileged intent, Discord does not report people who leave. The desk notices them at the start, or when
    their vote is counted.
    """

    def __init__(self, client: discord.Client, desk: Desk, refresh: Refresh) -> None:
        self._client = client
        self._desk = desk
        self._refresh = refresh

    async def role(self, role: int) -> None:
        await self.look(f"role:{role}")

    async def look(self, naming: str = "") -> None:
        """Check all approvers of open cards, or only the one that `naming` names, such as `role:12`."""
        try:
            changed = await self._desk.recheck_approvers(naming)
        except Exception:
            # This is safe: a missing approver cannot click, and the deadline ends requests that nobody can decide.
            log.exception("could not check for missing approvers")
            return
        for batch in changed:
            await self._say(batch)
            if not batch.settled:
                await self._redraw(batch)

    async def _redraw(self, batch: Batch) -> None:
        drawn: Batch | None = None
        try:
            # Repeat until the card shows what is stored: a click may draw the same card at the same moment.
            while (latest := await self._desk.look(batch.id, batch.asker, batch.place.channel, None)) != drawn:
                await self._refresh(latest)
                drawn = latest
        except SignoffError as error:
            log.warning("the card of %s does not show its missing approvers: %s", batch.id, error)

    async def _say(self, batch: Batch) -> None:
        notice = missing_approvers_notice(batch)
        key = nonce("gone", batch.id, notice)
        try:
            await sending.send(self._client, batch.place.channel, notice, key=key, answers=batch.card_message)
        except Failure as error:
            log.warning("could not say in %s that an approver is missing: %s", batch.place.channel, error)
