"""Tool slots: how many tools run, how long each may take, when none may start, and in which order they start.

Calls of one model response start in the order in which the model made them. They still run concurrently: a call waits
only until each call before it has started or will not start. A tool with `metadata={"independent": True}` does not
wait, and no other call waits for it.

Fair shares: each person may have so many tools running, so that nobody waits for another person's tools. A call keeps
its place until its code has really ended. A tool that was given up may run on in its thread, and it goes on counting:
otherwise one person could fill the machine with tools that never end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from typing import Any, TypeVar

from pydantic_ai.exceptions import ToolFailed

from signoff.approvals.containment import Elsewhere, contained, elsewhere
from signoff.approvals.model import CallKey
from signoff.dataclass import dataclass
from signoff.gate.tool_threads import ToolThreads

T = TypeVar("T")
CHECK_SECONDS = 120.0


class ToolOverran(Exception):
    """A tool exceeded its time limit."""


@dataclass
class Share:
    """The places of one person."""

    taken: set[CallKey] = field(default_factory=set[CallKey])
    given_up: set[CallKey] = field(default_factory=set[CallKey])
    """Those of `taken` whose call has ended, although their code still runs."""
    queue: deque[tuple[CallKey, asyncio.Future[None]]] = field(
        default_factory=deque[tuple[CallKey, "asyncio.Future[None]"]]
    )
    """The calls that wait: (key, the future that is done when the call has a place)."""


@dataclass
class ToolShares:
    places: int = 10
    """How many tools of one person run at once. The person's further calls wait."""
    _shares: dict[str, Share] = field(default_factory=dict[str, Share])
    """Person -> their share, while they have calls."""
    _work: dict[CallKey, Future[Any]] = field(default_factory=dict[CallKey, "Future[Any]"])
    """Key of each call that has a place -> the work that it began last."""

    async def take(self, person: str, key: CallKey) -> bool:
        """Take a place for the call, and wait if there is none. Returns whether it had to wait.

        Raises ToolFailed if no place can become free soon.
        """
        share = self._shares.setdefault(person, Share())
        if key in share.taken:
            return False
        if len(share.taken) < self.places:
            share.taken.add(key)
            return False
        if len(share.given_up) >= self.places:
            raise self._stuck()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        share.queue.append((key, turn))
        try:
            await turn
        except asyncio.CancelledError:
            share.queue = deque(entry for entry in share.queue if entry[1] is not turn)
            self._free(person, key)  # it may just have got its place
            raise
        return True

    def is_waiting(self, person: str) -> bool:
        """Whether a call of this person waits for a place."""
        return person in self._shares and bool(self._shares[person].queue)

    def begun(self, key: CallKey, work: Future[Any]) -> None:
        """Note that the call began something that can outlast it."""
        self._work[key] = work

    def leave(self, person: str, key: CallKey) -> None:
        """Give the place back, as soon as the work of the call has really ended."""
        work = self._work.pop(key, None)
        share = self._shares.get(person)
        if share is None or key not in share.taken:
            return
        if work is None or work.done():
            self._free(person, key)
            return
        share.given_up.add(key)
        if len(share.given_up) >= self.places:
            while share.queue:  # nothing will become free soon: let each waiting call say so
                _, turn = share.queue.popleft()
                if not turn.done():
                    turn.set_exception(self._stuck())
        loop = asyncio.get_running_loop()

        def ended(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the bot has ended in the meantime
                loop.call_soon_threadsafe(self._free, person, key)

        work.add_done_callback(ended)

    def _free(self, person: str, key: CallKey) -> None:
        share = self._shares.get(person)
        if share is None:
            return
        share.taken.discard(key)
        share.given_up.discard(key)
        while share.queue and len(share.taken) < self.places:
            waiting, turn = share.queue.popleft()
            if not turn.done():
                share.taken.add(waiting)
                turn.set_result(None)
        if not share.taken:
            del self._shares[person]

    def _stuck(self) -> ToolFailed:
        return ToolFailed(
            f"Nothing was run: {self.places} tools that this person started were given up after their time limit and "
            "still run. Try again when they have ended."
        )


@dataclass
class ToolSlots:
    seconds_per_tool: float | None = CHECK_SECONDS
    """The limit for a tool, and for its condition, preview and validator. None: only those three are limited."""
    shares: ToolShares = field(default_factory=ToolShares)
    threads: ToolThreads | None = field(default_factory=ToolThreads)
    """Where the tools' own code runs. None: on the loop of the caller, as the framework does it."""
    running: int = 0
    _closing: bool = False
    _empty: asyncio.Event = field(default_factory=asyncio.Event)
    _paused: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """Paused server -> the event that is set when it is resumed."""

    def is_shut(self, server: str) -> bool:
        return self._closing or server in self._paused

    async def wait_open(self, server: str, place: tuple[str, CallKey] | None = None) -> None:
        """Wait while the server is paused. During shutdown, wait forever: the next process continues the turn.

        A call gives up its place (person, key) meanwhile, so that its person's calls in other servers go on.
        """
        if place and self.is_shut(server):
            self.shares.leave(*place)
        while self.is_shut(server):
            paused = self._paused.get(server)
            await (asyncio.Event() if self._closing or paused is None else paused).wait()

    def pause(self, server: str) -> None:
        self._paused.setdefault(server, asyncio.Event())

    def resume(self, server: str) -> None:
        if paused := self._paused.pop(server, None):
            paused.set()

    @asynccontextmanager
    async def occupy(self) -> AsyncGenerator[asyncio.Timeout]:
        """Run a tool here. Its time limit can be moved while the tool runs."""
        self.running += 1
        limit = asyncio.timeout(self.seconds_per_tool)
        try:
            async with limit:
                yield limit
        except TimeoutError as error:
            if not limit.expired():
                raise
            words = f"The tool did not finish within {self.seconds_per_tool:g} seconds; it may still have an effect."
            raise ToolOverran(words) from error
        finally:
            self.running -= 1
            if not self.running:
                self._empty.set()

    async def in_time(self, what: str, answer: Awaitable[T], tool: str = "") -> T:
        """Run a tool-supplied callback, such as its condition or preview, under the tool's own time limit."""
        seconds = self.seconds_per_tool or CHECK_SECONDS
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                with contained(), elsewhere(self._loop_for(f"{tool} ({what})")):
                    return await answer
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolFailed(f"Nothing was run: {what} took longer than {seconds:g} s.") from error

    def _loop_for(self, name: str) -> Elsewhere | None:
        threads = self.threads
        return (lambda function: threads.on_loop(name, function)) if threads else None

    async def clear(self, seconds: float) -> None:
        """Let no more tools start, and give running tools this many seconds to finish."""
        self._closing = True
        if self.running:
            self._empty.clear()
            try:
                await asyncio.wait_for(self._empty.wait(), seconds)
            except TimeoutError:
                pass


@dataclass
class StartOrder:
    _ahead: dict[CallKey, asyncio.Event] = field(default_factory=dict[CallKey, asyncio.Event])
    """Key of each validated call that other calls may wait for -> the event that is set when it starts or will not."""

    def expect(self, key: CallKey) -> None:
        self._ahead.setdefault(key, asyncio.Event())  # others may already wait for it: an edit is validated again

    def expects_any(self, keys: Iterable[CallKey]) -> bool:
        return any(key in self._ahead for key in keys)

    def passed(self, key: CallKey) -> None:
        """Note that the call starts now, or will not start."""
        if event := self._ahead.pop(key, None):
            event.set()

    async def wait_for(self, earlier: Iterable[CallKey]) -> None:
        for key in earlier:
            if event := self._ahead.get(key):
                await event.wait()
