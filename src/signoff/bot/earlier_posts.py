"""Finds cards and replies that were posted but not noted, because the process ended in between.

A nonce keeps Discord from posting a message twice, but Discord forgets it after some minutes. So before a late post,
this module looks at the messages that followed the moment when the post was due. A post in time needs no such look.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import discord

from signoff.approvals.model import Batch
from signoff.bot import sending
from signoff.bot.buttons import parse

log = logging.getLogger(__name__)

NONCE_SECONDS = 60.0
"""Discord remembers a nonce for at least this long."""
TOLERANCE = 5.0
"""Seconds by which our clock may be ahead of Discord's."""
LOOKED_AT = 100


def is_late(due: float, started: float, now: float) -> bool:
    """Whether the nonce of a post may be forgotten: it was due before this process started, or some time ago."""
    return due < started or now - due > NONCE_SECONDS


async def cards(client: discord.Client, batch: Batch, channel: str = "") -> list[str]:
    """Return the ids of messages in the batch's channel, or in `channel`, that show it with buttons, oldest first."""
    ids = {batch.id, *(request.id for request in batch.requests)}
    return [
        str(message["id"])
        for message in await _own(client, channel or batch.place.channel, batch.opened)
        if any((locator := parse(one)) and locator.target in ids for one in _custom_ids(message.get("components")))
    ]


async def texts(
    client: discord.Client, channel: str, since: float, answers: str | None = None, others: Collection[str] = ()
) -> Counter[str]:
    """Return how often the bot posted each text in a channel since then.

    With `answers`, replies to other messages do not count: they belong to other turns. So do the messages `others`.
    """
    own = [message for message in await _own(client, channel, since) if str(message["id"]) not in others]
    if answers is not None:
        own = [message for message in own if _answered(message) in (None, answers)]
    return Counter(str(message.get("content", "")).strip() for message in own)


def _answered(message: dict[str, Any]) -> str | None:
    """Return the id of the message that this one replies to."""
    reference = cast("dict[str, Any]", message.get("message_reference") or {})
    return str(reference["message_id"]) if reference.get("message_id") else None


async def _own(client: discord.Client, channel: str, since: float) -> list[dict[str, Any]]:
    """Return the bot's own messages since a time, oldest first. Empty if the bot may not look, or nothing is there."""
    me = client.user
    if me is None:
        return []
    after = discord.utils.time_snowflake(
        datetime.fromtimestamp(max(since - TOLERANCE, discord.utils.DISCORD_EPOCH / 1000), UTC)
    )
    try:
        page = await sending.while_open(client, client.http.logs_from(int(channel), LOOKED_AT, after=after))
    except (discord.Forbidden, discord.NotFound) as error:
        log.info("cannot look for earlier messages in %s: %s", channel, error)
        return []
    messages = cast("list[dict[str, Any]]", page)
    return [message for message in reversed(messages) if str(message["author"]["id"]) == str(me.id)]


def _custom_ids(components: object) -> Iterator[str]:
    """Yield the ids of all buttons, at any depth."""
    for component in cast("Sequence[dict[str, Any]]", components or ()):
        if isinstance(custom_id := component.get("custom_id"), str):
            yield custom_id
        yield from _custom_ids(component.get("components"))
