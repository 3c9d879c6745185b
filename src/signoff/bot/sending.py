"""Getting words to a channel: nonces, threads, plain text, what an error means to people, and what is sent too late.
No cards, no turns' states.

Everything works on ids and partial channels, because recovery runs before the gateway has told us of any channel.
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
from signoff.errors import SignoffError
from signoff.text.visible import visible

log = logging.getLogger(__name__)

T = TypeVar("T")

NOBODY = discord.AllowedMentions.none()
"""No mention in anything we send or edit ever pings."""

UNKNOWN_CHANNEL = 10003
UNKNOWN_MESSAGE = 10008
ARCHIVED = 50083
THREAD_EXISTS = 160004
_NO_REPLY = {50035, 160002}
"""The message to reply to cannot be named: post without naming it."""
_MODERATED = {200000, 200001}
_PERMISSIONS = {50001, 50013, 160002, 160007}

Failure = (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError)
"""What sending can raise once the library has given up repeating it."""


class NotDelivered(SignoffError):
    """Nothing reached the people it was for; it may be tried again later. Its text says why."""


def nonce(*key: object) -> str:
    """The same 24 characters for the same key: Discord takes a repeated send for the message it has already."""
    return hashlib.sha256("\x1f".join(map(str, key)).encode()).hexdigest()[:24]


def inert(text: str) -> str:
    """Plain words that may quote people, shown as they stand: a name's markup, links and hidden characters included."""
    return quoting.escape(visible(text).text)


def reason(error: BaseException) -> str:
    """An error of Discord's in words for people."""
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
    if isinstance(error, discord.HTTPException):
        return f"Discord refused the message (status {error.status}, code {error.code})"
    return "Discord could not be reached"


def lasting(error: BaseException) -> bool:
    """Whether trying again later would meet the same refusal."""
    code = getattr(error, "code", 0)
    return isinstance(error, (discord.Forbidden, discord.NotFound)) or code == ARCHIVED or code in _MODERATED


def passing(error: BaseException) -> bool:
    """Whether the same call may succeed in a moment, or has succeeded without our knowing."""
    return not isinstance(error, discord.DiscordException) or getattr(error, "status", 0) >= 500


async def while_open(client: discord.Client, sending: Awaitable[T]) -> T:
    """Send; what a closing client cuts off or no longer takes ends the task that sends it, as if it were cancelled.

    For that is what leaving means: nothing is tried again, said or taken for a refusal, and the next start finds it all
    in the store. The library has no error for it, only a connection that breaks and then aiohttp's RuntimeError.
    """
    try:
        return await sending
    except (RuntimeError, aiohttp.ClientError, OSError) as error:
        if not client.is_closed():
            raise
        log.info("not sent, because I am leaving: the next start takes up what is stored")
        raise asyncio.CancelledError from error


async def open_thread(client: discord.Client, channel: str, message: str, name: str) -> None:
    """Open the thread of a message; its id is the message's. One that is there already is as good."""
    try:
        # The raw call: the library's own wants a cached server, which recovery does not have yet.
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
) -> discord.Message:
    """Post to a channel, with no link previews, and no pings but `pings`. `answers`: to be shown as a reply to it."""
    target = client.get_partial_messageable(int(channel))

    async def post(**more: Any) -> discord.Message:
        # Files are used up by each attempt. Embeds are suppressed for texts only: a card has no links to unfold.
        attached = {"files": files()} if files else {}
        return await while_open(client, target.send(nonce=key, allowed_mentions=pings, **attached, **more))

    if view is not None:
        return await post(view=view)
    plain = {"content": text, "suppress_embeds": True, "mention_author": False}
    if answers is None:
        return await post(**plain)
    reference = discord.MessageReference(message_id=int(answers), channel_id=int(channel), fail_if_not_exists=False)
    try:
        return await post(**plain, reference=reference)
    except discord.HTTPException as error:
        if error.code not in _NO_REPLY:
            raise
    return await post(**plain)
