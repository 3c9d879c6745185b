"""An event loop for other people's async functions, in a thread of its own.

An `async def` that blocks (`time.sleep`) stops every other task of its event loop, so it must not run on the bot's. The
loop knows no tools: it is told their names, and says which one blocks it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from signoff.approvals.containment import Outcome

log = logging.getLogger(__name__)

_owner: ContextVar[str] = ContextVar("_owner", default="")
"""The name of the tool that a task belongs to. Tasks that a tool starts inherit it."""


class ToolsLoop:
    """Runs async functions until it is retired and the last of them has ended."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_task_factory(self._new_task)
        self._owners: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        """Each task -> the name of the tool that it belongs to."""
        self._running: dict[Future[Outcome], str] = {}
        """The future of each function that has not ended -> the name of its tool."""
        self._tasks: dict[Future[Outcome], asyncio.Task[Outcome]] = {}
        self._retired = False
        threading.Thread(target=self._run, name="signoff-tools-loop", daemon=True).start()

    @property
    def is_idle(self) -> bool:
        return not self._running

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def start(self, owner: str, function: Callable[[], Awaitable[Any]]) -> Future[Outcome]:
        """Run the function here. The future is done when the function has really ended, cancelled or not."""
        work: Future[Outcome] = Future()
        work.set_running_or_notify_cancel()
        self._running[work] = owner

        def begin() -> None:
            _owner.set(owner)  # in the context of this callback, which the task copies
            self._tasks[work] = task = self._loop.create_task(_outcome(function))
            task.add_done_callback(lambda task: self._end(work, task))

        self._loop.call_soon_threadsafe(begin)
        return work

    def cancel(self, work: Future[Outcome]) -> None:
        def now() -> None:
            if task := self._tasks.get(work):
                task.cancel()

        with suppress(RuntimeError):  # the loop is closed: the work has ended
            self._loop.call_soon_threadsafe(now)

    async def is_responsive(self, seconds: float) -> bool:
        """Wait until the loop responds, but no longer than this."""
        pong: Future[None] = Future()
        self._loop.call_soon_threadsafe(pong.set_result, None)
        done, _ = await asyncio.wait([asyncio.wrap_future(pong)], timeout=seconds)
        return bool(done)

    def blocked_by(self) -> set[str]:
        """Return the tool whose code is running now, or all tools that could be it."""
        task = asyncio.current_task(self._loop)
        owner = self._owners.get(task) if task else None
        return {owner} if owner else set(self._running.values())

    def retire(self) -> None:
        """Take no more work, and end when the last function has ended."""
        self._retired = True
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._leave)

    def _end(self, work: Future[Outcome], task: asyncio.Task[Outcome]) -> None:
        del self._running[work], self._tasks[work]
        # A task that was cancelled before its first step has no result.
        work.set_result((None, asyncio.CancelledError()) if task.cancelled() else task.result())
        self._leave()

    def _leave(self) -> None:
        if self._retired and not self._running:
            self._loop.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._loop.is_closed():
            try:
                self._loop.run_forever()
                if self._retired and not self._running:
                    break
                log.error("a tool stopped the loop of the tools; the loop goes on")
            except BaseException as error:  # from a task that a tool started and left alone
                log.error("a task of a tool tried to end the loop of the tools: %s", type(error).__name__)
        with suppress(BaseException):
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.call_soon(self._loop.stop)
            self._loop.run_forever()
        self._loop.close()
        for work in list(self._running):  # only if a tool closed the loop
            del self._running[work]
            work.set_result((None, RuntimeError("a tool closed the event loop of the tools")))

    def _new_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        self._owners[task] = _owner.get()
        return task


async def _outcome(function: Callable[[], Awaitable[Any]]) -> Outcome:
    # An exit or an interrupt that left a task would end the loop.
    try:
        return await function(), None
    except BaseException as error:
        return None, error
