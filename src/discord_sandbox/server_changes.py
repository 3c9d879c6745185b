"""Changes to a server and its people: roles, memberships, channels, overwrites.

This module changes the world and announces the change; callers have checked the permission.
"""

from dataclasses import replace

from discord_sandbox import announce, seed
from discord_sandbox.bundle import Sandbox
from discord_sandbox.model import Channel, ChannelType, Guild, Member, Overwrite, Role, User
from discord_sandbox.permissions import BOT_INVITE, Permission, can


def member_changed(sb: Sandbox, guild: Guild, member: Member) -> None:
    announce.member(sb, "GUILD_MEMBER_UPDATE", guild, member)


def grant(sb: Sandbox, guild: Guild, member: Member, role: Role) -> None:
    if role.id not in member.roles:
        member.roles.append(role.id)
        member_changed(sb, guild, member)


def revoke(sb: Sandbox, guild: Guild, member: Member, role: Role) -> None:
    if role.id in member.roles:
        member.roles.remove(role.id)
        member_changed(sb, guild, member)


def add_role(sb: Sandbox, guild: Guild, name: str, permissions: int, number: int | None = None) -> Role:
    role = seed.new_role(sb.world, guild, name, permissions, number)
    announce.role(sb, "GUILD_ROLE_CREATE", guild, role)
    return role


def change_role(sb: Sandbox, guild: Guild, role: Role, permissions: int | None, mentionable: bool | None) -> None:
    role.permissions = role.permissions if permissions is None else permissions
    role.mentionable = role.mentionable if mentionable is None else mentionable
    announce.role(sb, "GUILD_ROLE_UPDATE", guild, role)


def remove_role(sb: Sandbox, guild: Guild, role: Role) -> None:
    guild.roles.pop(role.id)
    for member in guild.members.values():
        if role.id in member.roles:
            member.roles.remove(role.id)
    announce.role(sb, "GUILD_ROLE_DELETE", guild, role)


def add_channel(
    sb: Sandbox,
    guild: Guild,
    name: str,
    number: int | None = None,
    *,
    kind: int = ChannelType.TEXT,
    parent: Channel | None = None,
    topic: str | None = None,
) -> Channel:
    """Create a channel. In a category it takes over the category's overwrites."""
    channel = seed.new_channel(sb.world, guild, name, number)
    channel.type, channel.topic = kind, topic
    if parent is not None:
        channel.parent_id = parent.id
        channel.overwrites = [replace(overwrite) for overwrite in parent.overwrites]
    announce.channel(sb, "CHANNEL_CREATE", channel)
    return channel


def remove_channel(sb: Sandbox, channel: Channel) -> None:
    """Delete a channel with its threads and all their messages."""
    seen_by = sorted(_seeing_bots(sb, channel))
    inside = [c.id for c in sb.world.channels.values() if c.parent_id == channel.id and c.thread is not None]
    for number in (*inside, channel.id):
        sb.world.channels.pop(number)
        sb.world.messages.pop(number, None)
    announce.channel_gone(sb, channel, seen_by)


def overwrite(sb: Sandbox, channel: Channel, target: int, kind: int, allow: int, deny: int) -> None:
    """Set what a channel allows or denies to somebody; with neither, remove the entry."""
    before = _seeing_bots(sb, channel)
    channel.overwrites = [entry for entry in channel.overwrites if entry.id != target]
    if allow or deny:
        channel.overwrites.append(Overwrite(target, kind, allow, deny))
    after = _seeing_bots(sb, channel)
    announce.channel(sb, "CHANNEL_UPDATE", channel)
    guild = sb.world.guild_of(channel)
    for bot in after - before:
        if guild is not None:
            announce.thread_list(sb, guild, bot, channel)


def _seeing_bots(sb: Sandbox, channel: Channel) -> set[int]:
    return {bot for bot in sb.world.applications if can(sb.world, channel, bot, Permission.VIEW_CHANNEL)}


def join(sb: Sandbox, guild: Guild, user: User) -> Member:
    if user.id in guild.members:
        return guild.members[user.id]
    if user.bot:
        member = seed.join_bot(sb.world, guild, user, BOT_INVITE)
        announce.guild_joined(sb, guild, user.id)
    else:
        member = seed.join(sb.world, guild, user)
    announce.member(sb, "GUILD_MEMBER_ADD", guild, member)
    return member


def leave(sb: Sandbox, guild: Guild, user_id: int) -> None:
    member = guild.members.pop(user_id, None)
    if member is None:
        return
    announce.member(sb, "GUILD_MEMBER_REMOVE", guild, member)
    for role in [role for role in guild.roles.values() if role.bot_id == user_id]:
        remove_role(sb, guild, role)
    if user_id in sb.world.applications:
        announce.guild_left(sb, guild, user_id)
