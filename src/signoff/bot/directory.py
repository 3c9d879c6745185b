"""People and roles as Discord knows them now. Implements `approvals.ports.Directory`.

Members are fetched one by one, which needs no privileged intent; the gateway keeps the roles of each server up to date.
If Discord cannot be asked, this raises, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Sequence

import discord

from signoff.approvals.approvers import ASKER, MANAGE_SERVER
from signoff.approvals.model import DIRECT, Actor
from signoff.bot import people
from signoff.bot.sending import while_open


class DiscordDirectory:
    def __init__(self, client: discord.Client) -> None:
        self._client = client

    async def person(self, server: str, user: str) -> Actor | None:
        number = _number(user)
        if number is None:
            return None
        try:
            if server == DIRECT:
                fetched = await while_open(self._client, self._client.fetch_user(number))
                return Actor(str(fetched.id), fetched.display_name, DIRECT, is_bot=fetched.bot)
            guild = await self._guild(server)
            return people.member(await while_open(self._client, guild.fetch_member(number)))
        except discord.NotFound:
            return None

    async def missing(self, server: str, named: Sequence[str]) -> Sequence[str]:
        if server == DIRECT:
            return ()
        guild = await self._guild(server)
        return [one for one in named if not await self._is_there(guild, one)]

    async def _is_there(self, guild: discord.Guild, part: str) -> bool:
        """Whether this part of a specification names somebody who exists. An unreadable part names nobody."""
        if part in (MANAGE_SERVER, ASKER):
            return True
        kind, _, identifier = part.partition(":")
        number = _number(identifier)
        if number is None:
            return False
        if kind == "role":
            # @everyone, whose id is the server's, never counts as an approver role.
            return number != guild.id and guild.get_role(number) is not None
        return kind == "user" and await self.person(str(guild.id), identifier) is not None

    async def channel(self, server: str, channel: int) -> discord.abc.GuildChannel | discord.Thread:
        """Return a channel or thread that is not cached, bound to its server's roles."""
        guild = await self._guild(server)
        return await while_open(self._client, guild.fetch_channel(channel))

    async def myself(self, guild: discord.Guild) -> discord.Member | None:
        """Return the bot's own membership. None if Discord does not tell."""
        me = self._client.user
        if me is None or guild.unavailable:
            return None
        return guild.get_member(me.id) or await while_open(self._client, guild.fetch_member(me.id))

    async def _guild(self, server: str) -> discord.Guild:
        cached = self._client.get_guild(int(server))
        if cached is not None and not cached.unavailable:
            return cached
        return await while_open(self._client, self._client.fetch_guild(int(server)))


def _number(identifier: str) -> int | None:
    return int(identifier) if identifier.isascii() and identifier.isdecimal() and len(identifier) <= 20 else None
