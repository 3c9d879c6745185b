"""Tool slots: how many tools run, how long each may take, when none may start, and in which order they start.

Calls of one model response start in the order in which the model made them. They still run concurrently: a call waits
only until each call before it has started or will not start. A tool with `metadata={"independent": True}` does not
wait, and no other call waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic_ai.exceptions import ToolFailed

from signoff.approvals.containment import contained
from signoff.approvals.model import CallKey

T = TypeVar("T")
CHECK_SECONDS = 120.0


class ToolOverran(Exception):
    """A tool exceeded its time limit."""


@dataclass
class ToolSlots:
    seconds_per_tool: float | None = CHECK_SECONDS
    """The limit for a tool, and for its condition, preview and validator. None: only those three are limited."""
    running: int = 0
    _closing: bool = False
    _empty: asyncio.Event = field(default_factory=asyncio.Event)
    _paused: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """Paused server -> the event that is set when it is resumed."""

    def is_shut(self, server: str) -> bool:
        return self._closing or server in self._paused

    async def wait_open(self, server: str) -> None:
        """Wait while the server is paused. During shutdown, wait forever: the next process continues the turn."""
        while self.is_shut(server):
            paused = self._paused.get(server)
            await (asyncio.Event() if self._closing or paused is None else paused).wait()

    def pause(self, server: str) -> None:
        self._paused.setdefault(server, asyncio.Event())

    def resume(self, server: str) -> None:
        if paused := self._paused.pop(server, None):
            paused.set()

    @asynccontextmanager
    async def occupy(self) -> AsyncGenerator[None]:
        self.running += 1
        limit = asyncio.timeout(self.seconds_per_tool)
        try:
            async with limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            words = f"The tool did not finish within {self.seconds_per_tool:g} seconds; it may still have an effect."
            raise ToolOverran(words) from error
        finally:
            self.running -= 1
            if not self.running:
                self._empty.set()

    async def in_time(self, what: str, answer: Awaitable[T]) -> T:
        """Run a tool-supplied callback, such as its condition or preview, under the tool's own time limit."""
        seconds = self.seconds_per_tool or CHECK_SECONDS
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                with contained():
                    return await answer
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolFailed(f"Nothing was run: {what} took longer than {seconds:g} s.") from error

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
