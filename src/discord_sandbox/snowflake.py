"""Discord's ids: unique, rising, and readable as a time.

This module knows the epoch and the layout, not the use of the ids.
"""

from collections.abc import Callable

EPOCH_MS = 1_420_070_400_000


class Snowflakes:
    """Makes ids that always rise, even when the clock is turned back."""

    def __init__(self, now: Callable[[], float], last: int = 0) -> None:
        self._now = now
        self.last = last

    def next(self) -> int:
        stamped = at(self._now())
        self.last = max(stamped, self.last + 1)
        return self.last


def at(seconds: float) -> int:
    """The smallest id of that moment."""
    return max(int(seconds * 1000) - EPOCH_MS, 0) << 22


def moment(snowflake: int) -> float:
    """The moment an id was made, in seconds since 1970."""
    return ((snowflake >> 22) + EPOCH_MS) / 1000
