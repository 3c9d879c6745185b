"""From a mention to a turn: the asker, the place, the text, and the thread for the reply.

The turn is stored before its thread is opened, so a crash in between loses nothing. Knows neither cards nor the agent.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable

import discord

from signoff.approvals.model import DIRECT, Actor, Place
from signoff.bot import attachments, people, replying, sending
from signoff.bot.access import Access
from signoff.bot.attachments import FileLimits
from signoff.bot.directory import DiscordDirectory
from signoff.bot.origins import Origin, title
from signoff.bot.refusals import Braked, Weight, refusals_of
from signoff.bot.sending import Failure, nonce, patiently
from signoff.dataclass import dataclass
from signoff.errors import SignoffError
from signoff.turns.driver import Driver
from signoff.turns.listening import Listening
from signoff.turns.model import Quoted, Turn

log = logging.getLogger(__name__)

HELP = "Mention me and say what to do in the same message. I ask before I do anything that needs approval."
ROLE_HINT = "Mention me, <@{me}>, not my role."
BROKEN = "Your message could not be stored, so nothing will run. Please try again."
STALLED = "Your message is stored, but the run could not start yet. I will try again soon."
ACCESS_EVERY = 600.0
CLOSED = (
    "I cannot reply in {where}: I lack {missing} there. So I did not start. "
    "Ask an admin of the server for it, then mention me again."
)
CLOSED_EVERY = 600.0
LIMITS_EVERY = 30.0
"""Seconds between two refusals to the same person in the same channel."""

_WRITTEN = (discord.MessageType.default, discord.MessageType.reply)
"""Narrower than the library's `is_system`, which lets a thread's starter, a copy of the first message, pass."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a message is: the place for the reply, the channel ids for the access check, whether to open a thread.

    `missing` has the permissions that the bot lacks to reply there.
    """

    place: Place
    channels: frozenset[str]
    opens_thread: bool = False
    missing: tuple[str, ...] = ()


class Mentions:
    def __init__(
        self,
        client: discord.Client,
        driver: Driver,
        access: Access,
        now: Callable[[], float],
        listening: Listening | None = None,
        files: FileLimits = FileLimits(),  # noqa: B008 - it is frozen
    ) -> None:
        self._client = client
        self._listening = listening
        self._driver = driver
        self._access = access
        self._now = now
        self._files = files
        self._directory = DiscordDirectory(client)
        self._refusals = refusals_of(client)
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
        if self._refusals.least is Weight.ESSENTIAL:
            self._put_off(message, mention)
            log.error("message %s was not taken: Discord refuses too many requests", message.id)
            return
        try:
            spot = await patiently(lambda: self._spot(message))
        except Failure as error:
            if sending.passing(error) or sending.busy(error) or isinstance(error, Braked):
                self._put_off(message, mention)
            raise
        if spot is None:
            return
        asker = await self._asker(message, spot.place.server)
        refusal = self._access.refusal(asker, spot.channels)
        if refusal is not None:
            await self._refuse(message, refusal, ACCESS_EVERY)
            return
        if spot.missing:
            # Where the bot cannot reply, the model is not asked.
            await self._refuse_privately(message, spot.missing)
            return
        if by_role:
            await self._tell(message, ROLE_HINT.format(me=me.id))
            return
        text = request_text(message.content, me.id)
        quoted = await self._quoted(message, spot, me.id)
        if not text and not message.attachments and not (quoted and quoted.text):
            await self._tell(message, HELP)
            return
        turn = Turn(
            id=mention,
            place=spot.place,
            message=str(message.id),
            asker=asker,
            text=text,
            created=self._now(),
            quoted=quoted,
            files=attachments.announced(message.attachments, self._files),
            asked=message.created_at.timestamp() if late else None,
        )
        await self._submit(message, turn, spot)

    def _put_off(self, message: discord.Message, mention: str) -> None:
        """Have a message that cannot be taken now found again later."""
        if self._listening is not None and not self._listening.put_off(mention, message.created_at.timestamp()):
            log.error("message %s is given up", message.id)

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
            place, unread = await asyncio.gather(self._open(message, turn, spot), self._read_files(message, turn))
            if unread:
                await self._say_about(message, place, unread, nonce("unread", message.id))
            if admission.kind == "queued":
                await self._say_about(message, place, admission.text, nonce("queued", message.id))
        except Exception:
            # Start the turn anyway, or it would block its conversation. The reply tries to open the thread again.
            log.exception("turn %s has neither its thread nor another place", turn.id)
        try:
            await self._driver.go(turn.id)
        except Exception:
            log.exception("turn %s is stored but did not start", turn.id)
            await self._tell(message, STALLED)

    async def _asker(self, message: discord.Message, server: str) -> Actor:
        """Return the author. Before the server's data have arrived, look up which rights their roles give."""
        asker = people.asker(message, server)
        if server == DIRECT or people.knows_rights(message):
            return asker
        try:
            known = await patiently(lambda: self._directory.person(server, asker.id))
        except Failure as error:
            log.warning("the rights of %s are not known yet: %s", asker.id, error)
            known = None
        return known or asker

    async def _spot(self, message: discord.Message) -> Spot | None:
        here = str(message.channel.id)
        channel: object = message.channel
        if isinstance(channel, discord.DMChannel):
            return Spot(Place(DIRECT, here, here), frozenset({here}))
        if isinstance(channel, discord.PartialMessageable) and channel.guild_id is not None:
            # A thread that is not cached, or a server whose data have not arrived yet.
            channel = await self._directory.channel(str(channel.guild_id), channel.id)
        if not isinstance(channel, discord.abc.GuildChannel | discord.Thread):
            return None
        allowed = replying.permissions(channel, await self._directory.myself(channel.guild))
        lacking = tuple(replying.missing(channel, allowed))
        if not lacking and self._refusals.is_closed(here):
            lacking = ("a permission",)
        server, thread = str(channel.guild.id), str(message.id)
        if isinstance(channel, discord.Thread):
            return Spot(Place(server, here, here), frozenset({here, str(channel.parent_id)}), missing=lacking)
        if not replying.opens_thread(channel, allowed):
            return Spot(Place(server, here, here), frozenset({here}), missing=lacking)
        return Spot(Place(server, thread, thread), frozenset({here}), opens_thread=True, missing=lacking)

    async def _open(self, message: discord.Message, turn: Turn, spot: Spot) -> Place:
        """Open the turn's thread. If Discord refuses, move the turn to the channel and reply there.

        If Discord only fails, the turn stays where it is: the first message to the thread opens it.
        """
        if not spot.opens_thread:
            return turn.place
        here = str(message.channel.id)
        name = title(turn.text, self._client.user.display_name if self._client.user else "")
        try:
            await patiently(lambda: sending.open_thread(self._client, here, turn.message, name))
            return turn.place
        except Failure as error:
            if sending.passing(error) or sending.busy(error):
                log.warning("the thread of %s is not open yet: %s", turn.id, error)
                return turn.place
            if getattr(error, "code", 0) in sending.CLOSED:
                self._refusals.close(here)  # until a message is accepted there
            log.info("no thread for %s, answering in place: %s", turn.id, error)
        place = Place(turn.place.server, here, here)
        await self._driver.relocate(turn.id, place)
        return place

    async def _read_files(self, message: discord.Message, turn: Turn) -> str:
        """Download the files before the run starts. Return a line about those that were not read."""
        if not turn.files:
            return ""
        files = await attachments.downloaded(message.attachments, turn.files, self._files)
        try:
            await self._driver.enclose(turn.id, files)
        except SignoffError:
            log.exception("the files of turn %s were not stored", turn.id)
            return attachments.unread(turn.files)
        return attachments.unread(files)

    async def _quoted(self, message: discord.Message, spot: Spot, me: int) -> Quoted | None:
        """Return the message that this one replies to, unless it is the bot's own in the same conversation."""
        reference = message.reference
        if message.type is not discord.MessageType.reply or reference is None or not self._files.quoted_characters:
            return None
        original = reference.resolved
        if original is None and reference.message_id is not None:
            channel = self._client.get_partial_messageable(reference.channel_id)
            number = reference.message_id
            try:
                original = await sending.while_open(self._client, channel.fetch_message(number))
            except Failure as error:
                log.info("the message that %s replies to cannot be read: %s", message.id, error)
        if not isinstance(original, discord.Message):
            return None
        if original.author.id == me and str(reference.channel_id) == spot.place.channel:
            return None
        text = original.content.strip()
        cut = text[: self._files.quoted_characters]
        return Quoted(original.author.display_name, cut if cut == text else f"{cut}… (shortened)")

    async def _say_about(self, message: discord.Message, place: Place, text: str, key: str) -> None:
        """Say something about a turn that was taken, where its reply will be."""
        answers = str(message.id) if place.channel == str(message.channel.id) else None
        try:
            await sending.send(self._client, place.channel, sending.inert(text), key=key, answers=answers)
        except Failure as error:
            log.info("could not say about %s: %s: %s", message.id, text, error)

    async def _refuse(self, message: discord.Message, text: str, every: float) -> None:
        """Tell somebody why they may not ask, but not again for each message of a flood."""
        if self._is_first(message, every):
            await self._tell(message, text)

    async def _refuse_privately(self, message: discord.Message, missing: tuple[str, ...]) -> None:
        """Tell somebody in a direct message that no reply is possible where they asked."""
        text = CLOSED.format(where=f"<#{message.channel.id}>", missing=" and ".join(missing))
        if not self._is_first(message, CLOSED_EVERY):
            return
        await self._note(message)
        log.warning("message %s was not taken: I lack %s in channel %s", message.id, missing, message.channel.id)
        try:
            self._refusals.check(Weight.OPTIONAL)
            opening = self._client.create_dm(discord.Object(message.author.id))
            direct = await sending.while_open(self._client, opening)
            await sending.send(self._client, str(direct.id), text, key=nonce("closed", message.id))
        except Failure as error:
            log.info("could not tell %s that I cannot reply: %s", message.author.id, error)

    def _is_first(self, message: discord.Message, every: float) -> bool:
        """Whether this person was not refused in this channel for `every` seconds."""
        who, now = (message.author.id, message.channel.id), time.monotonic()
        if now < self._refused.get(who, now):
            if self._listening is not None:
                self._listening.ignore(Origin(str(message.channel.id), str(message.id)).turn)
            return False
        self._refused[who] = now + every
        self._refused.move_to_end(who)
        while len(self._refused) > 1000:
            self._refused.popitem(last=False)
        return True

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


def request_text(content: str, me: int) -> str:
    """Return the message without our own mention."""
    return re.sub(rf"<@!?{me}>[ \t]?", "", content).strip()


def _mentions(message: discord.Message, me: int) -> bool:
    return any(user.id == me for user in message.mentions)


def _by_role(message: discord.Message, me: int) -> bool:
    return any(_is_role_of(role, me) for role in message.role_mentions)


def _is_role_of(role: discord.Role, me: int) -> bool:
    return role.tags is not None and role.tags.bot_id == me
