"""Runs the functions of tools away from the bot's event loop, so that none of them can stop the bot.

A sync function gets a thread of its own, and so does a generator: its items are the result. Async functions share one
event loop in a thread, because many of them share a client or a lock that belongs to one loop. If a tool blocks that
loop, the log names the tool, the calls that follow get a new loop, and that tool gets a loop of its own for each call.

`metadata={"bot_loop": True}` keeps a tool on the bot's loop. Tools of MCP servers and of toolsets that call something
else than a Python function always stay there.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import thread as thread_pool
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import field, replace
from functools import partial, wraps
from typing import Any, cast

from pydantic_ai.toolsets import ToolsetTool
from pydantic_ai.toolsets.function import FunctionToolset, FunctionToolsetTool

from signoff.approvals.containment import Outcome, in_thread, ordinary
from signoff.dataclass import dataclass
from signoff.gate.arguments import origin_of
from signoff.gate.tools_loop import ToolsLoop

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
"""The time between two looks at whether the tools' loop responds."""
PATIENCE = 1.0
"""A tool that does not let the loop respond for this many seconds counts as blocking it."""
MOST_ITEMS = 10_000
"""How many items of a generator become a result. Some generators never end."""
POOL_THREAD: Any = getattr(thread_pool, "_worker", None)
"""The function that the threads of a pool run."""

Begun = Callable[["Future[Outcome]"], None]
"""Is told of each piece of work that a call begins: it may go on after its call was given up."""


@dataclass
class ToolThreads:
    _shared: ToolsLoop | None = None
    _watcher: asyncio.Task[None] | None = None
    _blocking: set[str] = field(default_factory=set[str])
    """Names of the tools that have blocked the shared loop."""

    def moved(self, tool: ToolsetTool[Any], begun: Begun) -> ToolsetTool[Any]:
        """Return the tool so that calling it runs its function away from this loop, if it is a plain function."""
        inner: object = getattr(tool, "source_tool", None)
        if isinstance(inner, ToolsetTool):
            return replace(tool, source_tool=self.moved(inner, begun))  # pyright: ignore[reportCallIssue, reportUnknownArgumentType]
        origin = origin_of(tool)
        if not isinstance(tool, FunctionToolsetTool) or not isinstance(origin, FunctionToolset):
            return tool
        if (tool.tool_def.metadata or {}).get("bot_loop") is True:
            return tool
        known = origin.tools.get(tool.original_name or tool.tool_def.name)
        if known is None or tool.call_func != known.function_schema.call:
            return tool  # its toolset calls it in a way of its own
        schema, name = known.function_schema, tool.tool_def.name

        async def function(*args: Any, **named: Any) -> Any:
            return await self.call(name, begun, lambda: schema.function(*args, **named), is_async=schema.is_async)

        return replace(tool, call_func=replace(schema, function=function, is_async=True).call)

    async def call(self, name: str, begun: Begun, function: Callable[[], Any], *, is_async: bool) -> Any:
        """Return what the function returns. If this is cancelled, a sync function runs on in its thread."""
        result = await (self.on_loop(name, function, begun) if is_async else self._in_thread(name, function, begun))
        # Any function may return a generator or a coroutine instead of a result.
        while True:
            if inspect.isgenerator(result):
                result = await self._items(name, cast("Generator[Any, Any, Any]", result), begun)
            elif inspect.isasyncgen(result):
                result = await self.on_loop(name, _collecting(cast("AsyncGenerator[Any, Any]", result)), begun)
            elif inspect.isawaitable(result):
                result = await self.on_loop(name, _returning(result), begun)
            else:
                return result

    async def on_loop(self, name: str, function: Callable[[], Awaitable[Any]], begun: Begun | None = None) -> Any:
        """Run an async function on the tools' loop, or on its own one if it has blocked that one before."""
        alone = name in self._blocking
        loop = ToolsLoop() if alone else self._loop()
        work = loop.start(name, function)
        if alone:
            loop.retire()
        if begun:
            begun(work)
        return await _outcome(work, loop)

    async def _in_thread(self, name: str, function: Callable[[], Any], begun: Begun) -> Any:
        work = in_thread(function, f"signoff-tool-{name}")
        begun(work)
        return await _outcome(work)

    async def _items(self, name: str, generator: Generator[Any, Any, Any], begun: Begun) -> list[Any]:
        given_up = threading.Event()

        def collect() -> list[Any]:
            items: list[Any] = []
            try:
                for item in generator:
                    items.append(_counted(item, items))
                    if given_up.is_set():
                        break  # nobody waits for the items any more
            finally:
                generator.close()
            return items

        try:
            return await self._in_thread(name, collect, begun)
        finally:
            given_up.set()

    def _loop(self) -> ToolsLoop:
        if self._shared is None or self._shared.is_closed:
            self._shared, self._watcher = ToolsLoop(), None
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch(self._shared))
        return self._shared

    async def _watch(self, loop: ToolsLoop) -> None:
        """Replace the shared loop if a tool blocks it. Ends when nothing runs on it."""
        await asyncio.sleep(LOOK_SECONDS)
        while not loop.is_idle and not loop.is_closed:
            if not await loop.is_responsive(PATIENCE):
                names = loop.blocked_by()
                self._blocking |= names
                log.warning(
                    "the tool %s blocks the event loop of the tools for more than %g s; from now on each of its calls "
                    "gets a loop of its own. Await something instead of blocking, or make it a plain def",
                    " or ".join(sorted(names)) or "(unknown)",
                    PATIENCE,
                )
                loop.retire()
                self._shared = self._watcher = None
                return
            await asyncio.sleep(LOOK_SECONDS)


def carry_into_threads(variable: ContextVar[Any], leaves: type[BaseException]) -> None:
    """Let threads that a tool starts know the variable, too: Python itself starts them without any context.

    This covers `threading.Thread`, and pools, which `run_in_executor` uses. A thread that ends with `leaves` has not
    failed.
    """

    def carrying(work: Callable[..., Any], value: Any) -> Callable[..., Any]:
        @wraps(work)
        def carried(*args: Any, **named: Any) -> Any:
            token = variable.set(value)
            try:
                return work(*args, **named)
            finally:
                variable.reset(token)

        return carried

    def quiet(work: Callable[[], None]) -> None:
        with suppress(leaves):
            work()

    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    @wraps(start)
    def start_carrying(self: threading.Thread) -> None:
        # The threads of a pool and our own ones outlive the tool, so only the work that they get carries the variable.
        value, outlives = (
            variable.get(),
            getattr(self, "_target", None) is POOL_THREAD or self.name.startswith("signoff-"),
        )
        if value is not None and not outlives:
            self.run = partial(quiet, carrying(self.run, value))
        start(self)

    @wraps(submit)
    def submit_carrying(self: Any, work: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        value = variable.get()
        return submit(self, work if value is None else carrying(work, value), *args, **named)

    changed: Any = start_carrying
    threading.Thread.start = changed
    changed = submit_carrying
    ThreadPoolExecutor.submit = changed


async def _outcome(work: Future[Outcome], loop: ToolsLoop | None = None) -> Any:
    try:
        result, error = await asyncio.wrap_future(work)
    except asyncio.CancelledError:
        if loop:
            loop.cancel(work)
        raise
    if error is not None:
        raise ordinary(error)
    return result


def _counted(item: Any, items: list[Any]) -> Any:
    if len(items) >= MOST_ITEMS:
        raise ValueError(f"its generator gave more than {MOST_ITEMS} items")
    return item


def _collecting(generator: AsyncGenerator[Any, Any]) -> Callable[[], Awaitable[list[Any]]]:
    async def collect() -> list[Any]:
        items: list[Any] = []
        try:
            async for item in generator:
                items.append(_counted(item, items))
        finally:
            await generator.aclose()
        return items

    return collect


def _returning(awaitable: Awaitable[Any]) -> Callable[[], Awaitable[Any]]:
    async def awaited() -> Any:
        return await awaitable

    return awaited
