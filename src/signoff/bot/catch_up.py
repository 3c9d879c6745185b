"""Finds the mentions that were sent while the bot was offline, and hands them to `mentions` like live ones.

It runs each time the gateway is ready, which is after a start and after a session that could not be resumed; a resumed
session replays its events by itself. It also runs again for mentions that had to be put off. It reads only channels
with news since the bot listened last: servers say that of their channels and open threads when the bot connects, and
direct messages are read if the bot was used there. Until that is done, the store is not told that the bot listens, so
a process that is killed meanwhile leaves the work to the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import cast

import discord
from discord.gateway import DiscordWebSocket
from discord.utils import snowflake_time, time_snowflake

from signoff.approvals.model import DIRECT
from signoff.bot import sending
from signoff.bot.mentions import Mentions
from signoff.bot.origins import Origin, origin
from signoff.bot.refusals import Weight, refusals_of
from signoff.bot.sending import Failure
from signoff.turns.listening import Listening

log = logging.getLogger(__name__)

BEAT = 15.0
"""Seconds between two notes that the bot listens."""
AGAIN = 60.0
"""The least seconds between the start of a look and the next one for mentions that were put off."""
MESSAGES = 200
"""The most messages that are read in one place."""
PLACES = 50
"""The most places that are read."""
TURNS = 500
"""The number of newest turns whose places are read first."""
DIRECT_PLACES = 20
DELAYS = (2.0, 10.0, 60.0)
"""Seconds before the places that could not be read are tried again."""

ServerChannel = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread


class CatchUp:
    def __init__(
        self,
        client: discord.Client,
        mentions: Mentions,
        listening: Listening,
        limit: float,
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._mentions = mentions
        self._listening = listening
        self._limit = limit
        self._now = now
        self._turn = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._runs = 0
        self._disconnected = False
        self._looked = 0.0
        self.done = False
        """Whether everything that was missed has been found. Only then does the store learn that the bot listens."""

    async def run(self) -> None:
        """Find what was missed. Never raises, except that a closed client ends the task."""
        self.done = self._disconnected = False
        self._runs += 1
        run = self._runs
        async with self._turn:
            try:
                await self._find()
            except Exception:
                log.exception("mentions that were sent while the bot was offline could not be looked for")
            self.done = run == self._runs  # otherwise a newer session has its own look ahead
            await self._beat()
        if self._beating is None:
            self._beating = asyncio.create_task(self._keep_beating(), name="listening")

    def disconnected(self) -> None:
        """The session was interrupted. It is resumed, or `run` is called for the next one.

        Until then the bot has missed mentions, though the next socket may be open already.
        """
        self._disconnected = True

    def resumed(self) -> None:
        """The session goes on, and its missed events were replayed."""
        self._disconnected = False

    async def stop(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await self._beat(listening=False)

    # Looking

    async def _find(self) -> None:
        self._looked = self._now()
        since = await self._listening.start_look()
        if since is None or not self._limit:
            return
        oldest = self._now() - self._limit
        if since < oldest:
            log.warning("mentions before %s are not looked for: see [limits] catch_up", _worded(oldest))
            since = oldest
        places = await self._places(since)
        for delay in (*DELAYS, None):
            places = await self._look_in(places, since)
            if not places:
                return
            if delay is None:
                break
            await asyncio.sleep(delay)
        log.error("mentions in %d places since %s could not be looked for", len(places), _worded(since))

    async def _look_in(self, places: list[str], since: float) -> list[str]:
        """Hear the missed mentions of these places, oldest first. Return the places that could not be read."""
        unread: list[str] = []
        messages: dict[str, discord.Message] = {}
        for place in places:
            try:
                for message in await sending.while_open(self._client, self._read(int(place), since)):
                    messages[Origin(place, str(message.id)).turn] = message
            except Failure as error:
                if sending.passing(error):
                    unread.append(place)
                log.info("channel %s was not read: %s", place, error)
        missed = await self._listening.missed(messages)
        late = sorted((messages[mention] for mention in missed), key=lambda message: message.id)
        if late:
            log.info("%d mentions were sent while the bot was offline", len(late))
        for message in late:
            await self._mentions.hear(message, late=True)
        return unread

    async def _read(self, place: int, since: float) -> list[discord.Message]:
        """Return the messages for the bot, with their authors as members of the server."""
        channel = self._client.get_channel(place) or await self._client.fetch_channel(place)
        if not isinstance(channel, ServerChannel | discord.DMChannel):
            return []
        after = discord.Object(time_snowflake(datetime.fromtimestamp(since, UTC)))
        messages = [message async for message in channel.history(limit=MESSAGES, after=after, oldest_first=False)]
        if len(messages) == MESSAGES:
            log.warning("only the newest %d messages of channel %s were read for mentions", MESSAGES, place)
        for_me = [message for message in messages if self._mentions.is_for_me(message)]
        return [message for message in for_me if await _has_known_author(message)]

    async def _places(self, since: float) -> list[str]:
        """Return the channels and threads with news, those first where the bot was used lately."""
        turns = await self._listening.recent_turns(TURNS)
        used = dict.fromkeys(place for turn, _, channel in turns for place in (_source(turn), channel))
        direct = dict.fromkeys(channel for _, server, channel in turns if server == DIRECT)
        # An archived thread is not cached, and a message would have opened it again: there are no news in it.
        lively = {str(channel.id) for channel in self._cached() if _has_news(channel, since)}
        known = [place for place in used if place in lively]
        places = list(dict.fromkeys([*list(direct)[:DIRECT_PLACES], *known, *sorted(lively)]))
        if len(places) > PLACES:
            log.warning("mentions are looked for in only %d of %d channels with news", PLACES, len(places))
        return places[:PLACES]

    def _cached(self) -> Iterator[ServerChannel]:
        for guild in self._client.guilds:
            for channel in (*guild.channels, *guild.threads):
                if isinstance(channel, ServerChannel) and channel.permissions_for(guild.me).read_message_history:
                    yield channel

    # Listening

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            if self._listening.has_put_off and self._can_look_again():
                await self.run()
            else:
                await self._beat()

    def _hears(self) -> bool:
        return self.done and not self._disconnected and is_connected(self._client)

    def _can_look_again(self) -> bool:
        braked = refusals_of(self._client).least is Weight.ESSENTIAL
        return self._hears() and not braked and abs(self._now() - self._looked) >= AGAIN

    async def _beat(self, *, listening: bool = True) -> None:
        try:
            await self._listening.beat(listening=listening and self._hears())
        except Exception as error:
            log.warning("it was not noted that the bot listens: %s", error)


def is_connected(client: discord.Client) -> bool:
    """Whether the gateway sends events now."""
    socket = cast("DiscordWebSocket | None", client.ws)
    return client.is_ready() and not client.is_closed() and socket is not None and socket.open


async def _has_known_author(message: discord.Message) -> bool:
    """Look up the author's roles, which Discord leaves out of stored messages. False: the author left the server."""
    if message.guild is None or isinstance(message.author, discord.Member):
        return True
    try:
        message.author = await message.guild.fetch_member(message.author.id)
    except discord.NotFound:
        log.info("message %s is not answered: its author left the server", message.id)
        return False
    return True


def _has_news(channel: ServerChannel, since: float) -> bool:
    last = channel.last_message_id
    return last is not None and snowflake_time(last).timestamp() >= since


def _source(turn: str) -> str:
    source = origin(turn)
    return source.channel if source else ""


def _worded(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")
