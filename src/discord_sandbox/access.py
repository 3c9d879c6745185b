"""May this user do that here? Finds the thing asked for or raises Discord's refusal.

Shared by everything a bot or a person does, so that both meet the same rules.
"""

from discord_sandbox import apierrors
from discord_sandbox.model import Channel, Guild, Message
from discord_sandbox.permissions import Permission, can, in_guild
from discord_sandbox.world import World


def channel(world: World, user_id: int, channel_id: int, *needed: int) -> Channel:
    found = world.channels.get(channel_id)
    if found is None:
        raise apierrors.unknown_channel()
    if not can(world, found, user_id, Permission.VIEW_CHANNEL):
        raise apierrors.missing_access()
    require(world, found, user_id, *needed)
    return found


def require(world: World, where: Channel, user_id: int, *needed: int) -> None:
    if not can(world, where, user_id, *needed):
        raise apierrors.missing_permissions()


def message(world: World, where: Channel, message_id: int) -> Message:
    """A message everybody in the channel can see: private answers are reached by their token only."""
    found = world.message(where.id, message_id)
    if found is None or found.ephemeral_to is not None:
        raise apierrors.unknown_message()
    return found


def guild(world: World, user_id: int, guild_id: int, *needed: int) -> Guild:
    found = world.guilds.get(guild_id)
    if found is None:
        raise apierrors.unknown_guild()
    if user_id not in found.members:
        raise apierrors.missing_access()
    have = in_guild(found, user_id)
    if any(have & int(p) != int(p) for p in needed):
        raise apierrors.missing_permissions()
    return found


def readable(bot_id: int, where: Channel, found: Message, *, content_intent: bool) -> bool:
    """Whether a bot gets the text: its own, addressed to it, private, or with the Message Content intent."""
    return (
        content_intent
        or where.guild_id is None
        or found.author_id == bot_id
        or found.application_id == bot_id
        or bot_id in found.mentions
    )
