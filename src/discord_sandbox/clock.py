"""The sandbox's time: the machine's clock plus a shift that a test may set.

All code that checks whether something has expired uses this clock, not `time`.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass
class Clock:
    """Seconds since 1970, moved by `shift`."""

    shift: float = 0.0

    def now(self) -> float:
        return time.time() + self.shift

    def iso(self) -> str:
        return iso(self.now())


def iso(seconds: float) -> str:
    """A time as Discord writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
