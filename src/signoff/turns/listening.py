"""Remembers which mentions were heard and until when the bot listened, so that a later start finds the missed ones.

A mention that became a turn is in the table of turns. A mention that was refused or only answered with a hint is
noted before the person is told, so it is never answered twice. A mention that was ignored silently is noted with the
next beat. One write every few seconds says until when the bot listened; no message costs a write.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from signoff.approvals.ports import Clock

T = TypeVar("T")

MARGIN = 60.0
"""Seconds by which the last beat may be too late: a dead connection is noticed only later, and clocks differ."""
KEPT_IN_MEMORY = 5000
KEPT_IN_STORE = 7 * 86400.0
"""Seconds for which noted mentions are kept. No start looks back further than a day."""


class ListeningTx(Protocol):
    def listened_until(self) -> float | None:
        """Return the time of the last beat; None if there was none yet."""
        ...

    def set_listened_until(self, at: float) -> None: ...

    def note_heard(self, mentions: Collection[str], at: float) -> None: ...

    def was_heard(self, mention: str) -> bool:
        """Whether the mention became a turn or was noted."""
        ...

    def forget_heard(self, before: float) -> None: ...

    def recent_turns(self, limit: int) -> Sequence[tuple[str, str, str]]:
        """Return (turn id, server, channel of its reply) of the newest turns, newest first."""
        ...


class ListeningStore(Protocol):
    async def run(self, work: Callable[[ListeningTx], T]) -> T: ...


@dataclass
class Listening:
    store: ListeningStore
    clock: Clock
    _heard: OrderedDict[str, None] = field(default_factory=OrderedDict[str, None])
    """Ids of the mentions that this process heard; the values are unused."""
    _unnoted: dict[str, None] = field(default_factory=dict[str, None])
    """Ids of mentions that were ignored silently since the last beat; the values are unused."""

    def hear(self, mention: str) -> bool:
        """Return whether this process hears the mention for the first time."""
        if mention in self._heard:
            return False
        self._heard[mention] = None
        while len(self._heard) > KEPT_IN_MEMORY:
            self._heard.popitem(last=False)
        return True

    def ignore(self, mention: str) -> None:
        """Have the mention noted with the next beat."""
        if len(self._unnoted) < KEPT_IN_MEMORY:
            self._unnoted[mention] = None

    async def note(self, mention: str) -> None:
        """Note a mention that becomes no turn, before its author is told."""
        now = self.clock.now()
        await self.store.run(lambda tx: tx.note_heard([mention], now))

    async def beat(self, *, listening: bool) -> None:
        """Note what is not noted yet and, if `listening`, that the bot has heard everything until now."""
        noted, now = tuple(self._unnoted), self.clock.now()

        def work(tx: ListeningTx) -> None:
            tx.note_heard(noted, now)
            tx.forget_heard(now - KEPT_IN_STORE)
            if listening:
                tx.set_listened_until(now)

        await self.store.run(work)
        for mention in noted:
            self._unnoted.pop(mention, None)

    async def deaf_since(self) -> float | None:
        """Return since when mentions may have been missed. None: this database was never used for listening."""
        until = await self.store.run(lambda tx: tx.listened_until())
        return None if until is None else min(until, self.clock.now()) - MARGIN

    async def missed(self, mentions: Iterable[str]) -> set[str]:
        """Return those of the mentions that no process has heard."""
        asked = [mention for mention in mentions if mention not in self._heard]
        return set(await self.store.run(lambda tx: [mention for mention in asked if not tx.was_heard(mention)]))

    async def recent_turns(self, limit: int) -> Sequence[tuple[str, str, str]]:
        return await self.store.run(lambda tx: tx.recent_turns(limit))
