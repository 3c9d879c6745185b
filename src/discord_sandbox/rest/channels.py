"""Channels, their overwrites, and threads.

HTTP in, JSON out; `threads` has the behaviour of threads.
"""

from typing import Any

from discord_sandbox import access, announce, apierrors, server_changes, threads
from discord_sandbox.apierrors import FormErrors
from discord_sandbox.model import Channel
from discord_sandbox.permissions import Permission, can
from discord_sandbox.rest.api import Call, Reply, Route

LONGEST_SLOWMODE = 21_600


def _channel(call: Call, *needed: int) -> Channel:
    return access.channel(call.sandbox.world, call.bot_id, call.id("channel_id"), *needed)


def _thread(call: Call, *needed: int) -> Channel:
    channel = _channel(call, *needed)
    if channel.thread is None:
        raise apierrors.ApiError(400, 50024, "Cannot execute action on this channel type")
    return channel


async def get(call: Call) -> Any:
    return call.sandbox.payloads.channel(_channel(call), call.bot_id)


async def edit(call: Call) -> Any:
    where, body = _channel(call), call.json
    errors = FormErrors()
    if "name" in body:
        errors.length(("name",), body["name"], 1, 100)
    if body.get("topic") is not None:
        errors.length(("topic",), body["topic"], 0, 1024)
    if not 0 <= int(body.get("rate_limit_per_user") or 0) <= LONGEST_SLOWMODE:
        message = f"int value should be between 0 and {LONGEST_SLOWMODE}."
        errors.add(("rate_limit_per_user",), "NUMBER_TYPE_MAX", message)
    errors.check()
    sb = call.sandbox
    if where.thread is None:
        access.require(sb.world, where, call.bot_id, Permission.MANAGE_CHANNELS)
    elif where.thread.owner_id != call.bot_id or "locked" in body:
        reopening = set(body) <= {"archived"} and body.get("archived") is False and not where.thread.locked
        if not reopening:
            access.require(sb.world, where, call.bot_id, Permission.MANAGE_THREADS)
    if where.thread is not None and where.thread.archived and body.get("archived") is not False:
        raise apierrors.archived_thread()
    where.name = body.get("name", where.name)
    where.topic = body.get("topic", where.topic)
    if body.get("rate_limit_per_user") is not None:
        where.slowmode = int(body["rate_limit_per_user"])
    if where.thread is not None:
        threads.set_state(
            sb,
            where,
            archived=body.get("archived"),
            locked=body.get("locked"),
            auto_archive_minutes=body.get("auto_archive_duration"),
        )
    else:
        announce.channel(sb, "CHANNEL_UPDATE", where)
    return sb.payloads.channel(where, call.bot_id)


async def delete(call: Call) -> Any:
    where, sb = _channel(call), call.sandbox
    if where.guild_id is not None:
        needed = Permission.MANAGE_CHANNELS if where.thread is None else Permission.MANAGE_THREADS
        access.require(sb.world, where, call.bot_id, needed)
        server_changes.remove_channel(sb, where)
    return sb.payloads.channel(where, call.bot_id)


async def set_overwrite(call: Call) -> Any:
    where, target = _channel(call, Permission.MANAGE_ROLES), call.id("target")
    body = call.json if call.request.method == "PUT" else {}
    allow, deny = int(body.get("allow") or 0), int(body.get("deny") or 0)
    server_changes.overwrite(call.sandbox, where, target, int(body.get("type") or 0), allow, deny)


async def open_from_message(call: Call) -> Any:
    where = _channel(call, Permission.READ_MESSAGE_HISTORY)
    message = access.message(call.sandbox.world, where, call.id("message_id"))
    thread = threads.open_thread(call.sandbox, where, call.bot_id, call.json, message)
    return Reply(201, call.sandbox.payloads.channel(thread, call.bot_id))


async def open_alone(call: Call) -> Any:
    thread = threads.open_thread(call.sandbox, _channel(call), call.bot_id, call.json, None)
    return Reply(201, call.sandbox.payloads.channel(thread, call.bot_id))


def _who(call: Call) -> int:
    return call.bot_id if call.request.match_info["user_id"] == "@me" else call.id("user_id")


async def join(call: Call) -> Any:
    where, user = _thread(call), _who(call)
    if where.thread is not None and where.thread.archived:
        raise apierrors.archived_thread()
    if call.sandbox.world.member(where.guild_id, user) is None:
        raise apierrors.unknown_member()
    threads.add_members(call.sandbox, where, [user])


async def leave(call: Call) -> Any:
    where, user = _thread(call), _who(call)
    if user != call.bot_id:
        access.require(call.sandbox.world, where, call.bot_id, Permission.MANAGE_THREADS)
    threads.remove_member(call.sandbox, where, user)


async def thread_member(call: Call) -> Any:
    where, user = _thread(call), _who(call)
    if where.thread is None or user not in where.thread.members:
        raise apierrors.unknown_member()
    return call.sandbox.payloads.thread_member(where, user)


async def thread_members(call: Call) -> Any:
    where = _thread(call)
    assert where.thread is not None
    return [call.sandbox.payloads.thread_member(where, user) for user in where.thread.members]


async def archived(call: Call) -> Any:
    where = _channel(call, Permission.READ_MESSAGE_HISTORY)
    assert where.guild_id is not None
    kinds = (12,) if "private" in call.request.path else (10, 11)
    shown_threads = [
        t
        for t in call.sandbox.world.threads_of(where.guild_id, archived=True)
        if t.parent_id == where.id and t.type in kinds and can(call.sandbox.world, t, call.bot_id, 1 << 10)
    ]
    return thread_list(call, shown_threads)


def thread_list(call: Call, shown_threads: list[Channel]) -> dict[str, Any]:
    payloads = call.sandbox.payloads
    joined = [t for t in shown_threads if t.thread is not None and call.bot_id in t.thread.members]
    return {
        "threads": [payloads.channel(thread, call.bot_id) for thread in shown_threads],
        "members": [payloads.thread_member(thread, call.bot_id) for thread in joined],
        "has_more": False,
    }


async def active(call: Call) -> Any:
    guild = access.guild(call.sandbox.world, call.bot_id, call.id("guild_id"))
    world = call.sandbox.world
    return thread_list(
        call, [t for t in world.threads_of(guild.id, archived=False) if can(world, t, call.bot_id, 1 << 10)]
    )


_ONE = "/channels/{channel_id}"
ROUTES = [
    Route("POST", _ONE + "/messages/{message_id}/threads", open_from_message),
    Route("POST", _ONE + "/threads", open_alone),
    Route("GET", _ONE + "/threads/archived/public", archived),
    Route("GET", _ONE + "/threads/archived/private", archived),
    Route("GET", _ONE + "/users/@me/threads/archived/private", archived),
    Route("GET", "/guilds/{guild_id}/threads/active", active),
    Route("GET", _ONE + "/thread-members", thread_members),
    Route("GET", _ONE + "/thread-members/{user_id}", thread_member),
    Route("PUT", _ONE + "/thread-members/{user_id}", join),
    Route("DELETE", _ONE + "/thread-members/{user_id}", leave),
    Route("PUT", _ONE + "/permissions/{target}", set_overwrite),
    Route("DELETE", _ONE + "/permissions/{target}", set_overwrite),
    Route("GET", _ONE, get),
    Route("PATCH", _ONE, edit),
    Route("DELETE", _ONE, delete),
]
