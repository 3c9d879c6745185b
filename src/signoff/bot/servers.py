"""The servers of the bot, for the Discord tools. Implements `servers.ports.Servers`.

Tools run on another event loop, and discord.py works on the bot's, so each method changes over to that one. People are
fetched one by one, which needs no privileged intent; the gateway keeps roles and channels up to date. Nothing here
decides whether an act may be done: see `servers.authority`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import discord
from discord.http import Route

from signoff.bot.sending import Failure, reason, while_open
from signoff.bot.server_acts import SingleAttempts, do
from signoff.bot.server_facts import AnyChannel, channel_facts, member_facts, message_facts, rights_of, role_facts
from signoff.servers.model import Act, Channel, Kind, Member, Message, Ping, Role, Situation
from signoff.servers.ports import ChannelEntry, MemberList, NotDone
from signoff.servers.wording import MOST_PINGED

T = TypeVar("T")
PATIENCE = 30.0
"""Seconds that the server's data may take after a start: an approved call may run before they have arrived."""
LOOK_SECONDS = 0.05
NO_MEMBERS_INTENT = (
    "Discord lists the members of a server only for bots with the Server Members Intent, which somebody has to turn on "
    "in Discord's Developer Portal. Searching by the beginning of a name works without it."
)
_LEFT = "The person who asked is not a member of this server any more."
_MENTION = re.compile(r"<@!?([0-9]{1,20})>")


class DiscordServers:
    """Build it on the bot's event loop, before the client logs in."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._attempts = SingleAttempts(client)

    async def look(self, server: str, asker: str, act: Act) -> Situation:
        return await self._home(lambda: self._look(server, asker, act))

    async def carry_out(self, server: str, act: Act, now: Situation, reason: str) -> str:
        return await self._home(lambda: do(self._client, self._attempts, int(server), act, now, reason))

    async def history(
        self, server: str, asker: str, channel: str, limit: int, before: str
    ) -> tuple[Channel, Sequence[Message]]:
        return await self._home(lambda: self._history(server, asker, channel, limit, before))

    async def members(self, server: str, asker: str, name: str, limit: int) -> MemberList:
        return await self._home(lambda: self._members(server, asker, name, limit))

    async def roles(self, server: str, asker: str) -> Sequence[Role]:
        return await self._home(lambda: self._roles(server, asker))

    async def channels(self, server: str, asker: str) -> Sequence[ChannelEntry]:
        return await self._home(lambda: self._channels(server, asker))

    async def _home(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the work on the bot's event loop. If this is cancelled, so is the work."""
        if asyncio.get_running_loop() is self._loop:
            return await work()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self._loop))

    async def _look(self, server: str, asker: str, act: Act) -> Situation:
        guild = await self._guild(server)
        channel = await self._channel(guild, act.channel) if act.channel else None
        me = self._client.user
        assert me is not None
        bot, person = await self._member(guild, str(me.id), channel), await self._member(guild, asker, channel)
        if bot is None:
            raise NotDone("The bot is not a member of this server any more.")
        target = None
        if act.member and act.kind is not Kind.UNBAN:
            target = await self._member(guild, act.member)
        role = guild.get_role(int(act.role)) if act.role else None
        return Situation(
            bot,
            person,
            target,
            channel_facts(channel) if channel else None,
            role_facts(role) if role else None,
            # Without the right to see them, the texts of messages are not even fetched.
            await self._chosen(channel, act.messages) if channel and person and _reads(person) else (),
            await self._banned(guild, act.member) if act.kind is Kind.UNBAN and bot.rights & {"ban_members"} else "",
            await self._mentioned(guild, act) if act.ping is not Ping.NOBODY else {},
        )

    async def _guild(self, server: str) -> discord.Guild:
        """Return the server, once its data have arrived. Raises NotDone if the bot is not in it."""
        end = time.monotonic() + PATIENCE
        while True:
            guild = self._client.get_guild(int(server))
            if guild is not None and not guild.unavailable:
                return guild
            if self._client.is_ready() and guild is None:
                raise NotDone("The bot is not in this server any more.")
            if time.monotonic() > end:
                raise NotDone("Discord has not sent this server's data yet. Try again in a minute.")
            await asyncio.sleep(LOOK_SECONDS)

    async def _channel(self, guild: discord.Guild, number: str) -> AnyChannel | None:
        """Return a channel of this server; None if there is none that the bot can see."""
        channel: AnyChannel | None = guild.get_channel_or_thread(int(number))
        try:
            if channel is None:
                channel = await self._asked(guild.fetch_channel(int(number)), discord.Forbidden, discord.InvalidData)
        except (discord.NotFound, discord.Forbidden, discord.InvalidData):
            return None  # InvalidData: it belongs to another server
        return None if isinstance(channel, discord.Thread) and channel.parent is None else channel

    async def _member(self, guild: discord.Guild, user: str, channel: AnyChannel | None = None) -> Member | None:
        try:
            member = await self._asked(guild.fetch_member(int(user)))
        except discord.NotFound:
            return None
        return member_facts(member, await self._rights_in(channel, member) if channel else frozenset())

    async def _rights_in(self, channel: AnyChannel, member: discord.Member) -> frozenset[str]:
        allowed = channel.permissions_for(member)
        if not allowed.view_channel:
            return frozenset()
        if isinstance(channel, discord.Thread) and channel.is_private() and not allowed.manage_threads:
            try:
                await self._asked(channel.fetch_member(member.id))
            except discord.NotFound:
                return frozenset()
        return rights_of(allowed)

    async def _chosen(self, channel: AnyChannel, numbers: Sequence[str]) -> tuple[Message, ...]:
        """Return those of the messages that exist, oldest first."""
        if not numbers or not channel_facts(channel).kind.has_messages:
            return ()
        wanted, place = sorted(map(int, numbers)), self._place(channel)
        # Mostly they are close together, so that one request finds them all.
        page = await self._asked(_collected(place.history(limit=100, before=discord.Object(wanted[-1] + 1))))
        chosen = {message.id: message for message in page if message.id in wanted}
        for number in wanted if len(page) == 100 else ():
            if number not in chosen and number < page[-1].id:
                with suppress(discord.NotFound):
                    chosen[number] = await self._asked(place.fetch_message(number))
        return tuple(self._facts(chosen[number]) for number in wanted if number in chosen)

    def _place(self, channel: AnyChannel) -> discord.PartialMessageable:
        return self._client.get_partial_messageable(channel.id, guild_id=channel.guild.id)

    def _facts(self, message: discord.Message) -> Message:
        me, flags = self._client.user, self._client.application_flags
        reads_text = flags.gateway_message_content or flags.gateway_message_content_limited
        return message_facts(message, me.id if me else 0, reads_text=reads_text)

    async def _banned(self, guild: discord.Guild, user: str) -> str:
        try:
            return (await self._asked(guild.fetch_ban(discord.Object(int(user))))).user.display_name
        except discord.NotFound:
            return ""

    async def _mentioned(self, guild: discord.Guild, act: Act) -> dict[str, str]:
        """Return id -> name of the members whom the text mentions."""
        names: dict[str, str] = {}
        for number in list(dict.fromkeys(_MENTION.findall(act.text)))[: MOST_PINGED + 1]:
            member = await self._member(guild, number)
            names |= {number: member.name} if member else {}
        return names

    async def _history(
        self, server: str, asker: str, number: str, limit: int, before: str
    ) -> tuple[Channel, Sequence[Message]]:
        guild = await self._guild(server)
        channel = await self._channel(guild, number)
        person = await self._known(guild, asker, channel)
        if channel is None or "view_channel" not in person.rights_here:
            raise NotDone(f"This server has no channel {number} that {person.name} can see.")
        facts = channel_facts(channel)
        if not facts.kind.has_messages:
            raise NotDone(f"#{facts.name} is a {facts.kind}. Only text channels and threads can be read.")
        if not _reads(person):
            raise NotDone(f"{person.name} lacks Read Message History in #{facts.name}.")
        if not channel.permissions_for(guild.me).read_message_history:
            raise NotDone(f"The bot lacks Read Message History in #{facts.name}. An admin has to grant it.")
        start = discord.Object(int(before)) if before else None
        messages = await self._asked(_collected(self._place(channel).history(limit=limit, before=start)))
        return facts, [self._facts(message) for message in reversed(messages)]

    async def _members(self, server: str, asker: str, name: str, limit: int) -> MemberList:
        guild = await self._guild(server)
        await self._known(guild, asker)
        path = "/guilds/{guild_id}/members/search" if name else "/guilds/{guild_id}/members"
        wanted: dict[str, Any] = {"limit": limit + 1} | ({"query": name} if name else {})
        try:
            # The raw call: discord.py searches over the gateway, which answers late and never says no.
            entries = await self._asked(
                self._client.http.request(Route("GET", path, guild_id=guild.id), params=wanted), discord.Forbidden
            )
        except discord.Forbidden:
            raise NotDone(NO_MEMBERS_INTENT if not name else "Discord does not let the bot search members.") from None
        state = self._client._connection  # pyright: ignore[reportPrivateUsage]
        members = [member_facts(discord.Member(data=entry, guild=guild, state=state)) for entry in entries]
        return MemberList(members[:limit], len(members) > limit)

    async def _roles(self, server: str, asker: str) -> Sequence[Role]:
        guild = await self._guild(server)
        await self._known(guild, asker)
        return [role_facts(role) for role in reversed(guild.roles)]

    async def _channels(self, server: str, asker: str) -> Sequence[ChannelEntry]:
        guild = await self._guild(server)
        try:
            person = await self._asked(guild.fetch_member(int(asker)))
        except discord.NotFound:
            raise NotDone(_LEFT) from None
        seen: list[ChannelEntry] = []
        for channel in [*sorted(guild.channels, key=lambda one: one.position), *guild.threads]:
            # Nobody is looked up in private threads here: those are left out unless the asker manages threads.
            allowed = channel.permissions_for(person)
            is_private = isinstance(channel, discord.Thread) and channel.is_private() and not allowed.manage_threads
            if allowed.view_channel and not is_private:
                above = channel.parent if isinstance(channel, discord.Thread) else channel.category
                inside = (f"#{above.name}" if isinstance(channel, discord.Thread) else above.name) if above else ""
                seen.append(ChannelEntry(channel_facts(channel), inside, getattr(channel, "topic", None) or ""))
        return seen

    async def _known(self, guild: discord.Guild, asker: str, channel: AnyChannel | None = None) -> Member:
        person = await self._member(guild, asker, channel)
        if person is None:
            raise NotDone(_LEFT)
        return person

    async def _asked(self, request: Coroutine[Any, Any, T], *expected: type[discord.DiscordException]) -> T:
        """Ask Discord. NotFound and the expected errors are passed on; every other failure raises NotDone."""
        try:
            return await while_open(self._client, request)
        except Failure as error:
            if isinstance(error, (discord.NotFound, *expected)):
                raise
            raise NotDone(f"It could not be looked up: {reason(error)}.") from error


def _reads(person: Member) -> bool:
    return {"view_channel", "read_message_history"} <= person.rights_here


async def _collected(messages: AsyncIterator[discord.Message]) -> list[discord.Message]:
    return [message async for message in messages]
