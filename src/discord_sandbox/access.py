"""Checks whether a user may do something, and finds it or raises Discord's refusal.

Bots and people go through the same checks.
"""

from discord_sandbox import apierrors
from discord_sandbox.model import Channel, Guild, Message
from discord_sandbox.permissions import Permission, can, in_guild
from discord_sandbox.world import World


def channel(world: World, user_id: int, channel_id: int, *needed: int) -> Channel:
    channel = world.channels.get(channel_id)
    if channel is None:
        raise apierrors.unknown_channel()
    if not can(world, channel, user_id, Permission.VIEW_CHANNEL):
        raise apierrors.missing_access()
    require(world, channel, user_id, *needed)
    return channel


def require(world: World, where: Channel, user_id: int, *needed: int) -> None:
    if not can(world, where, user_id, *needed):
        raise apierrors.missing_permissions()


def message(world: World, where: Channel, message_id: int) -> Message:
    """Find a message that everybody in the channel can see. Private responses can be found only by their token."""
    message = world.message(where.id, message_id)
    if message is None or message.ephemeral_to is not None:
        raise apierrors.unknown_message()
    return message


def guild(world: World, user_id: int, guild_id: int, *needed: int) -> Guild:
    guild = world.guilds.get(guild_id)
    if guild is None:
        raise apierrors.unknown_guild()
    if user_id not in guild.members:
        raise apierrors.missing_access()
    have = in_guild(guild, user_id)
    if any(have & int(p) != int(p) for p in needed):
        raise apierrors.missing_permissions()
    return guild


def readable(bot_id: int, where: Channel, message: Message, *, content_intent: bool) -> bool:
    """Whether a bot gets the text: it wrote it, is mentioned, is in a DM, or has the Message Content intent."""
    return (
        content_intent
        or where.guild_id is None
        or message.author_id == bot_id
        or message.application_id == bot_id
        or bot_id in message.mentions
    )
