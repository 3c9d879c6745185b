"""How much work the store holds, as numbers for the metrics. Reads only."""

from __future__ import annotations

from collections.abc import Mapping

from signoff.store.database import Database, Row

TURNS = "SELECT COUNT(*) FROM turns WHERE state = ?"
OPEN_REQUESTS = """SELECT COUNT(*) FROM batches JOIN requests ON requests.batch = batches.id
    WHERE batches.settled = FALSE AND requests.state = 'pending'"""


class StatusRows:
    db: Database

    def work_left(self) -> Mapping[str, int]:
        """Return the numbers of turns that have not ended, by state, and of `open_requests`."""
        turns = {state: _count(self.db.one(TURNS, state)) for state in ("queued", "running", "waiting")}
        return {**turns, "open_requests": _count(self.db.one(OPEN_REQUESTS))}


def _count(row: Row | None) -> int:
    return int(row[0]) if row else 0
