"""Measures for how long the running event loop was stopped."""

from __future__ import annotations

import asyncio
import time


class LoopProbe:
    """Sleeps 5 ms again and again; `longest` is the longest time that such a sleep took."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LoopProbe:
        self._task = asyncio.create_task(self._run())
        await asyncio.sleep(0.02)
        return self

    async def __aexit__(self, *args: object) -> None:
        await asyncio.sleep(0.01)  # so that a stop that has just ended is seen
        assert self._task
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            self.longest = max(self.longest, time.monotonic() - before)
