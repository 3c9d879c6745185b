"""Everything that exists, and ways to find it.

This module holds state only: no wire format, no sockets, no rules about permissions. The world outlives the bot's
connections.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from discord_sandbox.clock import Clock
from discord_sandbox.model import (
    Application,
    Channel,
    ChannelType,
    Command,
    Guild,
    Member,
    Message,
    User,
    Webhook,
)
from discord_sandbox.snowflake import Snowflakes


@dataclass
class World:
    clock: Clock
    ids: Snowflakes
    users: dict[int, User] = field(default_factory=dict[int, User])
    applications: dict[int, Application] = field(default_factory=dict[int, Application])
    guilds: dict[int, Guild] = field(default_factory=dict[int, Guild])
    channels: dict[int, Channel] = field(default_factory=dict[int, Channel])
    messages: dict[int, dict[int, Message]] = field(default_factory=dict[int, dict[int, Message]])
    webhooks: dict[int, Webhook] = field(default_factory=dict[int, Webhook])
    commands: dict[int, Command] = field(default_factory=dict[int, Command])

    def application_of_token(self, token: str) -> Application | None:
        return next((app for app in self.applications.values() if token in app.tokens), None)

    def guilds_of(self, user_id: int) -> list[Guild]:
        return [guild for guild in self.guilds.values() if user_id in guild.members]

    def guild_of(self, channel: Channel) -> Guild | None:
        return None if channel.guild_id is None else self.guilds.get(channel.guild_id)

    def member(self, guild_id: int | None, user_id: int) -> Member | None:
        guild = None if guild_id is None else self.guilds.get(guild_id)
        return None if guild is None else guild.members.get(user_id)

    def channels_of(self, guild_id: int) -> list[Channel]:
        return [c for c in self.channels.values() if c.guild_id == guild_id and c.thread is None]

    def threads_of(self, guild_id: int, *, archived: bool | None = None) -> list[Channel]:
        return [
            c
            for c in self.channels.values()
            if c.guild_id == guild_id and c.thread is not None and archived in (None, c.thread.archived)
        ]

    def parent_of(self, channel: Channel) -> Channel:
        """Return the channel whose overwrites apply: a thread's parent, else the channel itself."""
        if channel.thread is None or channel.parent_id is None:
            return channel
        return self.channels.get(channel.parent_id, channel)

    def message(self, channel_id: int, message_id: int) -> Message | None:
        return self.messages.get(channel_id, {}).get(message_id)

    def history(self, channel_id: int) -> list[Message]:
        """Return a channel's messages, oldest first. Ids only rise, so the order of arrival is the order of ids."""
        return list(self.messages.get(channel_id, {}).values())

    def latest(self, channel_id: int) -> Iterator[Message]:
        """Yield a channel's messages, newest first, without copying."""
        return reversed(self.messages.get(channel_id, {}).values())

    def add_message(self, message: Message) -> None:
        self.messages.setdefault(message.channel_id, {})[message.id] = message

    def dm_between(self, first: int, second: int) -> Channel:
        """Find the direct channel of two users and create it if there is none."""
        pair = sorted((first, second))
        for channel in self.channels.values():
            if channel.type == ChannelType.DM and sorted(channel.recipients) == pair:
                return channel
        channel = Channel(self.ids.next(), ChannelType.DM, recipients=[first, second])
        self.channels[channel.id] = channel
        return channel

    def commands_of(self, application_id: int, guild_id: int | None) -> list[Command]:
        return [c for c in self.commands.values() if c.application_id == application_id and c.guild_id == guild_id]

    def user_named(self, name: str) -> User | None:
        return _named(self.users.values(), name)

    def channel_named(self, name: str) -> Channel | None:
        wanted = name.removeprefix("#").lower()
        return next((c for c in self.channels.values() if c.name.lower() == wanted), None)


def _named(users: Iterable[User], name: str) -> User | None:
    wanted = name.lower()
    return next((u for u in users if wanted in (u.name.lower(), (u.global_name or "").lower())), None)
