"""The rows of schedules: their statements and how a row becomes a dataclass."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.store.codec import dump_actor, load_actor
from signoff.store.database import Database, Row
from signoff.turns.schedules import Schedule

_SCHEDULE = "server, number, channel, cron, prompt, mode, made_by, created, due, claimed, message, paused, last_run"
_ONE = "server = ? AND number = ? AND removed IS NULL"
OF_SERVER = f"SELECT {_SCHEDULE} FROM schedules WHERE server = ? AND removed IS NULL ORDER BY number"
ONE = f"SELECT {_SCHEDULE} FROM schedules WHERE {_ONE}"
NEXT_NUMBER = "SELECT COALESCE(MAX(number), 0) + 1 FROM schedules WHERE server = ?"
INSERT = f"INSERT INTO schedules ({_SCHEDULE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
REMOVE = f"UPDATE schedules SET removed = ?, claimed = NULL WHERE {_ONE}"
CLAIMED = f"SELECT {_SCHEDULE} FROM schedules WHERE claimed IS NOT NULL AND removed IS NULL ORDER BY claimed"
DUE = f"""SELECT {_SCHEDULE} FROM schedules WHERE removed IS NULL AND paused = '' AND due <= ? AND claimed IS NULL
    ORDER BY due"""
NEXT_DUE = "SELECT MIN(due) FROM schedules WHERE removed IS NULL AND paused = ''"
CLAIM = f"""UPDATE schedules SET claimed = ?, message = '', due = ?
    WHERE {_ONE} AND due = ? AND claimed IS NULL AND paused = ''"""
NOTE_MESSAGE = f"UPDATE schedules SET message = ? WHERE {_ONE}"
NOTE_TURN = "INSERT INTO scheduled_turns (turn, schedule, mode) VALUES (?, ?, ?) ON CONFLICT (turn) DO NOTHING"
END_CLAIM = f"UPDATE schedules SET claimed = NULL, message = '', last_run = COALESCE(?, last_run) WHERE {_ONE}"
SKIP_CLAIMED = "UPDATE schedules SET claimed = NULL, message = '', last_run = ? WHERE claimed IS NOT NULL"
SKIP_DUE = "UPDATE schedules SET last_run = ? WHERE removed IS NULL AND paused = '' AND due <= ?"
PAUSE = f"UPDATE schedules SET claimed = NULL, message = '', paused = ? WHERE {_ONE}"


class ScheduleRows:
    """Implements `turns.schedules.ScheduleTx`, except for what other rows implement."""

    db: Database

    def schedules_of(self, server: str) -> Sequence[Schedule]:
        return [_schedule(row) for row in self.db.all(OF_SERVER, server)]

    def schedule(self, server: str, number: int) -> Schedule | None:
        row = self.db.one(ONE, server, number)
        return _schedule(row) if row else None

    def next_number(self, server: str) -> int:
        row = self.db.one(NEXT_NUMBER, server)
        return int(row[0]) if row else 1

    def insert_schedule(self, schedule: Schedule) -> None:
        one = schedule
        where = (one.server, one.number, one.channel, one.cron, one.prompt, one.mode, dump_actor(one.by), one.created)
        self.db.change(INSERT, *where, one.due, one.claimed, one.message, one.paused, one.last_run)

    def remove_schedule(self, server: str, number: int, at: float) -> bool:
        return self.db.change(REMOVE, at, server, number) == 1

    def due_schedules(self, now: float) -> Sequence[Schedule]:
        return [_schedule(row) for row in (*self.db.all(CLAIMED), *self.db.all(DUE, now))]

    def next_due(self) -> float | None:
        row = self.db.one(NEXT_DUE)
        return None if row is None or row[0] is None else float(row[0])

    def claim_schedule(self, schedule: Schedule, claimed: float | None, due: float) -> bool:
        return self.db.change(CLAIM, claimed, due, schedule.server, schedule.number, schedule.due) == 1

    def note_beginning(self, schedule: Schedule, message: str, turn: str) -> None:
        self.db.change(NOTE_MESSAGE, message, schedule.server, schedule.number)
        self.db.change(NOTE_TURN, turn, schedule.number, schedule.mode)

    def end_claim(self, schedule: Schedule, last_run: float | None) -> None:
        self.db.change(END_CLAIM, last_run, schedule.server, schedule.number)

    def skip_schedules(self, now: float) -> None:
        self.db.change(SKIP_CLAIMED, now)
        self.db.change(SKIP_DUE, now, now)

    def pause_schedule(self, schedule: Schedule, why: str) -> None:
        self.db.change(PAUSE, why, schedule.server, schedule.number)


def _schedule(row: Row) -> Schedule:
    server, number, channel, cron, prompt, mode, by, created, due, claimed, message, paused, last_run = row
    return Schedule(
        server, number, channel, cron, prompt, mode, load_actor(by), created, due, claimed, message, paused, last_run
    )
