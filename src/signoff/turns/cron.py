"""Times of a cron expression with five fields, in a time zone. A thin layer over cronsim.

When clocks are put forward, a run in the missing hour comes right after it. When they are put back, it comes once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from itertools import islice, pairwise

from cronsim import CronSim, CronSimError

from signoff.dataclass import dataclass

LONGEST = 100
"""The most characters of an expression."""
LOOKED_AT = 200
"""How many runs are looked at to find the shortest time between two of them."""
FAR = 400 * 86400.0
"""Runs that are further away than this are not looked at."""


class BadCron(ValueError):
    """The text is no cron expression with five fields."""


@dataclass(frozen=True, slots=True)
class Cron:
    text: str
    zone: tzinfo

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST or len(self.text.split()) != 5:
            raise BadCron("write five fields: minute, hour, day of month, month and day of week")
        try:
            CronSim(self.text, datetime.now(self.zone))
        except CronSimError as error:
            raise BadCron(str(error)) from None

    def after(self, at: float) -> float | None:
        """Return the first time after this moment; None if there is none."""
        return next(self._times(at), None)

    def last(self, at: float) -> float | None:
        """Return the last time that is not after this moment; None if there is none."""
        found = next(CronSim(self.text, datetime.fromtimestamp(at, self.zone), reverse=True), None)
        exact = self.after(at - 1)
        return exact if exact is not None and exact <= at else found and found.timestamp()

    def shortest(self, at: float) -> float:
        """Return the fewest seconds between two runs, as far as the next runs tell."""
        near = [time for time in islice(self._times(at), LOOKED_AT) if time < at + FAR]
        return min((later - earlier for earlier, later in pairwise(near)), default=FAR)

    def words(self) -> str:
        """Return the times in words, such as `At 09:00 on Monday`."""
        return CronSim(self.text, datetime.now(self.zone)).explain()

    def _times(self, at: float) -> Iterator[float]:
        return (time.timestamp() for time in CronSim(self.text, datetime.fromtimestamp(at, self.zone)))
