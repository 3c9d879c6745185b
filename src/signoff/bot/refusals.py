"""Counts the requests that Discord refuses, and stops sending long before Discord bans the address.

Discord bans an address after 10,000 responses of 401, 403 or 429 in ten minutes. The client's HTTP session reports
every response here, so typing, clicks and commands count too. This module sends nothing itself.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import aiohttp
import discord

log = logging.getLogger(__name__)

WINDOW = 600.0
COUNTED = frozenset({401, 403, 429})
FEWER = 500
"""With more refusals than this in ten minutes, optional messages are no longer sent."""
FEWEST = 1000
"""With more refusals than this, only cards and replies are sent, and no mention is taken."""
CHANNEL_SECONDS = 60.0
"""How long a channel counts as closed after Discord refused a message there for want of a permission."""
CHANNELS_KEPT = 1000


class Weight(IntEnum):
    """How much depends on a request."""

    OPTIONAL = 0
    """Typing, reminders, notices, lines in a log channel."""
    NORMAL = 1
    """Changes to cards that people have already."""
    ESSENTIAL = 2
    """Cards and replies."""


class Braked(discord.DiscordException):
    """The request was not sent, because Discord refused too many requests in the last ten minutes."""


class Refusals:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._times: deque[float] = deque()
        self._closed: OrderedDict[str, float] = OrderedDict()
        """Channel id -> the time until which it counts as closed."""
        self._least = Weight.OPTIONAL

    @property
    def count(self) -> int:
        """The refusals of the last ten minutes."""
        oldest = self._now() - WINDOW
        while self._times and self._times[0] <= oldest:
            self._times.popleft()
        return len(self._times)

    @property
    def least(self) -> Weight:
        """The least weight that is still sent. A change is logged."""
        count = self.count
        least = Weight.ESSENTIAL if count > FEWEST else Weight.NORMAL if count > FEWER else Weight.OPTIONAL
        if least is not self._least:
            told = {
                Weight.OPTIONAL: "everything is sent again",
                Weight.NORMAL: "typing, reminders and notices are no longer sent",
                Weight.ESSENTIAL: "only cards and replies are sent, and no mention is taken",
            }[least]
            level = logging.ERROR if least > self._least else logging.WARNING
            log.log(level, "Discord refused %d requests in the last ten minutes: %s", count, told)
            self._least = least
        return least

    def note(self, status: int, scope: str = "") -> None:
        """Count a response. A rate limit that all bots share does not count towards the ban."""
        if status in COUNTED and scope != "shared":
            self._times.append(self._now())
            _ = self.least

    def check(self, weight: Weight) -> None:
        """Raise Braked if a request of this weight must not be sent now."""
        if weight < self.least:
            raise Braked("Discord refused too many of my requests, so I send less for a few minutes")

    def close(self, channel: str) -> None:
        """Note that Discord refused a message in this channel for want of a permission."""
        self._closed[channel] = self._now() + CHANNEL_SECONDS
        self._closed.move_to_end(channel)
        while len(self._closed) > CHANNELS_KEPT:
            self._closed.popitem(last=False)

    def reopen(self, channel: str) -> None:
        self._closed.pop(channel, None)

    def is_closed(self, channel: str) -> bool:
        return self._now() < self._closed.get(channel, float("-inf"))

    def trace(self) -> aiohttp.TraceConfig:
        """Return the hook through which an HTTP session reports its responses."""
        config = aiohttp.TraceConfig()

        async def ended(session: Any, context: Any, params: aiohttp.TraceRequestEndParams) -> None:
            self.note(params.response.status, params.response.headers.get("X-RateLimit-Scope", ""))

        config.on_request_end.append(ended)
        return config


class CountingClient(discord.Client):
    """A client that counts its refusals."""

    def __init__(self, **options: Any) -> None:
        self.refusals = Refusals()
        super().__init__(http_trace=self.refusals.trace(), **options)


def refusals_of(client: discord.Client) -> Refusals:
    """Return the client's count. An ordinary client has none, and nothing is held back."""
    return client.refusals if isinstance(client, CountingClient) else Refusals()
