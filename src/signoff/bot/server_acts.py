"""Does acts in a server over Discord's REST API, each of them once. Checks no authority: the caller did.

The raw calls of discord.py are used, because its own methods need objects from the cache.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, cast

import aiohttp
import discord

from signoff.bot.refusals import Weight, refusals_of
from signoff.bot.sending import Failure
from signoff.servers.model import Act, Kind, Ping, Situation
from signoff.servers.permissions import NEEDS
from signoff.servers.ports import MayHaveRun, NotDone

BULK_DAYS = 13.9
"""Messages that are older can only be deleted one by one; Discord's limit is 14 days."""
ARCHIVE_MINUTES = 1440
_single: ContextVar[bool] = ContextVar("_single", default=False)
_WORDS = {
    10003: "the channel was deleted",
    10004: "the bot is not in this server any more",
    10007: "they are not a member of this server any more",
    10008: "the message was deleted",
    10011: "the role was deleted",
    10013: "there is no such user",
    10026: "they are not banned",
    20016: "the channel's slow mode does not let the bot write now",
    20028: "Discord limits how often this may be done; try again later",
    30003: "the channel has as many pinned messages as Discord allows",
    30013: "the server has as many channels as Discord allows",
    30033: "the channel has as many threads as Discord allows",
    50001: "the bot has no access there",
    50013: "Discord says that the bot lacks a permission, or that its role is too low",
    50083: "the thread is archived",
    160004: "the message has a thread already",
    160005: "the thread is locked",
    160006: "the server has as many open threads as Discord allows",
    200000: "this server's AutoMod refused the text",
    200001: "this server's AutoMod refused the text",
}
"""Discord's error code -> our words."""
_LAST_ONES = {(Kind.KICK, 10007), (Kind.UNBAN, 10026)}
"""Kind of act and error code of an act that may have been done already."""


class Unanswered(Exception):
    """Discord failed, and the request must not be sent again."""


class SingleAttempts:
    """Keeps discord.py from sending a request again after Discord failed: it may have been carried out.

    Build it before the client logs in.
    """

    def __init__(self, client: discord.Client) -> None:
        trace = client.http.http_trace
        if trace is None:
            trace = client.http.http_trace = aiohttp.TraceConfig()

        async def ended(session: Any, context: Any, params: aiohttp.TraceRequestEndParams) -> None:
            if _single.get() and params.response.status >= 500:
                raise Unanswered(f"status {params.response.status}")

        trace.on_request_end.append(ended)

    @contextmanager
    def only_one(self) -> Generator[None]:
        token = _single.set(True)
        try:
            yield
        finally:
            _single.reset(token)


async def do(
    client: discord.Client, attempts: SingleAttempts, server: int, act: Act, now: Situation, reason: str
) -> str:
    """Do the act, and return the id of what it made. Raises NotDone or MayHaveRun."""
    try:
        refusals_of(client).check(Weight.NORMAL)
        if NEEDS[act.kind].repeatable:
            return await _request(client, server, act, now, reason)
        with attempts.only_one():
            return await _request(client, server, act, now, reason)
    except discord.HTTPException as error:
        if error.status >= 500:
            raise MayHaveRun(f"Discord failed (status {error.status}).") from error
        if (act.kind, error.code) in _LAST_ONES:
            # They were there a moment ago: they left now, or a request that was sent twice had worked the first time.
            raise MayHaveRun(f"Discord says: {in_words(error)}.") from error
        raise NotDone(f"{in_words(error)}.") from error
    except discord.RateLimited as error:
        raise NotDone("Discord wants fewer requests. Try again later.") from error
    except discord.DiscordException as error:
        raise NotDone(f"{error}.") from error
    except (Unanswered, RuntimeError, *Failure) as error:
        raise MayHaveRun(f"Discord did not answer ({error or type(error).__name__}).") from error


def in_words(error: discord.HTTPException) -> str:
    """Return Discord's refusal as a part of a sentence."""
    if error.code in _WORDS:
        return _WORDS[error.code]
    said = f": {error.text}" if error.text else ""
    return f"Discord refused it (status {error.status}, code {error.code}{said})"


async def _request(client: discord.Client, server: int, act: Act, now: Situation, reason: str) -> str:
    http = client.http
    channel, member, role = (int(one or 0) for one in (act.channel, act.member, act.role))
    message = int(act.messages[0]) if act.messages else 0
    made: Any = None
    match act.kind:
        case Kind.POST:
            made = await _post(client, channel, act, now)
        case Kind.PIN:
            await http.pin_message(channel, message, reason=reason)
        case Kind.UNPIN:
            await http.unpin_message(channel, message, reason=reason)
        case Kind.THREAD if message:
            made = await http.start_thread_with_message(
                channel, message, name=act.text, auto_archive_duration=ARCHIVE_MINUTES, reason=reason
            )
        case Kind.THREAD:
            made = await http.start_thread_without_message(
                channel, name=act.text, auto_archive_duration=ARCHIVE_MINUTES, type=11, reason=reason
            )
        case Kind.CHANNEL:
            options = {"topic": act.topic or None, "parent_id": channel or None}
            given = {name: value for name, value in options.items() if value is not None}
            made = await http.create_channel(server, 0, name=act.text, reason=reason, **given)
        case Kind.SLOW_MODE:
            await http.edit_channel(channel, rate_limit_per_user=act.number, reason=reason)
        case Kind.TIME_OUT:
            until = discord.utils.utcnow() + timedelta(minutes=act.number) if act.number else None
            stamp = until.isoformat() if until else None
            await http.edit_member(server, member, reason=reason, communication_disabled_until=stamp)
        case Kind.KICK:
            await http.kick(member, server, reason=reason)
        case Kind.BAN:
            await http.ban(member, server, delete_message_seconds=act.number * 86_400, reason=reason)
        case Kind.UNBAN:
            await http.unban(member, server, reason=reason)
        case Kind.DELETE:
            await _delete(http, channel, [int(one.id) for one in now.messages], reason)
        case Kind.ASSIGN:
            await http.add_role(server, member, role, reason=reason)
        case Kind.REMOVE:
            await http.remove_role(server, member, role, reason=reason)
    return str(cast("dict[str, Any]", made).get("id", "")) if isinstance(made, dict) else str(made or "")


async def _post(client: discord.Client, channel: int, act: Act, now: Situation) -> str:
    """Post without link previews. The nonce keeps a request that discord.py repeats from posting twice."""
    people = [discord.Object(int(number)) for number in now.names] if act.ping is not Ping.NOBODY else []
    pings = discord.AllowedMentions(everyone=act.ping is Ping.EVERYONE, users=people, roles=False, replied_user=False)
    target = client.get_partial_messageable(channel)
    sent = await target.send(act.text, allowed_mentions=pings, suppress_embeds=True, nonce=secrets.token_hex(12))
    return str(sent.id)


async def _delete(http: Any, channel: int, messages: Sequence[int], reason: str) -> None:
    """Delete new messages in one request and old ones one by one. If that stops in between, say how far it came."""
    oldest = discord.utils.time_snowflake(discord.utils.utcnow() - timedelta(days=BULK_DAYS))
    young = [one for one in messages if one > oldest]
    steps: list[list[int]] = [young] if len(young) > 1 else [[one] for one in young]
    steps += [[one] for one in messages if one <= oldest]
    deleted = 0
    for step in steps:
        try:
            await (
                http.delete_messages(channel, step, reason=reason)
                if len(step) > 1
                else _unless_deleted(http.delete_message(channel, step[0], reason=reason))
            )
        except (discord.HTTPException, *Failure) as error:
            if not deleted:
                raise
            why = in_words(error) if isinstance(error, discord.HTTPException) else "Discord did not answer"
            raise MayHaveRun(f"{deleted} of {len(messages)} messages were deleted, then {why}.") from error
        deleted += len(step)
        await asyncio.sleep(0)


async def _unless_deleted(request: Awaitable[None]) -> None:
    try:
        await request
    except discord.NotFound:
        pass  # somebody else deleted it a moment ago
