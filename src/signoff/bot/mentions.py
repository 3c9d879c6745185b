"""From a mention to a turn: the asker, the place, the text, and the thread for the reply.

The turn is stored before its thread is opened, so a crash in between loses nothing. Knows neither cards nor the agent.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import discord

from signoff.approvals.model import DIRECT, Place
from signoff.bot import people, sending
from signoff.bot.access import Access
from signoff.bot.origins import Origin, title
from signoff.bot.sending import Failure, nonce
from signoff.errors import SignoffError
from signoff.turns.driver import Driver
from signoff.turns.listening import Listening
from signoff.turns.model import Admission, Attachment, Turn

log = logging.getLogger(__name__)

HELP = "Mention me and say what to do in the same message. I ask before I do anything that needs approval."
ROLE_HINT = "Mention me, <@{me}>, not my role."
BROKEN = "Your message could not be stored, so nothing will run. Please try again."
FILES = "[Files attached to this message: names and sizes only, the contents were not read]"
STALLED = "Your message is stored, but the run could not start yet. I will try again soon."
ACCESS_EVERY = 600.0
LIMITS_EVERY = 30.0
"""Seconds between two refusals to the same person in the same channel."""

_WRITTEN = (discord.MessageType.default, discord.MessageType.reply)
"""Narrower than the library's `is_system`, which lets a thread's starter, a copy of the first message, pass."""
_THREADED = (discord.ChannelType.text, discord.ChannelType.news)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a message is: the place for the reply, the channel ids for the access check, whether to open a thread."""

    place: Place
    channels: frozenset[str]
    opens_thread: bool = False


class Mentions:
    def __init__(
        self,
        client: discord.Client,
        driver: Driver,
        access: Access,
        now: Callable[[], float],
        listening: Listening | None = None,
    ) -> None:
        self._client = client
        self._listening = listening
        self._driver = driver
        self._access = access
        self._now = now
        self._refused: OrderedDict[tuple[int, int], float] = OrderedDict()
        """(author id, channel id) -> the monotonic time until which no other refusal is sent."""

    async def hear(self, message: discord.Message, *, late: bool = False) -> None:
        """Handle a message. Never raises, except that a closed client ends the task.

        `late`: it does not come from the gateway, but was found after the bot was offline.
        """
        try:
            await self._hear(message, late)
        except Failure as error:
            log.warning("message %s was not answered: %s", message.id, error)
        except Exception:
            log.exception("message %s failed", message.id)
            await self._tell(message, BROKEN)

    def is_for_me(self, message: discord.Message) -> bool:
        """Whether a person wrote the message to the bot: directly, or with a mention of the bot or of its role."""
        me = self._client.user
        if me is None or message.author.bot or message.webhook_id is not None or message.type not in _WRITTEN:
            return False
        return isinstance(message.channel, discord.DMChannel) or _mentions(message, me.id) or _by_role(message, me.id)

    async def _hear(self, message: discord.Message, late: bool) -> None:
        me = self._client.user
        if me is None or not self.is_for_me(message):
            return
        mention = Origin(str(message.channel.id), str(message.id)).turn
        if self._listening is not None and not self._listening.hear(mention):
            return
        direct = isinstance(message.channel, discord.DMChannel)
        by_role = not direct and not _mentions(message, me.id)
        spot = await self._spot(message, me.id)
        if spot is None:
            return
        asker = people.asker(message, spot.place.server)
        refusal = self._access.refusal(asker, spot.channels)
        if refusal is not None:
            await self._refuse(message, refusal, ACCESS_EVERY)
            return
        if by_role:
            await self._tell(message, ROLE_HINT.format(me=me.id))
            return
        text = request_text(message.content, me.id, attachments_of(message))
        if not text:
            await self._tell(message, HELP)
            return
        turn = Turn(
            id=mention,
            place=spot.place,
            message=str(message.id),
            asker=asker,
            text=text,
            created=self._now(),
            asked=message.created_at.timestamp() if late else None,
        )
        await self._submit(message, turn, spot)

    async def _submit(self, message: discord.Message, turn: Turn, spot: Spot) -> None:
        try:
            admission = await self._driver.submit(turn)
        except SignoffError:
            log.exception("turn %s was not stored", turn.id)
            await self._tell(message, BROKEN)
            return
        if admission.kind == "duplicate":
            return
        if admission.kind == "refused":
            await self._refuse(message, sending.inert(admission.text), LIMITS_EVERY)
            return
        try:
            place = await self._open(message, turn, spot)
            if admission.kind == "queued":
                await self._say_queued(message, place, admission)
        except Exception:
            # Start the turn anyway, or it would block its conversation. The reply tries to open the thread again.
            log.exception("turn %s has neither its thread nor another place", turn.id)
        try:
            await self._driver.go(turn.id)
        except Exception:
            log.exception("turn %s is stored but did not start", turn.id)
            await self._tell(message, STALLED)

    async def _spot(self, message: discord.Message, me: int) -> Spot | None:
        here = str(message.channel.id)
        channel: object = message.channel
        if isinstance(channel, discord.DMChannel):
            return Spot(Place(DIRECT, here, here), frozenset({here}))
        if isinstance(channel, discord.PartialMessageable) and channel.guild_id is not None:
            # A thread that is not cached.
            channel = await sending.while_open(self._client, self._client.fetch_channel(channel.id))
        if isinstance(channel, discord.Thread):
            return Spot(Place(str(channel.guild.id), here, here), frozenset({here, str(channel.parent_id)}))
        if not isinstance(channel, discord.abc.GuildChannel):
            return None
        server, thread = str(channel.guild.id), str(message.id)
        if channel.type not in _THREADED or not _may_open(channel, me):
            return Spot(Place(server, here, here), frozenset({here}))
        return Spot(Place(server, thread, thread), frozenset({here}), opens_thread=True)

    async def _open(self, message: discord.Message, turn: Turn, spot: Spot) -> Place:
        """Open the turn's thread. If Discord refuses, move the turn to the channel and reply there."""
        if not spot.opens_thread:
            return turn.place
        here = str(message.channel.id)
        try:
            await sending.open_thread(self._client, here, turn.message, title(turn.text))
            return turn.place
        except Failure as error:
            log.info("no thread for %s, answering in place: %s", turn.id, error)
        place = Place(turn.place.server, here, here)
        await self._driver.relocate(turn.id, place)
        return place

    async def _say_queued(self, message: discord.Message, place: Place, admission: Admission) -> None:
        answers = str(message.id) if place.channel == str(message.channel.id) else None
        key = nonce("queued", message.id)
        try:
            await sending.send(self._client, place.channel, sending.inert(admission.text), key=key, answers=answers)
        except Failure as error:
            log.info("could not say that %s is queued: %s", message.id, error)

    async def _refuse(self, message: discord.Message, text: str, every: float) -> None:
        """Tell somebody why they may not ask, but not again for each message of a flood."""
        who, now = (message.author.id, message.channel.id), time.monotonic()
        if now < self._refused.get(who, now):
            if self._listening is not None:
                self._listening.ignore(Origin(str(message.channel.id), str(message.id)).turn)
            return
        self._refused[who] = now + every
        self._refused.move_to_end(who)
        while len(self._refused) > 1000:
            self._refused.popitem(last=False)
        await self._tell(message, text)

    async def _tell(self, message: discord.Message, text: str) -> None:
        key = nonce("told", message.id)
        await self._note(message)
        try:
            await sending.send(self._client, str(message.channel.id), text, key=key, answers=str(message.id))
        except Failure as error:
            log.info("could not answer message %s: %s", message.id, error)

    async def _note(self, message: discord.Message) -> None:
        """Note that this mention was heard, so that no later start answers it."""
        if self._listening is None:
            return
        mention = Origin(str(message.channel.id), str(message.id)).turn
        try:
            await self._listening.note(mention)
        except SignoffError as error:
            log.warning("mention %s was not noted: %s", mention, error)
            self._listening.ignore(mention)


def request_text(content: str, me: int, attachments: list[Attachment]) -> str:
    """The message without our own mention, followed by the names of the attached files."""
    text = re.sub(rf"<@!?{me}>[ \t]?", "", content).strip()
    if not attachments:
        return text
    listed = [f"- {json.dumps(file.name, ensure_ascii=False)}, {file.size} bytes" for file in attachments]
    return "\n".join([text, "", FILES, *listed]).strip()


def attachments_of(message: discord.Message) -> list[Attachment]:
    return [Attachment(file.filename, file.size) for file in message.attachments]


def _mentions(message: discord.Message, me: int) -> bool:
    return any(user.id == me for user in message.mentions)


def _by_role(message: discord.Message, me: int) -> bool:
    return any(_is_role_of(role, me) for role in message.role_mentions)


def _is_role_of(role: discord.Role, me: int) -> bool:
    return role.tags is not None and role.tags.bot_id == me


def _may_open(channel: discord.abc.GuildChannel, me: int) -> bool:
    member = channel.guild.get_member(me)
    if member is None:
        return True  # not cached yet: try to open a thread, and see
    allowed = channel.permissions_for(member)
    return allowed.create_public_threads and allowed.send_messages_in_threads
