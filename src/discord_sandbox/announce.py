"""Tells the gateway and the log what changed in the world.

This module chooses the event, its intent and who may see it. It changes nothing.
"""

from discord_sandbox import access, guilds
from discord_sandbox.bundle import Sandbox
from discord_sandbox.model import Channel, Guild, Json, Member, Message, Role
from discord_sandbox.permissions import Permission, can, in_guild
from discord_sandbox.sessions import Render, Viewer

GUILDS, MEMBERS, GUILD_MESSAGES, GUILD_REACTIONS, GUILD_TYPING = 1 << 0, 1 << 1, 1 << 9, 1 << 10, 1 << 11
MODERATION = 1 << 2
DM_MESSAGES, DM_REACTIONS, DM_TYPING, MESSAGE_CONTENT = 1 << 12, 1 << 13, 1 << 14, 1 << 15


def message(sb: Sandbox, name: str, posted: Message) -> None:
    """Send MESSAGE_CREATE or MESSAGE_UPDATE. A private response reaches only the person, never the gateway."""
    where = sb.world.channels[posted.channel_id]
    verb = "create" if name == "MESSAGE_CREATE" else "update"
    sb.log.world(
        f"message.{verb}",
        channel_id=str(where.id),
        message_id=str(posted.id),
        author_id=str(posted.author_id),
        ephemeral_to=None if posted.ephemeral_to is None else str(posted.ephemeral_to),
    )
    if posted.ephemeral_to is not None:
        return
    member = sb.world.member(where.guild_id, posted.author_id)

    def render(viewer: Viewer) -> Json | None:
        if not can(sb.world, where, viewer.bot_id, Permission.VIEW_CHANNEL):
            return None
        clear = access.readable(viewer.bot_id, where, posted, content_intent=bool(viewer.intents & MESSAGE_CONTENT))
        body = sb.payloads.message(posted, viewer.bot_id, readable=clear)
        if where.guild_id is not None:
            body["guild_id"] = str(where.guild_id)
            if member is not None and posted.webhook_name is None:
                body["member"] = sb.payloads.member(member, with_user=False)
        return body

    _publish(sb, name, where, render, GUILD_MESSAGES, DM_MESSAGES)


def message_deleted(sb: Sandbox, posted: Message) -> None:
    where = sb.world.channels[posted.channel_id]
    sb.log.world("message.delete", channel_id=str(where.id), message_id=str(posted.id))
    if posted.ephemeral_to is None:
        body = _with_guild({"id": str(posted.id), "channel_id": str(where.id)}, where)
        in_channel(sb, "MESSAGE_DELETE", where, body, GUILD_MESSAGES, DM_MESSAGES)


def messages_deleted(sb: Sandbox, where: Channel, numbers: list[int]) -> None:
    """Send one MESSAGE_DELETE_BULK for messages that were deleted together."""
    for number in numbers:
        sb.log.world("message.delete", channel_id=str(where.id), message_id=str(number))
    body = _with_guild({"ids": [str(number) for number in numbers], "channel_id": str(where.id)}, where)
    in_channel(sb, "MESSAGE_DELETE_BULK", where, body, GUILD_MESSAGES, DM_MESSAGES)


def ban(sb: Sandbox, name: str, place: Guild, user_id: int) -> None:
    """Send GUILD_BAN_ADD or GUILD_BAN_REMOVE to the bots that ask for moderation events and may ban."""
    sb.log.world(name.lower().replace("_", "."), guild_id=str(place.id), user_id=str(user_id))
    body: Json = {"guild_id": str(place.id), "user": sb.payloads.user_by_id(user_id)}

    def render(viewer: Viewer) -> Json | None:
        return body if in_guild(place, viewer.bot_id) & Permission.BAN_MEMBERS else None

    sb.sessions.publish(name, render, guild_id=place.id, intent=MODERATION)


def in_channel(sb: Sandbox, name: str, where: Channel, body: Json, guild_intent: int, dm_intent: int) -> None:
    """Send the same body to everybody who can see the channel."""

    def render(viewer: Viewer) -> Json | None:
        return body if can(sb.world, where, viewer.bot_id, Permission.VIEW_CHANNEL) else None

    _publish(sb, name, where, render, guild_intent, dm_intent)


def channel(sb: Sandbox, name: str, where: Channel) -> None:
    """Send CHANNEL_* or THREAD_* with the channel as each bot sees it."""
    sb.log.world(name.lower().replace("_", "."), channel_id=str(where.id), name=where.name)
    extra: Json = {"newly_created": True} if name == "THREAD_CREATE" else {}

    def render(viewer: Viewer) -> Json | None:
        if not can(sb.world, where, viewer.bot_id, Permission.VIEW_CHANNEL):
            return None
        return sb.payloads.channel(where, viewer.bot_id) | extra

    _publish(sb, name, where, render, GUILDS, 0)


def channel_gone(sb: Sandbox, where: Channel, seen_by: list[int]) -> None:
    """Send the deletion to `seen_by`: the bots that could see the channel before it was deleted."""
    name = "CHANNEL_DELETE" if where.thread is None else "THREAD_DELETE"
    sb.log.world(name.lower().replace("_", "."), channel_id=str(where.id), name=where.name)
    body = sb.payloads.channel(where)
    if where.thread is not None:
        body = {key: body[key] for key in ("id", "guild_id", "parent_id", "type")}
    _publish(sb, name, where, lambda viewer: body if viewer.bot_id in seen_by else None, GUILDS, 0)


def added_to_thread(sb: Sandbox, where: Channel, bot_id: int) -> None:
    """Send the whole thread to a bot that joins it, because the thread may be private and new to the bot."""
    body = sb.payloads.channel(where, bot_id)
    to_bot(sb, "THREAD_CREATE", bot_id, body, guild_id=where.guild_id, intent=GUILDS)


def thread_members(sb: Sandbox, where: Channel, added: list[int], removed: list[int]) -> None:
    assert where.thread is not None
    sb.log.world("thread.members", channel_id=str(where.id), added=[str(u) for u in added])
    body: Json = {
        "id": str(where.id),
        "guild_id": str(where.guild_id),
        "member_count": len(where.thread.members),
    }
    if added:
        body["added_members"] = [_thread_member(sb, where, user) for user in added]
    if removed:
        body["removed_member_ids"] = [str(user) for user in removed]

    def render(viewer: Viewer) -> Json | None:
        concerned = viewer.bot_id in (*added, *removed) or viewer.intents & MEMBERS
        return body if concerned and can(sb.world, where, viewer.bot_id, Permission.VIEW_CHANNEL) else None

    _publish(sb, "THREAD_MEMBERS_UPDATE", where, render, GUILDS, 0)


def _thread_member(sb: Sandbox, where: Channel, user_id: int) -> Json:
    body = sb.payloads.thread_member(where, user_id)
    member = sb.world.member(where.guild_id, user_id)
    return body | {"member": sb.payloads.member(member), "presence": None} if member else body


def thread_list(sb: Sandbox, place: Guild, bot_id: int, where: Channel) -> None:
    """Send THREAD_LIST_SYNC: a bot that may now see a channel gets its threads."""
    threads = [t for t in sb.world.threads_of(place.id, archived=False) if t.parent_id == where.id]
    body: Json = {
        "guild_id": str(place.id),
        "channel_ids": [str(where.id)],
        "threads": [sb.payloads.channel(thread, bot_id) for thread in threads],
        "members": [
            sb.payloads.thread_member(thread, bot_id)
            for thread in threads
            if thread.thread is not None and bot_id in thread.thread.members
        ],
    }
    to_bot(sb, "THREAD_LIST_SYNC", bot_id, body, guild_id=place.id, intent=GUILDS)


def member(sb: Sandbox, name: str, place: Guild, who: Member) -> None:
    """Send GUILD_MEMBER_*. A bot always gets changes to itself; changes to others need the privileged intent."""
    sb.log.world(name.lower().replace("_", "."), guild_id=str(place.id), user_id=str(who.user_id))
    if name == "GUILD_MEMBER_REMOVE":
        body: Json = {"guild_id": str(place.id), "user": sb.payloads.user_by_id(who.user_id)}
    else:
        body = sb.payloads.member(who) | {"guild_id": str(place.id)}

    def render(viewer: Viewer) -> Json | None:
        if viewer.bot_id not in place.members:
            return None
        mine = viewer.bot_id == who.user_id and name == "GUILD_MEMBER_UPDATE"
        return body if mine or viewer.intents & MEMBERS else None

    sb.sessions.publish(name, render, guild_id=place.id)


def role(sb: Sandbox, name: str, place: Guild, role: Role) -> None:
    sb.log.world(name.lower().replace("_", "."), guild_id=str(place.id), role_id=str(role.id))
    body: Json = {"guild_id": str(place.id)}
    body |= {"role_id": str(role.id)} if name == "GUILD_ROLE_DELETE" else {"role": sb.payloads.role(role)}
    sb.sessions.publish(name, _members_only(place, body), guild_id=place.id, intent=GUILDS)


def guild_joined(sb: Sandbox, place: Guild, bot_id: int) -> None:
    def render(viewer: Viewer) -> Json | None:
        if viewer.bot_id != bot_id:
            return None
        return guilds.guild_create(sb.payloads, place, bot_id, viewer.intents)

    sb.sessions.publish("GUILD_CREATE", render, guild_id=place.id, intent=GUILDS)


def guild_left(sb: Sandbox, place: Guild, bot_id: int) -> None:
    to_bot(sb, "GUILD_DELETE", bot_id, {"id": str(place.id)}, guild_id=place.id, intent=GUILDS)


def to_bot(sb: Sandbox, name: str, bot_id: int, body: Json, *, guild_id: int | None, intent: int = 0) -> None:
    sb.sessions.publish(name, lambda v: body if v.bot_id == bot_id else None, guild_id=guild_id, intent=intent)


def typing(sb: Sandbox, where: Channel, user_id: int) -> None:
    sb.log.world("typing", channel_id=str(where.id), user_id=str(user_id))
    body = _with_guild({"channel_id": str(where.id), "user_id": str(user_id), "timestamp": int(sb.clock.now())}, where)
    if who := sb.world.member(where.guild_id, user_id):
        body["member"] = sb.payloads.member(who)
    in_channel(sb, "TYPING_START", where, body, GUILD_TYPING, DM_TYPING)


def _members_only(place: Guild, body: Json) -> Render:
    return lambda viewer: body if viewer.bot_id in place.members else None


def _with_guild(body: Json, where: Channel) -> Json:
    return body if where.guild_id is None else body | {"guild_id": str(where.guild_id)}


def _publish(sb: Sandbox, name: str, where: Channel, render: Render, guild_intent: int, dm_intent: int) -> None:
    intent = dm_intent if where.guild_id is None else guild_intent
    sb.sessions.publish(name, render, guild_id=where.guild_id, intent=intent)
