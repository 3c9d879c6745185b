"""The log of all events: changes of the world, REST calls and gateway frames, each with a number.

Tests and the page follow the log instead of sleeping. The log does not interpret its entries.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from discord_sandbox.clock import Clock
from discord_sandbox.model import Json

KEPT = 50_000


@dataclass(frozen=True)
class Entry:
    seq: int
    at: float
    kind: str  # "world", "rest" or "gateway"
    name: str
    data: Json

    def as_json(self) -> Json:
        return {"seq": self.seq, "at": self.at, "kind": self.kind, "name": self.name, "data": self.data}


class EventLog:
    def __init__(self, clock: Clock, kept: int = KEPT) -> None:
        self._clock = clock
        self._entries: deque[Entry] = deque(maxlen=kept)
        self._news = asyncio.Event()
        self.head = 0

    def add(self, kind: str, name: str, data: Json) -> Entry:
        self.head += 1
        entry = Entry(self.head, self._clock.now(), kind, name, data)
        self._entries.append(entry)
        self._news.set()
        self._news = asyncio.Event()
        return entry

    def world(self, name: str, /, **data: object) -> Entry:
        return self.add("world", name, dict(data))

    def after(self, seq: int, wanted: Callable[[Entry], bool] | None = None) -> list[Entry]:
        entries: list[Entry] = []
        # Search from the newest entry, because callers are nearly always close behind the head.
        for entry in reversed(self._entries):
            if entry.seq <= seq:
                break
            if wanted is None or wanted(entry):
                entries.append(entry)
        entries.reverse()
        return entries

    async def wait(self, seq: int, wanted: Callable[[Entry], bool] | None, timeout: float) -> list[Entry]:
        """Return the entries after `seq` as soon as there is one, or an empty list when the time is up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while True:
            news = self._news
            entries = self.after(seq, wanted)
            if entries:
                return entries
            # Skip entries that were already checked and did not match.
            seq = max(seq, self.head)
            try:
                await asyncio.wait_for(news.wait(), end - loop.time())
            except TimeoutError:
                return []
