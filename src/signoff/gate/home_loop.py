"""The way back to the bot's event loop, for the gate of an agent that runs inside a tool.

The tools' own code runs on other loops and in threads (`tool_threads`), and so does an agent that a tool runs. The
book of calls, the tool slots and the progress belong to the bot's loop. The classes here have the same methods, may be
used on any loop, and do the work on the bot's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from signoff.approvals.model import ApprovalRequest, CallKey, Ruling, ToolCall
from signoff.approvals.policy import Context, Declaration
from signoff.dataclass import dataclass
from signoff.gate.book import CallBook, Entry
from signoff.gate.examiner import Judge
from signoff.gate.tool_slots import ToolShares, ToolSlots
from signoff.gate.tool_threads import Begun, ToolThreads
from signoff.turns.model import CallRecord
from signoff.turns.ports import Progress

T = TypeVar("T")


@dataclass(frozen=True)
class HomeLoop:
    loop: asyncio.AbstractEventLoop

    @property
    def is_here(self) -> bool:
        return asyncio.get_running_loop() is self.loop

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the bot's loop and return its result. If this is cancelled, so is the coroutine."""
        if self.is_here:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def call(self, function: Callable[[], None]) -> None:
        """Call the function on the bot's loop, soon."""
        self.loop.call_soon_threadsafe(function)


@dataclass(frozen=True)
class BookAtHome(CallBook):
    book: CallBook
    home: HomeLoop

    async def met(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        return await self.home.run(self.book.met(key))

    async def enter(self, call: ToolCall, *, asks: bool, held: bool, read_only: bool) -> Entry:
        return await self.home.run(self.book.enter(call, asks=asks, held=held, read_only=read_only))

    async def done(self, call: ToolCall, result: Any) -> Any:
        return await self.home.run(self.book.done(call, result))

    async def failed(self, call: ToolCall, words: str, *, unknown: bool = False) -> None:
        await self.home.run(self.book.failed(call, words, unknown=unknown))

    async def withdraw(self, call: ToolCall) -> None:
        await self.home.run(self.book.withdraw(call))


@dataclass(frozen=True)
class JudgeAtHome(Judge):
    judge: Judge
    home: HomeLoop

    async def decide(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling:
        return await self.home.run(self.judge.decide(call, declaration, context))


@dataclass(frozen=True)
class ProgressAtHome(Progress):
    progress: Progress
    home: HomeLoop

    def thinking(self) -> None:
        self.home.call(self.progress.thinking)

    def writing(self, words: str) -> None:
        """Do nothing: an agent inside a tool does not write the reply."""

    def started(self, key: CallKey, tool: str) -> None:
        self.home.call(lambda: self.progress.started(key, tool))

    def ended(self, key: CallKey, *, failed: bool = False) -> None:
        self.home.call(lambda: self.progress.ended(key, failed=failed))

    def withdrawn(self, key: CallKey) -> None:
        self.home.call(lambda: self.progress.withdrawn(key))


class ThreadsAtHome(ToolThreads):
    """Runs async functions on the loop of the agent that calls them: that loop is one of the tools' already."""

    def __init__(self, threads: ToolThreads, home: HomeLoop) -> None:
        super().__init__()
        self._threads = threads
        self._home = home

    async def on_loop(self, name: str, function: Callable[[], Awaitable[Any]], begun: Begun | None = None) -> Any:
        if self._home.is_here:  # the tool that runs the agent was kept on the bot's loop
            return await self._threads.on_loop(name, function, begun)
        return await function()


class SharesAtHome(ToolShares):
    """The places of the calls that agents make inside a tool.

    Such a call has a place of its own kind. If it took one of those that its person's tools have, the tools that run
    the agents could take them all, and wait for ever.
    """

    def __init__(self, shares: ToolShares, home: HomeLoop) -> None:
        super().__init__(shares.places)
        self._outer = shares
        self._home = home

    async def take(self, person: str, key: CallKey) -> bool:
        return await self._home.run(self._outer.take(self._holder(person), key))

    def is_waiting(self, person: str) -> bool:
        return self._outer.is_waiting(self._holder(person))

    def begun(self, key: CallKey, work: Future[Any]) -> None:
        self._home.call(lambda: self._outer.begun(key, work))

    def leave(self, person: str, key: CallKey) -> None:
        self._home.call(lambda: self._outer.leave(self._holder(person), key))

    def _holder(self, person: str) -> str:
        return f"{person}/within"


class SlotsAtHome(ToolSlots):
    """The slots of the calls that agents make inside a tool. That tool counts as running for all of them."""

    def __init__(self, slots: ToolSlots, home: HomeLoop) -> None:
        threads = ThreadsAtHome(slots.threads, home) if slots.threads else None
        super().__init__(slots.seconds_per_tool, SharesAtHome(slots.shares, home), threads)
        self._outer = slots
        self._home = home

    def is_shut(self, server: str) -> bool:
        return self._outer.is_shut(server)

    async def wait_open(self, server: str, place: tuple[str, CallKey] | None = None) -> None:
        if place and self.is_shut(server):
            self.shares.leave(*place)
        await self._home.run(self._outer.wait_open(server))
