"""`ApprovalStore`: runs that wait for a decision, in a SQLite file that several processes share.

A run is its messages up to the open calls, the requests about those calls, and the state of every call since the run
was first stored. A decision is a compare-and-set in SQL: a request settles once. Each operation opens the file anew, so
a store needs no closing and may be used from any thread. Knows no agent.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic_ai.messages import ModelMessage

from signoff.approvals.model import ApprovalRequest, CallKey, Choice, RequestState, Settlement
from signoff.gate.inline import Round
from signoff.library.claim import path_of
from signoff.library.stored_rows import (
    SCHEMA,
    VERSION,
    AlreadyDecided,
    StoreBroken,
    StoredRequest,
    StoredRun,
    dumped,
    readable,
    record_of,
    requests_json,
    run_of,
    stored_of,
)
from signoff.turns.model import CallRecord

BUSY_SECONDS = 30.0


class ApprovalStore:
    """Waiting runs in a file. Processes on one machine may share it; it is created if it does not exist."""

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(path).absolute()
        self.clock = clock
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Conversations may hold secrets, so nobody else may read them.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        with self._transaction() as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, VERSION):
                raise StoreBroken(f"{self.path} was written by another version of Signoff ({version}). Use that one.")
            for statement in (*SCHEMA, f"PRAGMA user_version = {VERSION}") if version == 0 else ():
                db.execute(statement)

    # For pages and jobs

    def waiting(self) -> tuple[StoredRequest, ...]:
        """Return the requests that wait for a person, oldest first. Expired ones are left out: see `ready`."""
        with self._connected() as db:
            rows = db.execute(
                "SELECT * FROM requests WHERE state = 'pending' AND (deadline IS NULL OR deadline > ?) ORDER BY number",
                (self.clock(),),
            ).fetchall()
        found = [stored for stored in map(readable, rows) if stored]
        return tuple(stored for stored in found if not stored.request.held)

    def ready(self) -> tuple[str, ...]:
        """Return one request id for each run that can go on without a person: `resume(agent, id)` lets it.

        Such a run was interrupted after its last decision, or its requests have expired. A run that another process
        works on at this moment is among them, too.
        """
        with self._connected() as db:
            return tuple(
                row["id"]
                for row in db.execute(
                    "SELECT max(requests.id) AS id FROM runs JOIN requests ON requests.run = runs.id "
                    "WHERE runs.state = 'going' OR (runs.state = 'waiting' AND runs.deadline <= ?) GROUP BY runs.id",
                    (self.clock(),),
                )
            )

    def get(self, request_id: str) -> StoredRequest:
        """Return a request, decided or not. Raises LookupError if there is none with this id."""
        with self._connected() as db:
            return stored_of(_row(db, request_id))

    def prune(self, seconds: float) -> int:
        """Delete runs that ended, or that never asked, and have not changed for so long. Return their number."""
        with self._transaction() as db:
            old = [
                row["id"]
                for row in db.execute(
                    "SELECT id FROM runs WHERE changed < ? "
                    "AND (state = 'ended' OR id NOT IN (SELECT run FROM requests))",
                    (self.clock() - seconds,),
                )
            ]
            db.executemany("DELETE FROM runs WHERE id = ?", [(run,) for run in old])
        for run in old:
            path_of(self.path, run).unlink(missing_ok=True)
        return len(old)

    # For the gate and for `resume`

    def save(self, run: str, messages: Sequence[ModelMessage], position: int, rounds: Iterable[Round]) -> None:
        """Store the run before the calls of its newest response run."""
        body = dumped(messages)
        with self._transaction() as db:
            db.execute(
                "INSERT INTO runs VALUES (?, 'going', ?, ?, ?, NULL, ?) ON CONFLICT (id) DO UPDATE "
                "SET messages = excluded.messages, position = excluded.position, rounds = excluded.rounds, "
                "changed = excluded.changed",
                (run, body, position, json.dumps(sorted(rounds)), self.clock()),
            )

    def wait(
        self, run: str, requests: Sequence[ApprovalRequest], rounds: Iterable[Round], seconds: float | None
    ) -> None:
        """Let a run wait for people, from now on."""
        now = self.clock()
        deadline = None if seconds is None else now + seconds
        with self._transaction() as db:
            done = db.execute(
                "UPDATE runs SET state = 'waiting', rounds = ?, deadline = ?, changed = ? "
                "WHERE id = ? AND state = 'going'",
                (json.dumps(sorted(rounds)), deadline, now, run),
            )
            if done.rowcount != 1:
                raise StoreBroken("The run was changed by another process while it asked. Nothing further was run.")
            for request in requests:
                key, state = request.call.key, request.state.value
                body = requests_json.dump_json(request)
                db.execute(
                    "INSERT INTO requests (id, run, position, call_id, state, body, asked, deadline) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (request.id, run, key.position, key.call_id, state, body, now, deadline),
                )

    def decide(self, settled: ApprovalRequest, run: str) -> None:
        """Write a decision. Raises AlreadyDecided if the request is no longer pending, or expired just now."""
        with self._transaction() as db:
            expired = self._expire(db, run)
            if not expired and _put(db, settled):
                self._go_if_decided(db, run)
                return
            now_stored = stored_of(_row(db, settled.id)).request
        raise AlreadyDecided(now_stored)

    def expire(self, run: str) -> list[ApprovalRequest]:
        """Reject what is still open in this run if its deadline has passed, and return it."""
        with self._transaction() as db:
            return self._expire(db, run)

    def load(self, run: str) -> StoredRun:
        with self._connected() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None:
            raise LookupError(f"There is no run {run} in {self.path}.")
        return run_of(row)

    def open_requests(self, run: str) -> tuple[StoredRequest, ...]:
        """Return the questions of the run that are not decided."""
        with self._connected() as db:
            stored = [stored_of(row) for row in _pending(db, run)]
        return tuple(one for one in stored if not one.request.held)

    def end(self, run: str) -> None:
        """Forget the conversation of a run. Its decisions stay, so that a late one is told how it ended."""
        with self._transaction() as db:
            db.execute("DELETE FROM runs WHERE id = ? AND id NOT IN (SELECT run FROM requests)", (run,))
            db.execute(
                "UPDATE runs SET state = 'ended', messages = NULL, changed = ? WHERE id = ?", (self.clock(), run)
            )

    def withdraw(self, run: str) -> None:
        """Remove the open requests of a run that failed before anybody could be told about them."""
        with self._transaction() as db:
            db.execute("DELETE FROM requests WHERE run = ? AND state = 'pending'", (run,))
            db.execute("UPDATE runs SET state = 'going', deadline = NULL WHERE id = ? AND state = 'waiting'", (run,))

    @contextmanager
    def call(self, key: CallKey) -> Generator[tuple[CallRecord | None, ApprovalRequest | None, PutCall]]:
        """In one transaction, give what is known about a call: its record, the newest request, and a way to write."""
        with self._transaction() as db:
            where = (key.conversation, key.position, key.call_id)
            row = db.execute("SELECT * FROM calls WHERE run = ? AND position = ? AND call_id = ?", where).fetchone()
            asked = db.execute(
                "SELECT * FROM requests WHERE run = ? AND position = ? AND call_id = ? ORDER BY number DESC LIMIT 1",
                where,
            ).fetchone()

            def put(record: CallRecord | None) -> None:
                db.execute("DELETE FROM calls WHERE run = ? AND position = ? AND call_id = ?", where)
                if record:
                    rest = (record.tool, record.digest, record.state.value, record.result, record.request)
                    db.execute("INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*where, *rest, record.started))

            yield row and record_of(key, row), asked and stored_of(asked).request, put

    def _expire(self, db: sqlite3.Connection, run: str) -> list[ApprovalRequest]:
        now = self.clock()
        row = db.execute("SELECT deadline FROM runs WHERE id = ? AND state = 'waiting'", (run,)).fetchone()
        if row is None or row["deadline"] is None or row["deadline"] > now:
            return []
        end = Settlement(None, None, now)
        expired = [
            replace(stored_of(row).request, state=RequestState.EXPIRED, settlement=end) for row in _pending(db, run)
        ]
        for request in expired:
            _put(db, request)
        self._go_if_decided(db, run)
        return [request for request in expired if not request.held]

    def _go_if_decided(self, db: sqlite3.Connection, run: str) -> None:
        """Once every question is decided, settle the held calls as the questions went, and let the run go on."""
        left = [stored_of(row).request for row in _pending(db, run)]
        if any(not request.held for request in left):
            return
        now = self.clock()
        for request in left:
            rows = db.execute(
                "SELECT * FROM requests WHERE run = ? AND position = ?", (run, request.call.key.position)
            ).fetchall()
            siblings = [stored_of(row).request for row in rows]
            # An answer approves nothing.
            accepted = any(one.state is RequestState.APPROVED and not one.held and not one.inquiry for one in siblings)
            choice = Choice.ACCEPT if accepted else Choice.REJECT
            _put(db, replace(request, state=choice.state, settlement=Settlement(choice, None, now)))
        db.execute("UPDATE runs SET state = 'going', deadline = NULL, changed = ? WHERE id = ?", (now, run))

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with self._connected() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)) as db:
                db.row_factory = sqlite3.Row
                db.execute("PRAGMA foreign_keys = ON")
                yield db
        except sqlite3.Error as error:
            raise StoreBroken(f"{self.path} could not be read or written: {error}.") from error


PutCall = Callable[[CallRecord | None], None]
"""Writes the record of a call; None removes it."""


def _pending(db: sqlite3.Connection, run: str) -> list[sqlite3.Row]:
    return db.execute("SELECT * FROM requests WHERE run = ? AND state = 'pending' ORDER BY number", (run,)).fetchall()


def _put(db: sqlite3.Connection, settled: ApprovalRequest) -> bool:
    """Settle a pending request. Return whether it was pending."""
    body = requests_json.dump_json(settled)
    changed = db.execute(
        "UPDATE requests SET state = ?, body = ? WHERE id = ? AND state = 'pending'",
        (settled.state.value, body, settled.id),
    )
    return changed.rowcount == 1


def _row(db: sqlite3.Connection, request_id: str) -> sqlite3.Row:
    row = db.execute("SELECT * FROM requests WHERE id = ?", (request_id,)).fetchone()
    if row is None:
        raise LookupError(f"There is no request {request_id}.")
    return row
