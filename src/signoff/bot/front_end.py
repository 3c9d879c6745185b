"""How the driver reaches people in Discord: cards, replies, notices, typing. Implements `turns.ports.FrontEnd`.

Each method needs only ids, works before the gateway is connected, and may be repeated. The front end decides nothing
about turns.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import discord

from signoff.approvals.model import Batch, CardCopy, Place
from signoff.bot import earlier_posts, panels, quoting, sending
from signoff.bot import status as statuses
from signoff.bot.card_view import Rendered, render_off_loop
from signoff.bot.deletions import DeletedChannels
from signoff.bot.origins import UNTITLED, origin, title
from signoff.bot.people import mentions, pings
from signoff.bot.refusals import Braked, Weight, refusals_of
from signoff.bot.responses import Drawing
from signoff.bot.sending import ARCHIVED, CLOSED, NOBODY, UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, Failure, nonce
from signoff.bot.split import LIMIT, MAX_PARTS, Framed, sendable, split
from signoff.cards.actions import Offers
from signoff.cards.model import Line
from signoff.cards.wording import reminder
from signoff.errors import CardDelayed, CardFailed, CopiesRefused, NotDelivered, Undeliverable
from signoff.turns import messages
from signoff.turns.model import Turn, TurnState
from signoff.turns.progress import RunStatus

log = logging.getLogger(__name__)

T = TypeVar("T")
Key = tuple[object, ...]
CARD_DELAYS = (0.5, 2.0, 5.0)
BEGUN = 1000
"""The number of texts for which the front end remembers that it began to post them."""
TYPING_AFTER = 0.3
"""Seconds that a step works before it shows typing. The request would delay a quick step more than it tells people."""
TYPING_EVERY = 8.0
"""Discord shows typing for ten seconds."""

SILENT = "Done. The model gave no reply text."
AS_FILE = "My reply is too long for messages, so it is attached."
MOVED: Line = ("This card was posted again below.",)
LATE = "-# You asked this <t:{asked}:f>, while I was offline."
ELSEWHERE = "I could not post my reply where you asked: {reason}. Here it is."


class DiscordFrontEnd:
    def __init__(self, client: discord.Client, offers: Offers, now: Callable[[], float]) -> None:
        self._client = client
        self._now = now
        self._started = now()
        self.offers = offers
        """The actions that cards offer beyond accept and reject."""
        self.deleted = DeletedChannels()
        """Channels and threads that a reply must not open again."""
        self.drawing = Drawing()
        self._begun: OrderedDict[Key, None] = OrderedDict()
        """Keys of texts of which this process has posted a part, or may have; the values are unused."""
        self._posts: OrderedDict[str, Key] = OrderedDict()
        """Message id -> key of the text that this process posted there."""

    async def post_card(self, batch: Batch) -> str:
        if earlier_posts.is_late(batch.opened, self._started, self._now()) and (card := await self._earlier(batch)):
            return card
        return await self._post(batch, nonce("card", batch.turn, batch.id))

    async def _earlier(self, batch: Batch) -> str | None:
        """Return the card that an earlier process posted but did not note, if there is one. Close all older ones."""
        try:
            *older, newest = await earlier_posts.cards(self._client, batch) or [None]
        except Failure as error:
            raise _not_shown(error) from error
        for card in older:
            try:
                await self.retire_card(replace(batch, card_message=card))
            except NotDelivered as error:
                log.warning("an older card of %s keeps its buttons, which decide nothing: %s", batch.id, error)
        return newest

    async def repost_card(self, batch: Batch) -> str:
        """Post the card as a new message. Repeating this for the same old message posts nothing new."""
        return await self._post(batch, nonce("card", batch.turn, batch.id, "instead of", batch.card_message))

    async def post_copy(self, batch: Batch, channel: str) -> str:
        """Post the card in an approvals channel as well. Raises CardFailed."""
        if earlier_posts.is_late(batch.opened, self._started, self._now()):
            try:
                posted = await earlier_posts.cards(self._client, batch, channel)
            except Failure as error:
                raise _not_shown(error) from error
            if posted:
                return posted[-1]
        return await self._post(batch, nonce("copy", batch.id, channel), channel)

    async def remind(self, batch: Batch) -> str | None:
        """Post a reminder. A reminder that cannot be posted is only logged: nothing depends on it."""
        whom = pings(batch) if batch.ping else ()
        text = " ".join([quoting.line(reminder(batch)) + ".", *(quoting.line((one,)) for one in whom)])
        key = nonce("reminder", batch.id)
        try:
            message = await sending.send(
                self._client, batch.place.channel, text, key=key, answers=batch.card_message, pings=mentions(whom)
            )
        except Failure as error:
            log.warning("no reminder of %s: %s", batch.id, error)
            return None
        return str(message.id)

    async def _post(self, batch: Batch, key: str, channel: str = "") -> str:
        channel = channel or batch.place.channel
        rendered = await self._rendered(batch, channel)
        try:
            message = await self._post_card(batch, rendered, key, channel)
        except Failure as error:
            if not rendered.card.files or not _may_be_about_files(error):
                raise _not_shown(error) from error
            log.info("card of %s is posted without its files: %s", batch.id, error)
            try:
                without = await self._rendered(batch, channel, can_attach=False)
                message = await self._post_card(batch, without, key, channel)
            except Failure as again:
                raise _not_shown(again) from again
        return str(message.id)

    async def _rendered(self, batch: Batch, channel: str, *, page: int = 0, can_attach: bool = True) -> Rendered:
        return await render_off_loop(
            batch, self._now(), can_attach=can_attach, page=page, offers=self.offers, shown_in=channel
        )

    async def refresh_card(self, batch: Batch, page: int = 0, drawn: str | None = None) -> None:
        async with self.drawing.of(batch):
            await self.draw_card(batch, page, drawn)

    async def draw_card(self, batch: Batch, page: int = 0, drawn: str | None = None) -> None:
        """Draw the card in every message that shows it, except in the message `drawn`, which shows it already.

        The caller holds the lock of `drawing`. Raises NotDelivered if one of them could not be changed; the others are
        changed nevertheless. A failure that may pass is raised first, then Undeliverable if the card in the
        conversation cannot be changed any more, then CopiesRefused.
        """
        passing: NotDelivered | None = None
        own: Undeliverable | None = None
        refused: dict[CardCopy, Undeliverable] = {}
        for at in batch.messages:
            try:
                if at.message != drawn:
                    await self._change(batch, at, lambda at=at: self._draw(batch, at, page))
            except Undeliverable as error:
                if at in batch.copies:
                    refused[at] = error
                else:
                    own = error
            except NotDelivered as error:
                passing = error
        if failure := passing or own:
            raise failure
        if refused:
            why = str(next(iter(refused.values())))
            raise CopiesRefused(why, [(copy.channel, copy.message) for copy in refused])

    async def retire_card(self, batch: Batch) -> None:
        """Replace the card in the old message with one line. Deleting the message would cancel the card's requests."""
        if batch.card_message is not None:
            old = CardCopy(batch.place.channel, batch.card_message)
            await self._change(batch, old, lambda: self._edit(old, panels.said(MOVED), []))

    async def reply(self, turn: Turn, text: str) -> None:
        """Post the reply. Raises NotDelivered if it reached nobody; the driver posts it later if that makes sense."""
        key: Key = ("reply", turn.id, turn.rounds)
        if turn.state is TurnState.STOPPED:
            key = (*key, "stopped")  # in a restored database, the turn may have had its reply before
        body, mode = messages.apart(text)
        if turn.state in (TurnState.FAILED, TurnState.STOPPED):
            body, mode = sending.inert(body), sending.inert(mode)
        late = "" if turn.asked is None else f"{LATE.format(asked=int(turn.asked))}\n"
        said = Framed(body, late, mode)
        try:
            await self._in_place(turn.place, turn.id, title(turn.text), lambda: self._say(turn, said, key))
        except Failure as error:
            log.warning("reply to %s was not posted in %s: %s", turn.id, turn.place.channel, error)
            if not sending.lasting(error) or turn.place.is_direct:
                raise sending.not_delivered(error) from error
            await self._to_asker(turn, said, sending.reason(error))

    async def notice(self, turn: Turn, text: str) -> None:
        """Post a notice. A notice that cannot be posted is only logged: nothing depends on it."""
        key, said = ("notice", turn.id, turn.rounds, text), Framed(sending.inert(text))

        async def post() -> None:
            await self._say(turn, said, key, Weight.OPTIONAL)

        try:
            await self._in_place(turn.place, turn.id, title(turn.text), post)
        except Failure as error:
            log.warning("notice about %s was not posted: %s", turn.id, error)

    async def show_status(self, turn: Turn, status: RunStatus) -> str:
        if turn.status_message:
            await statuses.edit(self._client, turn, status)
            return turn.status_message
        return await self._in_place(
            turn.place,
            turn.id,
            title(turn.text),
            lambda: statuses.post(self._client, turn, status, self._answered(turn)),
        )

    async def remove_status(self, turn: Turn) -> None:
        await statuses.delete(self._client, turn)

    def working(self, turn: Turn) -> AbstractAsyncContextManager[None]:
        return self._typing(turn)

    @asynccontextmanager
    async def _typing(self, turn: Turn) -> AsyncGenerator[None]:
        loop, typing = asyncio.get_running_loop(), list[asyncio.Task[None]]()

        def start() -> None:
            typing.append(loop.create_task(self._type(turn), name=f"typing-{turn.id}"))

        alarm = loop.call_later(TYPING_AFTER, start)  # most steps end before, and a timer costs less than a task
        try:
            yield
        finally:
            alarm.cancel()
            for task in typing:
                task.cancel()

    async def _type(self, turn: Turn) -> None:
        channel = self._client.get_partial_messageable(int(turn.place.channel))

        refusals = refusals_of(self._client)

        async def once() -> None:
            refusals.check(Weight.OPTIONAL)
            if refusals.is_closed(turn.place.channel):
                raise Braked("I may not write there")
            await channel.typing()

        try:
            while True:
                await self._in_place(turn.place, turn.id, title(turn.text), once)
                await asyncio.sleep(TYPING_EVERY)
        except Exception as error:
            if isinstance(error, discord.Forbidden) and error.code in CLOSED:
                refusals.close(turn.place.channel)
            log.info("no typing for %s: %s", turn.id, error)

    async def _in_place(self, place: Place, turn_id: str, name: str, post: Callable[[], Awaitable[T]]) -> T:
        """Post. If the mention's thread does not exist, because the process ended before opening it, open it first."""
        try:
            return await post()
        except discord.NotFound as error:
            source = origin(turn_id)
            openable = source is not None and source.opens(place) and place.channel not in self.deleted
            if error.code != UNKNOWN_CHANNEL or source is None or not openable:
                raise
        await sending.open_thread(self._client, source.channel, source.message, name)
        return await post()

    async def _post_card(self, batch: Batch, rendered: Rendered, key: str, channel: str) -> discord.Message:
        files = rendered.files if rendered.card.files else None

        async def post() -> discord.Message:
            return await sending.send(
                self._client, channel, key=key, view=rendered.view, files=files, weight=Weight.ESSENTIAL
            )

        async def in_place() -> discord.Message:
            if channel != batch.place.channel:
                return await post()
            return await self._in_place(batch.place, batch.turn, UNTITLED, post)

        for delay in CARD_DELAYS:
            try:
                return await in_place()
            except Failure as error:
                # The card may be there already: the nonce keeps Discord from posting it twice.
                if not sending.passing(error):
                    raise
                log.info("card of %s is posted again in %g seconds: %s", batch.id, delay, error)
            await asyncio.sleep(delay)
        return await in_place()

    async def _edit(self, at: CardCopy, view: discord.ui.LayoutView, files: list[discord.File]) -> None:
        message = self._client.get_partial_messageable(int(at.channel)).get_partial_message(int(at.message))
        refusals_of(self._client).check(Weight.NORMAL)
        editing = message.edit(view=view, allowed_mentions=NOBODY, attachments=files)
        await sending.while_open(self._client, editing)

    async def _draw(self, batch: Batch, at: CardCopy, page: int) -> None:
        rendered = await self._rendered(batch, at.channel, page=page)
        try:
            await self._edit(at, rendered.view, rendered.files())
        except discord.HTTPException as error:
            if not rendered.card.files or not _may_be_about_files(error):
                raise
            without = await self._rendered(batch, at.channel, can_attach=False, page=page)
            await self._edit(at, without.view, [])

    async def _change(self, batch: Batch, at: CardCopy, edit: Callable[[], Awaitable[None]]) -> None:
        """Edit the card, even in an archived thread. Nothing happens if the card was deleted."""
        try:
            try:
                await edit()
            except discord.HTTPException as error:
                if error.code != ARCHIVED:
                    raise
                # Messages in an archived thread cannot be edited. The thread archives itself again later.
                await sending.unarchive(self._client, at.channel)
                await edit()
        except discord.HTTPException as error:
            if error.code not in (UNKNOWN_CHANNEL, UNKNOWN_MESSAGE):
                raise sending.not_delivered(error) from error
            log.info("card of %s was deleted, nothing to change", batch.id)
        except Failure as error:
            raise sending.not_delivered(error) from error

    async def _say(self, turn: Turn, text: Framed, key: Key, weight: Weight = Weight.ESSENTIAL) -> None:
        """Post a text. An essential one is the end of the turn, and takes the place of its status message."""
        if weight is not Weight.ESSENTIAL:
            await self._parts(turn.place.channel, text, key, answers=self._answered(turn), weight=weight)
            return
        since, answers = self._due(turn, key), self._answered(turn)
        await self._parts(turn.place.channel, text, key, answers=answers, since=since, ended=turn)

    def _answered(self, turn: Turn) -> str | None:
        """The message to reply to, if several conversations share the channel."""
        channel = self._client.get_channel(int(turn.place.channel))
        if turn.place.is_direct or turn.place.channel == turn.message or isinstance(channel, discord.Thread):
            return None
        return turn.message

    def _due(self, turn: Turn, key: Key) -> float | None:
        """When the reply was due, if it is late and may be posted already, by an earlier process or by this one."""
        due = turn.created if turn.ended is None else turn.ended
        if due >= self._started and key not in self._begun:
            return None  # a message with the same text belongs to another turn
        return due if earlier_posts.is_late(due, self._started, self._now()) else None

    async def _parts(
        self,
        channel: str,
        text: Framed,
        key: Key,
        answers: str | None = None,
        weight: Weight = Weight.ESSENTIAL,
        since: float | None = None,
        ended: Turn | None = None,
    ) -> None:
        """Post a text of any length. With `since`, parts that were posted since then are not posted again.

        The first part takes the place of the status message of `ended`.
        """
        posted = Counter[str]()
        if since is not None:
            others = {message for message, text_key in self._posts.items() if text_key != key}
            posted = await earlier_posts.texts(self._client, channel, since, answers, others)
        body = sendable(text.text).strip() or SILENT
        whole, as_file = text.around(body), text.around(AS_FILE)
        parts = split(whole) if len(whole) <= LIMIT * MAX_PARTS else []
        if not 0 < len(parts) <= MAX_PARTS:

            def attached() -> list[discord.File]:
                return [discord.File(io.BytesIO(body.encode()), filename="reply.md")]

            if (ended and await statuses.become(self._client, ended, as_file, attached()[0])) or posted[as_file]:
                return
            await self._post_part(channel, as_file, key, 0, answers, weight, attached)
            return
        for number, part in enumerate(parts):
            if number == 0 and ended and await statuses.become(self._client, ended, part):
                continue
            if posted[part.strip()]:
                posted[part.strip()] -= 1
                continue
            first = answers if number == 0 else None
            await self._post_part(channel, part, key, number, first, weight)

    async def _post_part(
        self,
        channel: str,
        text: str,
        key: Key,
        number: int,
        answers: str | None,
        weight: Weight,
        files: Callable[[], list[discord.File]] | None = None,
    ) -> None:
        """Post a part. Remember it unless Discord refused it: a repeated attempt then looks for what is there."""
        try:
            message = await sending.send(
                self._client, channel, text, key=nonce(*key, number), files=files, answers=answers, weight=weight
            )
        except Failure as error:
            if sending.passing(error):
                self._note_begun(key)
            raise
        self._note_begun(key)
        self._posts[str(message.id)] = key
        while len(self._posts) > BEGUN:
            self._posts.popitem(last=False)

    def _note_begun(self, key: Key) -> None:
        self._begun[key] = None
        self._begun.move_to_end(key)
        while len(self._begun) > BEGUN:
            self._begun.popitem(last=False)

    async def _to_asker(self, turn: Turn, text: Framed, why: str) -> None:
        try:
            opening = self._client.create_dm(discord.Object(int(turn.asker.id)))
            direct = await sending.while_open(self._client, opening)
            key = ("elsewhere", turn.id, turn.rounds)
            said = replace(text, above=f"{ELSEWHERE.format(reason=why)}\n\n{text.above}")
            await self._parts(str(direct.id), said, key, since=self._due(turn, key))
        except Failure as error:
            raise (Undeliverable if sending.lasting(error) else NotDelivered)(why) from error


def _not_shown(error: BaseException) -> CardFailed:
    """Return the error for the driver, which posts a delayed card again until its deadline."""
    later = sending.passing(error) or sending.busy(error)
    return (CardDelayed if later else CardFailed)(sending.reason(error))


def _may_be_about_files(error: BaseException) -> bool:
    """Whether Discord may accept the card without its files: the error is about a permission or a size."""
    return isinstance(error, discord.Forbidden) or getattr(error, "code", 0) in (40005, 40333) or _status(error) == 413


def _status(error: BaseException) -> int:
    return getattr(error, "status", 0)
