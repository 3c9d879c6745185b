"""main.py with a probe of its event loop, which writes to stops.txt how long the loop could do nothing else.

Each line is the processor time, in milliseconds, that one stretch of work took on the loop. Processor time does not
depend on how busy the machine is, and the largest number is what everybody else has to wait for.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from pathlib import Path

EVERY = 0.005
WORTH_NOTING = 0.01
OUTPUT = Path("stops.txt")


class Probe:
    """Ticks on the loop. Between two ticks the loop was busy for as long as its thread used the processor."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.used = loop, time.thread_time()
        loop.call_later(EVERY, self.tick)

    def tick(self) -> None:
        used = time.thread_time()
        if used - self.used > WORTH_NOTING:
            with OUTPUT.open("a", encoding="utf-8") as file:
                file.write(f"{(used - self.used) * 1000:.0f}\n")
        self.used = time.thread_time()
        self.loop.call_later(EVERY, self.tick)


class ProbedPolicy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        if threading.current_thread() is threading.main_thread():
            loop.call_soon(Probe, loop)
        return loop


if __name__ == "__main__":
    asyncio.set_event_loop_policy(ProbedPolicy())
    sys.argv = ["main.py", "discord"]
    from signoff import cli

    cli.main()
