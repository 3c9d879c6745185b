"""What a run is doing, for the people who watch it: its tools, whether the model is asked, and the reply so far.

The gate reports here while it works. Nothing here awaits, so a report never delays the run; `status` and `delivery`
read it later, at their own pace. It is kept in memory only: after a restart the run reports again.
"""

from __future__ import annotations

import asyncio
from dataclasses import field
from weakref import WeakValueDictionary

from signoff.approvals.model import CallKey
from signoff.approvals.ports import Clock
from signoff.dataclass import dataclass

EVERY = 1.5
"""Seconds between two edits of the same message. Discord limits edits per channel: five in five seconds."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What a run has done and is doing, by the names of its tools."""

    since: float
    """When the model was last asked, or the run began."""
    ran: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    running: tuple[tuple[str, float], ...] = ()
    """Each running tool and when it started, oldest first."""
    text: str = ""
    """The model's response so far, as long as it may still become the reply."""

    @property
    def has_news(self) -> bool:
        """Whether there is more to show than that the model is asked."""
        return bool(self.ran or self.failed or self.running or self.text)


@dataclass
class Changes:
    """Wakes those who show a turn when something about it changes."""

    _events: WeakValueDictionary[str, asyncio.Event] = field(
        default_factory=WeakValueDictionary[str, asyncio.Event], repr=False
    )
    """Turn id -> the event that its next change sets. Kept as long as somebody holds the event."""

    def next(self, turn_id: str) -> asyncio.Event:
        """Return the event of the next change. Take it before reading the state that the change would concern."""
        event = self._events.get(turn_id)
        if event is None:
            event = self._events[turn_id] = asyncio.Event()
        return event

    def ring(self, turn_id: str) -> None:
        if event := self._events.pop(turn_id, None):
            event.set()


@dataclass
class RunProgress:
    """Collects the reports of one run. Implements `ports.Progress`."""

    turn_id: str
    clock: Clock
    changes: Changes
    _since: float = field(init=False)
    _ran: list[str] = field(default_factory=list[str])
    _failed: list[str] = field(default_factory=list[str])
    _running: dict[CallKey, tuple[str, float]] = field(default_factory=dict[CallKey, tuple[str, float]])
    """Key of each running call -> (its tool, when it started)."""
    _text: list[str] = field(default_factory=list[str])
    """The pieces of the model's response so far."""

    def __post_init__(self) -> None:
        self._since = self.clock.now()

    def status(self) -> RunStatus:
        self._text = ["".join(self._text)]
        text = self._text[0]
        return RunStatus(self._since, tuple(self._ran), tuple(self._failed), tuple(self._running.values()), text)

    def thinking(self) -> None:
        self._since = self.clock.now()
        self._text = []
        self.changes.ring(self.turn_id)

    def writing(self, words: str) -> None:
        self._text.append(words)
        self.changes.ring(self.turn_id)

    def started(self, key: CallKey, tool: str) -> None:
        self._running[key] = tool, self.clock.now()
        self._text = []  # a response that calls tools is not the reply
        self.changes.ring(self.turn_id)

    def ended(self, key: CallKey, *, failed: bool = False) -> None:
        if entry := self._running.pop(key, None):
            (self._failed if failed else self._ran).append(entry[0])
        self.changes.ring(self.turn_id)

    def withdrawn(self, key: CallKey) -> None:
        self._running.pop(key, None)
        self.changes.ring(self.turn_id)


class Unseen:
    """Takes the reports of a run that nobody watches."""

    def thinking(self) -> None: ...

    def writing(self, words: str) -> None: ...

    def started(self, key: CallKey, tool: str) -> None: ...

    def ended(self, key: CallKey, *, failed: bool = False) -> None: ...

    def withdrawn(self, key: CallKey) -> None: ...


class Early(Unseen):
    """Keeps the words of a run that is ahead of its step, until somebody can see them."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def writing(self, words: str) -> None:
        self.words.append(words)
