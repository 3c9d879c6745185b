"""The time of day for deadlines. If the system clock is set back, time goes on by the seconds that have passed.

A card shows its deadline as a time of day. People's own clocks reach that time although the machine's clock was set
back, so the machine must reach it then, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import field

from signoff.dataclass import dataclass

log = logging.getLogger(__name__)

STEP = 1.0
"""Seconds. A smaller difference between two readings is a clock that is being adjusted gradually."""


def _seconds_since_boot() -> float:
    # Linux's monotonic clock stops while the machine sleeps; this one does not.
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass
class SteadyClock:
    time_of_day: Callable[[], float] = time.time
    elapsed: Callable[[], float] = _seconds_since_boot
    ahead: float = 0.0
    """How many seconds `now` is ahead of the system clock, because that was set back."""
    _last: tuple[float, float] | None = None
    """The last result of `now`, and `elapsed` at that moment."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> float:
        with self._lock:
            elapsed, now = self.elapsed(), self.time_of_day() + self.ahead
            if self._last is not None:
                difference = self._last[0] + (elapsed - self._last[1]) - now
                if difference > STEP:
                    log.warning(
                        "the system clock was set back by %.0f seconds; deadlines go on by the time that has passed."
                        " Restart Signoff if the clock is right now and was wrong before.",
                        difference,
                    )
                    self.ahead += difference
                    now += difference
                elif difference < -STEP and self.ahead:
                    corrected = min(self.ahead, -difference)
                    self.ahead -= corrected
                    now -= corrected
            self._last = (now, elapsed)
            return now
