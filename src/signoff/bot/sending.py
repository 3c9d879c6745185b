"""Sending to a channel: nonces, threads, plain text, errors worded for people, and sending while the client closes.

This module knows neither cards nor turns. Everything works with ids and partial channels, because recovery runs before
the gateway reports any channel.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiohttp
import discord

from signoff.bot import quoting
from signoff.bot.refusals import Braked, Weight, refusals_of
from signoff.errors import NotDelivered, Undeliverable
from signoff.text.visible import visible

log = logging.getLogger(__name__)

T = TypeVar("T")

NOBODY = discord.AllowedMentions.none()
"""The default for everything that the bot sends or edits: no message pings anybody."""

UNKNOWN_CHANNEL = 10003
UNKNOWN_MESSAGE = 10008
ARCHIVED = 50083
THREAD_EXISTS = 160004
_NO_REPLY = {50035, 160002}
"""Codes for a message that cannot be replied to: post again without the reference."""
_MODERATED = {200000, 200001}
CLOSED = {50001, 50013}
"""Codes for a channel that the bot may not see, or may not write in."""
_PERMISSIONS = {50001, 50013, 160002, 160007}

DELAYS = (0.5, 2.0, 5.0)
"""Seconds between the attempts of `patiently`."""

Failure = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError)
"""The errors that sending can raise after discord.py's own retries."""


def nonce(*key: object) -> str:
    """Return 24 characters that are the same for the same key. Discord does not post a message with a used nonce."""
    return hashlib.sha256("\x1f".join(map(str, key)).encode()).hexdigest()[:24]


def inert(text: str) -> str:
    """Escape text that may quote people: no markup or link takes effect, and hidden characters become visible."""
    return quoting.escape(visible(text).text)


def reason(error: BaseException) -> str:
    """Word a Discord error for people."""
    code = getattr(error, "code", 0)
    if code == UNKNOWN_CHANNEL:
        return "the channel or thread no longer exists"
    if code == UNKNOWN_MESSAGE:
        return "the message was deleted"
    if code == ARCHIVED:
        return "the thread is archived and locked"
    if code in (40005, 40333) or getattr(error, "status", 0) == 413:
        return "the attached file is too large for this channel"
    if code in _MODERATED:
        return "this server's AutoMod refused the text"
    if code in _PERMISSIONS or isinstance(error, discord.Forbidden):
        return "I lack a permission there: View Channel, Send Messages, Send Messages in Threads or Attach Files"
    if isinstance(error, Braked):
        return str(error)
    if isinstance(error, discord.HTTPException):
        return f"Discord refused the message (status {error.status}, code {error.code})"
    return "Discord could not be reached"


def lasting(error: BaseException) -> bool:
    """Whether the same send would be refused again later."""
    code = getattr(error, "code", 0)
    return isinstance(error, (discord.Forbidden, discord.NotFound)) or code == ARCHIVED or code in _MODERATED


def passing(error: BaseException) -> bool:
    """Whether the same send may succeed in a moment, or may have succeeded already."""
    return not isinstance(error, discord.DiscordException) or getattr(error, "status", 0) >= 500


def busy(error: BaseException) -> bool:
    """Whether Discord asked for fewer requests, which discord.py obeyed for some time already."""
    return isinstance(error, discord.RateLimited) or getattr(error, "status", 0) == 429


def not_delivered(error: BaseException) -> NotDelivered:
    """Return the error for the driver: whether sending again makes sense, and why it failed."""
    return Undeliverable(reason(error)) if lasting(error) else NotDelivered(reason(error))


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Repeat `work` for some seconds while Discord fails. Only for work that may be repeated."""
    for delay in DELAYS:
        try:
            return await work()
        except Failure as error:
            if not passing(error):
                raise
            log.info("Discord failed, trying again in %g seconds: %s", delay, error)
        await asyncio.sleep(delay)
    return await work()


async def while_open(client: discord.Client, sending: Awaitable[T]) -> T:
    """Send. If the client is closed meanwhile, end the sending task as if it were cancelled.

    A send that fails because the bot stops must not be retried, reported or taken for a refusal: the next start finds
    everything in the store. discord.py has no error class for this: it reports a broken connection, then a
    RuntimeError.
    """
    try:
        return await sending
    except (RuntimeError, aiohttp.ClientError, OSError) as error:
        if not client.is_closed():
            raise
        log.info("not sent, because the bot is stopping; the next start continues from the store")
        raise asyncio.CancelledError from error


async def open_thread(client: discord.Client, channel: str, message: str, name: str) -> None:
    """Open the thread of a message, unless it exists already. Its id is the message's id."""
    try:
        # The raw call: discord.py's own method needs a cached server, which recovery does not have yet.
        call = client.http.start_thread_with_message(int(channel), int(message), name=name, auto_archive_duration=1440)
        await while_open(client, call)
    except discord.HTTPException as error:
        if error.code != THREAD_EXISTS:
            raise


async def unarchive(client: discord.Client, thread: str) -> None:
    await while_open(client, client.http.edit_channel(int(thread), archived=False))


async def send(
    client: discord.Client,
    channel: str,
    text: str | None = None,
    *,
    key: str,
    view: discord.ui.LayoutView | None = None,
    files: Callable[[], list[discord.File]] | None = None,
    answers: str | None = None,
    pings: discord.AllowedMentions = NOBODY,
    weight: Weight = Weight.OPTIONAL,
    buttons: discord.ui.View | None = None,
) -> discord.Message:
    """Post to a channel without link previews. It pings only `pings`. `answers`: the message that this replies to.

    `view` is a message of components alone; `buttons` are below a text.
    """
    target = client.get_partial_messageable(int(channel))
    refusals = refusals_of(client)
    refusals.check(weight)

    async def post(**more: Any) -> discord.Message:
        # Each attempt consumes its files. Embeds are suppressed for texts only, because a card has no links.
        attached = {"files": files()} if files else {}
        try:
            message = await while_open(client, target.send(nonce=key, allowed_mentions=pings, **attached, **more))
        except discord.Forbidden as error:
            if error.code in CLOSED:
                refusals.close(channel)
            raise
        refusals.reopen(channel)
        return message

    if view is not None:
        return await post(view=view)
    plain = {"content": text, "suppress_embeds": True, "mention_author": False} | ({"view": buttons} if buttons else {})
    if answers is None:
        return await post(**plain)
    reference = discord.MessageReference(message_id=int(answers), channel_id=int(channel), fail_if_not_exists=False)
    try:
        return await post(**plain, reference=reference)
    except discord.HTTPException as error:
        if error.code not in _NO_REPLY:
            raise
    return await post(**plain)
