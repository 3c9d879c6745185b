"""Channels and threads that somebody deleted while we were watching: they must not be opened again by a reply."""

from __future__ import annotations

from collections import OrderedDict

KEPT = 10_000


class GoneChannels:
    """Forgets the oldest first. What was deleted while we were down is not in here."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._gone: OrderedDict[str, None] = OrderedDict()

    def note(self, channel: str) -> None:
        self._gone[channel] = None
        while len(self._gone) > self._kept:
            self._gone.popitem(last=False)

    def __contains__(self, channel: str) -> bool:
        return channel in self._gone
