"""The permissions of a member in a channel, computed as Discord documents it.

These are pure functions of the world; `access` raises the errors.
"""

from enum import IntFlag

from discord_sandbox.model import Channel, ChannelType, Guild
from discord_sandbox.world import World


class Permission(IntFlag):
    CREATE_INSTANT_INVITE = 1 << 0
    KICK_MEMBERS = 1 << 1
    BAN_MEMBERS = 1 << 2
    ADMINISTRATOR = 1 << 3
    MANAGE_CHANNELS = 1 << 4
    MANAGE_GUILD = 1 << 5
    ADD_REACTIONS = 1 << 6
    VIEW_CHANNEL = 1 << 10
    SEND_MESSAGES = 1 << 11
    MANAGE_MESSAGES = 1 << 13
    EMBED_LINKS = 1 << 14
    ATTACH_FILES = 1 << 15
    READ_MESSAGE_HISTORY = 1 << 16
    MENTION_EVERYONE = 1 << 17
    CHANGE_NICKNAME = 1 << 26
    MANAGE_NICKNAMES = 1 << 27
    MANAGE_ROLES = 1 << 28
    MANAGE_WEBHOOKS = 1 << 29
    USE_APPLICATION_COMMANDS = 1 << 31
    MANAGE_THREADS = 1 << 34
    CREATE_PUBLIC_THREADS = 1 << 35
    CREATE_PRIVATE_THREADS = 1 << 36
    SEND_MESSAGES_IN_THREADS = 1 << 38
    MODERATE_MEMBERS = 1 << 40
    SEND_POLLS = 1 << 49
    PIN_MESSAGES = 1 << 51


P = Permission
ALL = (1 << 53) - 1
BOT_INVITE = 309237763136
# The permissions of @everyone in a new server. They include mentioning everyone, so that a careless bot really pings.
EVERYONE = int(
    P.CREATE_INSTANT_INVITE | P.ADD_REACTIONS | P.VIEW_CHANNEL | P.SEND_MESSAGES | P.EMBED_LINKS | P.ATTACH_FILES
    | P.READ_MESSAGE_HISTORY | P.MENTION_EVERYONE | P.CHANGE_NICKNAME | P.USE_APPLICATION_COMMANDS
    | P.CREATE_PUBLIC_THREADS | P.CREATE_PRIVATE_THREADS | P.SEND_MESSAGES_IN_THREADS | P.SEND_POLLS
)  # fmt: skip
IN_DM = int(
    P.ADD_REACTIONS | P.VIEW_CHANNEL | P.SEND_MESSAGES | P.EMBED_LINKS | P.ATTACH_FILES | P.READ_MESSAGE_HISTORY
    | P.USE_APPLICATION_COMMANDS
)  # fmt: skip
IN_TIMEOUT = int(P.VIEW_CHANNEL | P.READ_MESSAGE_HISTORY)


def in_guild(guild: Guild, user_id: int) -> int:
    """Return the permissions from roles alone; 0 for somebody who is not a member."""
    member = guild.members.get(user_id)
    if member is None:
        return 0
    if guild.owner_id == user_id:
        return ALL
    total = guild.roles[guild.id].permissions
    for role_id in member.roles:
        role = guild.roles.get(role_id)
        total |= role.permissions if role else 0
    return ALL if total & P.ADMINISTRATOR else total


def in_channel(world: World, channel: Channel, user_id: int) -> int:
    """Return the permissions with the channel's overwrites applied; a thread uses those of its parent."""
    guild = world.guild_of(channel)
    if guild is None:
        return IN_DM if user_id in channel.recipients else 0
    total = in_guild(guild, user_id)
    if total == ALL or user_id not in guild.members:
        return total
    total = _overwritten(total, world.parent_of(channel), guild, user_id)
    if not total & P.VIEW_CHANNEL or _outside_private(channel, user_id, total):
        return 0
    timeout = guild.members[user_id].timed_out_until
    return total & IN_TIMEOUT if timeout and timeout > world.clock.iso() else total


def can(world: World, channel: Channel, user_id: int, *needed: int) -> bool:
    have = in_channel(world, channel, user_id)
    return all(have & int(p) == int(p) for p in needed)


def send_permission(channel: Channel) -> Permission:
    """Return the permission that is needed to write here; threads have their own."""
    return P.SEND_MESSAGES if channel.thread is None else P.SEND_MESSAGES_IN_THREADS


def _overwritten(total: int, channel: Channel, guild: Guild, user_id: int) -> int:
    by_id = {overwrite.id: overwrite for overwrite in channel.overwrites}
    if everyone := by_id.get(guild.id):
        total = total & ~everyone.deny | everyone.allow
    roles = [by_id[r] for r in guild.members[user_id].roles if r in by_id]
    for overwrite in roles:
        total &= ~overwrite.deny
    for overwrite in roles:
        total |= overwrite.allow
    if own := by_id.get(user_id):
        total = total & ~own.deny | own.allow
    return total


def _outside_private(channel: Channel, user_id: int, total: int) -> bool:
    if channel.type != ChannelType.PRIVATE_THREAD or channel.thread is None:
        return False
    return user_id not in channel.thread.members and not total & P.MANAGE_THREADS
