"""Measures durable decisions: many at once, per second, with a long record, and what the rest costs while many wait.

Both sides of each comparison alternate in one run, so that other load on the machine affects both. A decision is
`Desk.decide` on a real database file, and counts once it is durable.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bench.rows import Statement, statements
from signoff.approvals.audit import chain, text_digest
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.model import Actor, ApprovalRequest, Batch, CallKey, Choice, Place, ToolCall
from signoff.store import Store
from signoff.store.audit_rows import APPEND, KEEP_TEXT, newest
from signoff.store.store import Tx
from signoff.turns.model import Turn, TurnState
from signoff.turns.queue import QueueLimits

NOW = 1_000.0
FOREVER = 1e9
ADA = Actor("u1", "Ada", "s1")
BOB = Actor("u2", "Bob", "s1", roles=frozenset({"7"}))
WAITING = (0, 200, 2_000, 10_000)
CHUNK = 50_000


class StandingClock:
    def now(self) -> float:
        return NOW


@dataclass
class Office:
    """A store with its desk, and the batches that wait in it."""

    store: Store
    desk: Desk = field(init=False)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.desk = Desk(self.store, StandingClock())

    async def ask(self, many: int) -> list[Click]:
        """Let so many turns wait for a decision each, and return the clicks that decide them."""
        numbers = [next(self._numbers) for _ in range(many)]

        def work(tx: Tx) -> None:
            for n in numbers:
                place = Place("s1", f"c{n}", f"c{n}")
                call = ToolCall(CallKey(f"c{n}", 1, "call_0"), "delete_file", {"path": f"notes-{n}.txt"}, "schema", "d")
                tx.insert_turn(Turn(f"t{n}", place, f"m{n}", ADA, "please", NOW, TurnState.WAITING, batch=f"b{n}"))
                request = ApprovalRequest(f"q{n}", call, "it deletes", ("role:7",))
                tx.insert_batch(Batch(f"b{n}", f"t{n}", place, ADA, (request,), NOW, FOREVER, card_message=f"k{n}"))

        await self.store.run(work)
        return [Click(f"q{n}", Choice.ACCEPT, BOB, f"c{n}", f"k{n}") for n in numbers]

    async def decide(self, clicks: Sequence[Click]) -> list[float]:
        """Decide one after the other, and return what each took."""
        return [await timed(self.desk.decide(click)) for click in clicks]

    async def decide_at_once(self, clicks: Sequence[Click]) -> float:
        return await timed(asyncio.gather(*map(self.desk.decide, clicks)))

    async def sweep(self) -> None:
        """Do what the driver's sweeper does when nothing is due."""
        await self.desk.expire_due()
        await self.desk.take_reminders()
        await self.desk.escalate_due()
        await self.store.run(lambda tx: (tx.resumable(), tx.turns_in(TurnState.RUNNING)))
        await self.store.run(lambda tx: QueueLimits().claim(tx, {}))
        await self.store.run(lambda tx: tx.next_deadline())

    async def start(self) -> None:
        """Read what the driver and the desk read when the bot starts."""

        def work(tx: Tx) -> None:
            tx.pauses()
            tx.turns_in(TurnState.RUNNING)
            tx.resumable()
            tx.unfinished_cards()
            tx.unposted_replies()
            tx.left_statuses()
            tx.untold()
            tx.outlived_notices()
            tx.inquiring()

        await self.store.run(work)
        await self.desk.recheck_approvers()


async def timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def commit_bare(connection: sqlite3.Connection, many: int) -> float:
    """Commit one small row after the other, with the store's durability and nothing else of it."""
    began = time.perf_counter()
    for n in range(many):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (text) VALUES (?)", (f"row {n}",))
        connection.execute("COMMIT")
    return time.perf_counter() - began


def open_bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def run_bare(path: Path, kept: Sequence[Statement]) -> float:
    """Run statements again, on a copy of the database as it was before them, in one transaction and by nothing of ours.

    A program that decides by these statements takes at least so long.
    """
    connection = open_bare(path)
    began = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    for sql, each in kept:
        for params in each:
            connection.execute(sql, params).fetchall()
    connection.execute("COMMIT")
    taken = time.perf_counter() - began
    connection.close()
    return taken


def extend_record(tx: Tx, rows: int) -> None:
    """Add rows as `Tx.audit` does, chained to each other, with statements for many rows at once."""
    head = newest(tx.db)
    seq, before = head.seq, head.hash
    while rows > 0:
        some: list[tuple[str | int | float, ...]] = []
        texts: list[tuple[str, str, float]] = []
        for _ in range(min(rows, CHUNK)):
            seq += 1
            text = f'{{"path":"notes-{seq}.txt"}}'
            texts.append((text_digest(text), text, NOW))
            names = ("approved", f"s{seq % 4}", f"r{seq}", f"u{seq % 49}", "delete_file")
            columns = (seq, NOW, *names, f'{{"batch":"b{seq}","note":""}}', texts[-1][0])
            before = chain(before, columns)
            some.append((*columns, before))
        tx.db.change_many(APPEND, some)
        tx.db.change_many(KEEP_TEXT, sorted(texts))
        rows -= CHUNK


# The comparisons. Each returns name -> seconds of each run, the one to compare with first.

Found = dict[str, list[float]]


async def at_once(folder: Path, runs: int) -> Found:
    found: Found = {
        "one decision": [],
        "the bare statements of 200, in one transaction": [],
        "200 jobs at once that do nothing": [],
        "200 decisions at once": [],
    }
    one, bare, idle, many = found.values()
    async with await Store.open(f"sqlite:///{folder}/once.db") as store:
        office = Office(store)
        await office.decide(await office.ask(100))  # from here on the log of the database does not grow
        for number in range(runs):
            one += await office.decide(await office.ask(20))
            many.append(await office.decide_at_once(await office.ask(200)))
            clicks, copy = await office.ask(200), folder / f"once-{number}.db"
            with closing(sqlite3.connect(folder / "once.db")) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
            kept: list[Statement] = []
            with statements(kept.append):
                await office.decide_at_once(clicks)
            bare.append(run_bare(copy, kept))
            idle.append(await timed(asyncio.gather(*(store.run(lambda tx: None) for _ in clicks))))
    return found


async def per_second(folder: Path, runs: int) -> Found:
    found: Found = {"1,000 bare commits": [], "1,000 decisions in flight": []}
    bare = open_bare(folder / "bare.db")
    bare.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    async with await Store.open(f"sqlite:///{folder}/flight.db") as store:
        office = Office(store)
        for _ in range(runs):
            found["1,000 bare commits"].append(commit_bare(bare, 1_000))
            found["1,000 decisions in flight"].append(await office.decide_at_once(await office.ask(1_000)))
    bare.close()
    return found


async def long_record(folder: Path, runs: int, rows: int) -> Found:
    found: Found = {}
    async with AsyncExitStack() as stack:
        offices: dict[str, Office] = {}
        for many in (1_000, rows):
            office = Office(await stack.enter_async_context(await Store.open(f"sqlite:///{folder}/record-{many}.db")))
            await office.store.run(lambda tx, many=many: extend_record(tx, many))
            await office.decide(await office.ask(100))
            offices[f"one decision, {many:,} rows of the record"] = office
        for _ in range(runs):
            for name, office in offices.items():
                found.setdefault(name, []).extend(await office.decide(await office.ask(50)))
    return found


async def while_many_wait(folder: Path, runs: int) -> tuple[Found, Found]:
    sweeps: Found = {}
    starts: Found = {}
    async with AsyncExitStack() as stack:
        offices: dict[int, Office] = {}
        for many in WAITING:
            url = f"sqlite:///{folder}/waiting-{many}.db"
            offices[many] = Office(await stack.enter_async_context(await Store.open(url)))
            await offices[many].ask(many)
        for _ in range(runs * 20):
            for many, office in offices.items():
                sweeps.setdefault(f"a sweep, once in 30 s, {many:,} waiting", []).append(await timed(office.sweep()))
        for _ in range(runs):
            for many in (WAITING[0], WAITING[-1]):
                starts.setdefault(f"start-up, {many:,} waiting", []).append(await timed(offices[many].start()))
    return sweeps, starts


def show(found: Found, bar: str = "", met: Callable[[float], bool] | None = None, *, inverse: bool = False) -> None:
    first: float | None = None
    for number, (name, taken) in enumerate(found.items()):
        middle = statistics.median(taken)
        first = first or middle
        ratio = first / middle if inverse else middle / first
        verdict = f"{bar}: {'met' if met(ratio) else 'NOT MET'}" if met and number == len(found) - 1 else ""
        low, middle, high = (f"{1000 * value:.3f}" for value in (min(taken), middle, max(taken)))
        print(f"| {name} | {middle} | {low} | {high} | {ratio:.2f} | {verdict} |", flush=True)


async def main(runs: int, rows: int) -> None:
    print("| | median ms | least | most | ratio | bar |\n|---|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        show(await at_once(folder, runs), "30 or less", lambda ratio: ratio <= 30)
        show(await per_second(folder, runs), "0.5 or more", lambda ratio: ratio >= 0.5, inverse=True)
        sweeps, starts = await while_many_wait(folder, runs)
        show(sweeps)
        show(starts)
        show(await long_record(folder, runs, rows), "1.2 or less", lambda ratio: ratio <= 1.2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the long record")
    given = parser.parse_args()
    asyncio.run(main(given.runs, given.rows))
