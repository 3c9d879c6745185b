"""Bans, and the deletion of many messages at once.

This module changes the world and announces the change; callers have checked the permission and the order of roles.
"""

from discord_sandbox import announce, posting, server_changes
from discord_sandbox.bundle import Sandbox
from discord_sandbox.model import Channel, Guild, Json, Message
from discord_sandbox.snowflake import moment

LONGEST_TIMEOUT = 28 * 86_400
LONGEST_DELETION = 7 * 86_400
"""The longest time, in seconds, whose messages a ban deletes."""
OLDEST_IN_BULK = 14 * 86_400


def ban(sb: Sandbox, guild: Guild, user: int, delete_seconds: int = 0) -> None:
    if user in guild.banned:
        return
    guild.banned.append(user)
    announce.ban(sb, "GUILD_BAN_ADD", guild, user)
    server_changes.leave(sb, guild, user)
    horizon = sb.clock.now() - delete_seconds
    for channel in [c for c in sb.world.channels.values() if c.guild_id == guild.id and delete_seconds]:
        written = [m for m in sb.world.history(channel.id) if m.author_id == user and moment(m.id) >= horizon]
        delete_together(sb, channel, written)


def unban(sb: Sandbox, guild: Guild, user: int) -> None:
    guild.banned.remove(user)
    announce.ban(sb, "GUILD_BAN_REMOVE", guild, user)


def entry(sb: Sandbox, user: int) -> Json:
    return {"reason": None, "user": sb.payloads.user_by_id(user)}


def is_too_old(sb: Sandbox, message_id: int) -> bool:
    """Whether Discord refuses to delete this message together with others."""
    return moment(message_id) < sb.clock.now() - OLDEST_IN_BULK


def delete_together(sb: Sandbox, where: Channel, messages: list[Message]) -> None:
    for message in messages:
        posting.take_away(sb, message)
    if messages:
        announce.messages_deleted(sb, where, [message.id for message in messages])
