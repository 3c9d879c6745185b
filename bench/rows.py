"""Notes what Signoff writes and draws in one round, for `owed.py`: the statements of each job, and the cards.

`note_round` lets the bot do two rounds in a process in which each statement and each drawing is noted, and keeps the
second one, beside the database as it was after that.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import runpy
import signal
import sqlite3
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from signoff.approvals.model import Batch
from signoff.store.audit_rows import APPEND
from signoff.store.database import Database, Value

KINDS = (
    "mention",
    "response",
    "asked",
    "posted",
    "decided",
    "started",
    "ended",
    "reply",
    "replied",
    "looked",
    "shown",
)
"""The jobs of a round, in their order. All but `looked` change something."""
LATE = 1.7
"""Seconds after a reply in which the card is edited for the last time."""
SOON = 0.3
"""Seconds in which the notes are written."""
NOTES, ROWS = "round.pickle", "rows.db"

Statement = tuple[str, Sequence[tuple[Value, ...]]]
"""A statement, and its parameters once for each time that it is run."""


@dataclass(frozen=True)
class NotedRound:
    jobs: Sequence[Sequence[Statement]]
    """In the order of `KINDS`."""
    cards: Sequence[tuple[Batch, float]]
    """What the card shows while it is open, when it is decided and when its call has ended; and the time."""

    def again(self, number: int) -> dict[str, Sequence[Statement]]:
        """Return kind -> the statements of another round like this one, with ids of its own."""
        batch = self.cards[-1][0]
        ids = {name: f"{int(name) + number}" for name in (batch.place.channel, str(batch.card_message))}
        ids |= {name: f"{int(name, 16) + number:016x}" for name in (batch.id, batch.requests[0].id)}
        rows = number * sum(sql == APPEND for job in self.jobs for sql, _ in job)

        def renamed(value: Value) -> Value:
            for old, new in ids.items():
                if isinstance(value, str):
                    value = value.replace(old, new)
                elif isinstance(value, bytes):
                    value = value.replace(old.encode(), new.encode())
            return value

        def other(sql: str, params: tuple[Value, ...]) -> tuple[Value, ...]:
            first, *rest = map(renamed, params) if params else (None,)
            if sql == APPEND and isinstance(first, int):
                first += rows  # the number of the row in the record
            return (first, *rest) if params else ()

        jobs = [[(sql, [other(sql, params) for params in each]) for sql, each in job] for job in self.jobs]
        return dict(zip(KINDS, jobs, strict=True))

    def values(self, kind: str) -> Sequence[str | bytes]:
        """Return the texts that a job of this kind has among its parameters."""
        params = [params for _, each in self.jobs[KINDS.index(kind)] for params in each]
        return [value for values in params for value in values if isinstance(value, str | bytes)]


@contextmanager
def statements(note: Callable[[Statement], None]) -> Generator[None]:
    """Note the statements that jobs run meanwhile."""
    change_many = Database.change_many

    def plain(params: Iterable[Value]) -> tuple[Value, ...]:
        return tuple(str(value) if isinstance(value, str) else value for value in params)  # our enums are texts too

    def noting(run: Callable[..., Any]) -> Callable[..., Any]:
        def keep(db: Database, sql: str, *params: Value) -> Any:
            note((sql, [plain(params)]))
            return run(db, sql, *params)

        return keep

    def keep_many(db: Database, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        rows = [*rows]
        note((sql, [*map(plain, rows)]))
        change_many(db, sql, rows)

    with (
        patch.object(Database, "all", noting(Database.all)),
        patch.object(Database, "change", noting(Database.change)),
        patch.object(Database, "change_many", keep_many),
    ):
        yield


async def note_round(folder: Path) -> Path:
    """Let Signoff do a round, and return the folder with the notes and the database."""
    from bench.stage import stage

    async with stage("noted", (sys.executable, str(Path(__file__))), folder / "noted") as bot:
        await bot.start(BENCH_NOTES=str(folder / NOTES))
        await asyncio.sleep(2)
        for _ in range(2):
            await bot.round()
            await asyncio.sleep(LATE)
            assert bot.process
            bot.process.send_signal(signal.SIGUSR1)
            await asyncio.sleep(SOON)
        files = [folder / "noted" / "data" / "signoff.db", folder / ROWS]
        with closing(sqlite3.connect(files[0])) as source, closing(sqlite3.connect(files[1])) as target:
            source.backup(target)
    return folder


def read_round(folder: Path) -> NotedRound:
    noted = NotedRound(*pickle.loads((folder / NOTES).read_bytes()))
    if len(noted.jobs) != len(KINDS) or len(noted.cards) != 3:
        raise SystemExit(f"A round has {len(noted.jobs)} jobs and {len(noted.cards)} cards: change `KINDS`.")
    return noted


def run_the_bot() -> None:
    """Run `signoff discord` in this process. SIGUSR1 writes the notes into the file that BENCH_NOTES names."""
    from signoff.bot import card_view, front_end, responses

    jobs: list[list[Statement]] = []
    cards: list[tuple[Batch, float]] = []
    begin, draw = Database.begin, card_view.render_off_loop

    def keep_begin(db: Database) -> None:
        jobs.append([])
        begin(db)

    async def keep_card(batch: Batch, now: float, **options: Any) -> Any:
        cards.append((batch, now))
        return await draw(batch, now, **options)

    def write(*_: object) -> None:
        noted = [job for job in jobs if job], cards
        Path(os.environ["BENCH_NOTES"]).write_bytes(pickle.dumps(noted))
        jobs.clear()
        cards.clear()

    signal.signal(signal.SIGUSR1, write)
    sys.argv = ["main.py", "discord"]
    with (
        statements(lambda statement: jobs[-1].append(statement) if jobs else None),
        patch.object(Database, "begin", keep_begin),
        patch.object(front_end, "render_off_loop", keep_card),
        patch.object(responses, "render_off_loop", keep_card),
    ):
        runpy.run_path(str(Path(__file__).parent.parent / "main.py"), run_name="__main__")


if __name__ == "__main__":
    run_the_bot()
