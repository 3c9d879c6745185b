"""Remembers which mentions were heard and until when the bot listened, so that a later start finds the missed ones.

A mention that became a turn is in the table of turns. A mention that was refused or only answered with a hint is
noted before the person is told, so it is never answered twice. A mention that was ignored silently is noted with the
next beat. A mention that cannot be taken now is put off: the bot does not say that it listened until the next look has
found that mention again. One write every few seconds says until when the bot listened; no message costs a write.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field
from typing import Protocol, TypeVar

from signoff.approvals.ports import Clock
from signoff.dataclass import dataclass

T = TypeVar("T")

MARGIN = 60.0
"""Seconds by which the last beat may be too late: a dead connection is noticed only later, and clocks differ."""
KEPT_IN_MEMORY = 5000
ATTEMPTS = 10
"""How often a mention is put off before it is given up."""
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
    _put_off: dict[str, float] = field(default_factory=dict[str, float])
    """Id of a mention that could not be taken -> when it was sent, until the next look."""
    _attempts: OrderedDict[str, int] = field(default_factory=OrderedDict[str, int])
    """Id of a mention -> how often it was put off."""

    def hear(self, mention: str) -> bool:
        """Return whether this process hears the mention for the first time."""
        if mention in self._heard:
            return False
        self._heard[mention] = None
        while len(self._heard) > KEPT_IN_MEMORY:
            self._heard.popitem(last=False)
        return True

    def put_off(self, mention: str, sent: float) -> bool:
        """Have the next look find the mention again. Returns False if that was tried too often, or for too many."""
        attempts = self._attempts.pop(mention, 0)
        if attempts >= ATTEMPTS or len(self._put_off) >= KEPT_IN_MEMORY:
            return False
        self._attempts[mention] = attempts + 1
        while len(self._attempts) > KEPT_IN_MEMORY:
            self._attempts.popitem(last=False)
        self._heard.pop(mention, None)
        self._put_off[mention] = sent
        return True

    @property
    def has_put_off(self) -> bool:
        return bool(self._put_off)

    async def start_look(self) -> float | None:
        """Return since when to look for mentions; None if there is nothing to look for."""
        since = await self.deaf_since()
        sent = min(self._put_off.values(), default=None)
        self._put_off.clear()
        return since if since is None or sent is None else min(since, sent - MARGIN)

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
        listening = listening and not self._put_off
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
