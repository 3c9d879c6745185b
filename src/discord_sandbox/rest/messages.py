"""Messages, reactions, pins and typing under `/channels/{id}`.

HTTP in, JSON out; `posting` has the behaviour.
"""

from typing import Any

from discord_sandbox import access, announce, apierrors, message_contents, moderation, people, posting, threads
from discord_sandbox.model import Channel, Json, Message, MessageType
from discord_sandbox.permissions import Permission, can
from discord_sandbox.posting import Sender
from discord_sandbox.reading import numbers
from discord_sandbox.rest.api import Call, Route

MOST_PINS = 250


def written(call: Call, where: Channel, message: Message) -> Json:
    """Return a message as this bot may read it over REST. Its application's flag decides whether it gets the text."""
    clear = access.readable(call.bot_id, where, message, content_intent=call.app.message_content)
    return call.sandbox.payloads.message(message, call.bot_id, readable=clear)


def _channel(call: Call, *needed: int) -> Channel:
    return access.channel(call.sandbox.world, call.bot_id, call.id("channel_id"), *needed)


def _message(call: Call, where: Channel) -> Message:
    return access.message(call.sandbox.world, where, call.id("message_id"))


async def create(call: Call) -> Any:
    sb, where = call.sandbox, _channel(call)
    contents = message_contents.for_create(call.json, call.body.uploads, sb.world.ids)
    posting.check_may_post(sb, where, call.bot_id, contents)
    return written(call, where, posting.create(sb, where, Sender(call.bot_id), contents))


async def edit(call: Call) -> Any:
    sb, where = call.sandbox, _channel(call)
    message = _message(call, where)
    contents = message_contents.for_edit(call.json, call.body.uploads, sb.world.ids, message)
    posting.check_may_edit(sb, where, message, call.bot_id, contents)
    return written(call, where, posting.edit(sb, where, message, contents))


async def delete(call: Call) -> Any:
    where = _channel(call)
    message = _message(call, where)
    if message.author_id != call.bot_id:
        access.require(call.sandbox.world, where, call.bot_id, Permission.MANAGE_MESSAGES)
    posting.delete(call.sandbox, message)


async def bulk_delete(call: Call) -> Any:
    where = _channel(call, Permission.MANAGE_MESSAGES)
    ids = numbers(call.json.get("messages"))
    if not 2 <= len(ids) <= 100:
        raise apierrors.bad_field(("messages",), "BASE_TYPE_BAD_LENGTH", "Must be between 2 and 100 in length.")
    if any(moderation.is_too_old(call.sandbox, number) for number in ids):
        raise apierrors.too_old_for_bulk()
    present = [call.sandbox.world.message(where.id, number) for number in dict.fromkeys(ids)]
    moderation.delete_together(call.sandbox, where, [message for message in present if message is not None])


async def get(call: Call) -> Any:
    where = _channel(call, Permission.READ_MESSAGE_HISTORY)
    return written(call, where, _message(call, where))


async def history(call: Call) -> Any:
    where = _channel(call)
    if not can(call.sandbox.world, where, call.bot_id, Permission.READ_MESSAGE_HISTORY):
        return []
    limit = int(call.query("limit") or 50)
    if not 1 <= limit <= 100:
        raise apierrors.bad_field(("limit",), "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
    messages = [m for m in call.sandbox.world.history(where.id) if m.ephemeral_to is None]
    before, after, around = call.query_id("before"), call.query_id("after"), call.query_id("around")
    if around is not None:
        earlier = [m for m in messages if m.id < around]
        earlier = earlier[len(earlier) - min(limit // 2, len(earlier)) :]
        messages = earlier + [m for m in messages if m.id >= around][: limit - len(earlier)]
    elif after is not None:
        messages = [m for m in messages if m.id > after][:limit]
    else:
        messages = [m for m in messages if before is None or m.id < before][-limit:]
    return [written(call, where, message) for message in reversed(messages)]


async def typing(call: Call) -> Any:
    announce.typing(call.sandbox, _channel(call), call.bot_id)


def _emoji(call: Call) -> tuple[str, int | None]:
    name, _, number = call.request.match_info["emoji"].partition(":")
    if number and not number.isdecimal():
        raise apierrors.unknown_emoji()
    return name, int(number) if number else None


async def add_reaction(call: Call) -> Any:
    where = _channel(call, Permission.READ_MESSAGE_HISTORY)
    people.react(call.sandbox, call.bot_id, where, _message(call, where), *_emoji(call))


async def remove_reaction(call: Call) -> Any:
    where = _channel(call)
    who = call.request.match_info["user_id"]
    user = call.bot_id if who == "@me" else call.id("user_id")
    if user != call.bot_id:
        access.require(call.sandbox.world, where, call.bot_id, Permission.MANAGE_MESSAGES)
    people.unreact(call.sandbox, user, where, _message(call, where), *_emoji(call))


async def clear_reactions(call: Call) -> Any:
    where = _channel(call, Permission.MANAGE_MESSAGES)
    message = _message(call, where)
    for reaction in list(message.reactions):
        for user in list(reaction.users):
            people.unreact(call.sandbox, user, where, message, reaction.emoji, reaction.emoji_id)


async def list_reactions(call: Call) -> Any:
    where = _channel(call)
    name, number = _emoji(call)
    for reaction in _message(call, where).reactions:
        if (reaction.emoji, reaction.emoji_id) == (name, number):
            after, limit = call.query_id("after") or 0, int(call.query("limit") or 25)
            users = sorted(user for user in reaction.users if user > after)[:limit]
            return [call.sandbox.payloads.user_by_id(user) for user in users]
    return []


async def pin(call: Call) -> Any:
    where = _channel(call)
    _require_pin(call, where)
    message = _message(call, where)
    pinning = call.request.method == "PUT"
    if message.pinned == pinning:
        return
    if pinning and sum(m.pinned for m in call.sandbox.world.history(where.id)) >= MOST_PINS:
        raise apierrors.too_many_pins(MOST_PINS)
    message.pinned = pinning
    announce.message(call.sandbox, "MESSAGE_UPDATE", message)
    body = {"channel_id": str(where.id), "last_pin_timestamp": call.sandbox.clock.iso()}
    announce.in_channel(call.sandbox, "CHANNEL_PINS_UPDATE", where, body, announce.GUILDS, announce.DM_MESSAGES)
    if pinning:
        threads.note_pin(call.sandbox, where, call.bot_id, message)


def _require_pin(call: Call, where: Channel) -> None:
    world = call.sandbox.world
    if not can(world, where, call.bot_id, Permission.PIN_MESSAGES) and where.guild_id is not None:
        access.require(world, where, call.bot_id, Permission.MANAGE_MESSAGES)


async def pins(call: Call) -> Any:
    where = _channel(call)
    pinned = [m for m in call.sandbox.world.history(where.id) if m.pinned and m.type != MessageType.CHANNEL_PINNED]
    entries = [{"pinned_at": m.edited_timestamp or m.timestamp, "message": written(call, where, m)} for m in pinned]
    return {"items": entries[::-1], "has_more": False}


_ONE = "/channels/{channel_id}/messages/{message_id}"
_REACTION = _ONE + "/reactions/{emoji}"
ROUTES = [
    Route("GET", "/channels/{channel_id}/messages/pins", pins),
    Route("PUT", "/channels/{channel_id}/messages/pins/{message_id}", pin),
    Route("DELETE", "/channels/{channel_id}/messages/pins/{message_id}", pin),
    Route("POST", "/channels/{channel_id}/messages/bulk-delete", bulk_delete),
    Route("POST", "/channels/{channel_id}/messages", create),
    Route("GET", "/channels/{channel_id}/messages", history),
    Route("POST", "/channels/{channel_id}/typing", typing),
    Route("PUT", _REACTION + "/{user_id}", add_reaction),
    Route("DELETE", _REACTION + "/{user_id}", remove_reaction),
    Route("GET", _REACTION, list_reactions),
    Route("DELETE", _ONE + "/reactions", clear_reactions),
    Route("GET", _ONE, get),
    Route("PATCH", _ONE, edit),
    Route("DELETE", _ONE, delete),
]
