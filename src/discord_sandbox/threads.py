"""Threads: opening, joining, archiving.

This module changes the world and announces the change. It checks the permission to open a thread; callers check all
others.
"""

from datetime import datetime

from discord_sandbox import access, announce, apierrors
from discord_sandbox.apierrors import FormErrors
from discord_sandbox.bundle import Sandbox
from discord_sandbox.model import (
    Channel,
    ChannelType,
    Json,
    Message,
    MessageFlag,
    MessageType,
    Thread,
)
from discord_sandbox.permissions import Permission

ARCHIVE_MINUTES = (60, 1440, 4320, 10080)


def open_thread(sb: Sandbox, parent: Channel, owner_id: int, body: Json, message: Message | None) -> Channel:
    """Open a thread, from a message or without one. A thread from a message has the message's id."""
    if parent.guild_id is None or parent.thread is not None or parent.type == ChannelType.CATEGORY:
        raise apierrors.ApiError(400, 50024, "Cannot execute action on this channel type")
    _check_form(body)
    kind = ChannelType.PUBLIC_THREAD if message is not None else int(body.get("type") or ChannelType.PRIVATE_THREAD)
    private = kind == ChannelType.PRIVATE_THREAD
    needed = Permission.CREATE_PRIVATE_THREADS if private else Permission.CREATE_PUBLIC_THREADS
    access.require(sb.world, parent, owner_id, needed)
    if message is not None and message.id in sb.world.channels:
        raise apierrors.thread_exists()
    now = sb.clock.iso()
    thread = Channel(
        id=message.id if message is not None else sb.world.ids.next(),
        type=kind,
        name=str(body["name"]),
        guild_id=parent.guild_id,
        parent_id=parent.id,
        slowmode=int(body.get("rate_limit_per_user") or 0),
        thread=Thread(
            owner_id=owner_id,
            created_at=now,
            archive_stamp=now,
            auto_archive_minutes=int(body.get("auto_archive_duration") or 4320),
            invitable=bool(body.get("invitable", True)),
            members={owner_id: now},
        ),
    )
    sb.world.channels[thread.id] = thread
    announce.channel(sb, "THREAD_CREATE", thread)
    announce.thread_members(sb, thread, [owner_id], [])
    if message is not None:
        _hang(sb, thread, message)
    elif not private:
        _note(sb, parent, owner_id, MessageType.THREAD_CREATED, thread.name, _link(thread))
    return thread


def _check_form(body: Json) -> None:
    errors = FormErrors()
    errors.length(("name",), body.get("name"), 1, 100)
    if body.get("auto_archive_duration") not in (None, *ARCHIVE_MINUTES):
        message = "Value must be one of {4320, 60, 10080, 1440}."
        errors.add(("auto_archive_duration",), "BASE_TYPE_CHOICES", message)
    errors.check()


def _link(thread: Channel, message: Message | None = None) -> Json:
    body: Json = {"type": 0, "channel_id": str(thread.id), "guild_id": str(thread.guild_id)}
    if message is not None:
        body |= {"channel_id": str(message.channel_id), "message_id": str(message.id)}
    return body


def _hang(sb: Sandbox, thread: Channel, message: Message) -> None:
    message.flags |= MessageFlag.HAS_THREAD
    announce.message(sb, "MESSAGE_UPDATE", message)
    _note(sb, thread, message.author_id, MessageType.THREAD_STARTER, "", _link(thread, message))


def _note(sb: Sandbox, where: Channel, author_id: int, kind: int, content: str, reference: Json) -> None:
    """Post a system message by Discord."""
    note = Message(sb.world.ids.next(), where.id, author_id, sb.clock.iso(), kind, content=content, reference=reference)
    sb.world.add_message(note)
    where.last_message_id = note.id
    announce.message(sb, "MESSAGE_CREATE", note)


def note_pin(sb: Sandbox, where: Channel, author_id: int, message: Message) -> None:
    """Post Discord's message about a pinned message."""
    reference: Json = {"type": 0, "channel_id": str(where.id), "message_id": str(message.id)}
    if where.guild_id is not None:
        reference["guild_id"] = str(where.guild_id)
    _note(sb, where, author_id, MessageType.CHANNEL_PINNED, "", reference)


def add_members(sb: Sandbox, where: Channel, users: list[int]) -> None:
    """Add people to a thread: they wrote in it, were mentioned in it, or were added."""
    if where.thread is None:
        return
    fresh = [
        user
        for user in dict.fromkeys(users)
        if user not in where.thread.members and sb.world.member(where.guild_id, user)
    ]
    for user in fresh:
        where.thread.members[user] = sb.clock.iso()
        if user in sb.world.applications:
            announce.added_to_thread(sb, where, user)
    if fresh:
        announce.thread_members(sb, where, fresh, [])


def remove_member(sb: Sandbox, where: Channel, user_id: int) -> None:
    if where.thread is not None and where.thread.members.pop(user_id, None) is not None:
        announce.thread_members(sb, where, [], [user_id])


def unarchive(sb: Sandbox, where: Channel) -> None:
    set_state(sb, where, archived=False)


def set_state(
    sb: Sandbox,
    where: Channel,
    *,
    archived: bool | None = None,
    locked: bool | None = None,
    auto_archive_minutes: int | None = None,
) -> None:
    thread = where.thread
    if thread is None:
        raise apierrors.ApiError(400, 50024, "Cannot execute action on this channel type")
    if archived is not None and archived != thread.archived:
        thread.archived, thread.archive_stamp = archived, sb.clock.iso()
    if locked is not None:
        thread.locked = locked
    if auto_archive_minutes is not None:
        thread.auto_archive_minutes = auto_archive_minutes
    announce.channel(sb, "THREAD_UPDATE", where)


def archive_idle(sb: Sandbox) -> list[int]:
    """Archive the threads that were quiet for long enough, and return their ids."""
    done: list[int] = []
    for channel in list(sb.world.channels.values()):
        if channel.thread is None or channel.thread.archived:
            continue
        history = sb.world.history(channel.id)
        last = history[-1].timestamp if history else channel.thread.created_at
        if _older(last, sb.clock.now() - channel.thread.auto_archive_minutes * 60):
            set_state(sb, channel, archived=True)
            done.append(channel.id)
    return done


def _older(stamp: str, seconds: float) -> bool:
    return datetime.fromisoformat(stamp).timestamp() < seconds
