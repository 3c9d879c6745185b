"""Measures durable decisions: many at once, per second, with a long record, and what the rest costs while many wait.

Both sides of each comparison alternate in one run, so that other load on the machine affects both. A decision is
`Desk.decide` on a real database file, and counts once it is durable.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
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
AT_ONCE = 30
"""How many times as long as one decision 200 at once may take."""
REST = 0.1
"""Seconds in which nothing happens, as before most clicks of people. The anchor of the record is written by then."""


class StandingClock:
    def now(self) -> float:
        return NOW


@dataclass
class Office:
    """A store with its desk, and the batches that wait in it."""

    store: Store
    path: Path
    desk: Desk = field(init=False)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.desk = Desk(self.store, StandingClock())

    async def ask(self, many: int) -> list[Click]:
        """Let so many turns wait for a decision each, and return the clicks that decide them."""
        self.desk.unattended = asyncio.Queue()  # as if the driver had taken what was decided before
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


@asynccontextmanager
async def office_in(path: Path) -> AsyncGenerator[Office]:
    async with await Store.open(f"sqlite:///{path}") as store:
        yield Office(store, path)


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


def open_rows(path: Path) -> sqlite3.Connection:
    """Open a new database for bare commits whose log does not grow any more."""
    connection = open_bare(path)
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    commit_bare(connection, 2_000)
    return connection


def open_bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


async def run_bare(office: Office, many: int, copy: Path) -> float:
    """Decide so many at once, and run the statements of that again, by nothing of ours, in as many transactions.

    They run on a copy of the database as it was before. A program that decides by them takes at least so long.
    """
    clicks = await office.ask(many)
    with closing(sqlite3.connect(office.path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    kept: list[Statement] = []
    before = office.store.commits
    with statements(kept.append):
        await office.decide_at_once(clicks)
    commits = office.store.commits - before
    with closing(open_bare(copy)) as connection:
        began = time.perf_counter()
        for part in range(commits):
            connection.execute("BEGIN IMMEDIATE")
            for sql, each in kept[len(kept) * part // commits : len(kept) * (part + 1) // commits]:
                for params in each:
                    connection.execute(sql, params).fetchall()
            connection.execute("COMMIT")
        return time.perf_counter() - began


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
        "the bare statements of 200, in as many commits": [],
        "200 jobs at once that do nothing": [],
        "200 decisions at once": [],
    }
    one, bare, idle, many = found.values()
    async with office_in(folder / "once.db") as office:
        await office.decide(await office.ask(100))  # from here on the log of the database does not grow
        for number in range(runs):
            one += await office.decide(await office.ask(20))
            many.append(await office.decide_at_once(await office.ask(200)))
            bare.append(await run_bare(office, 200, folder / f"once-{number}.db"))
            idle.append(await timed(asyncio.gather(*(office.store.run(lambda tx: None) for _ in range(200)))))
    return found


async def per_second(folder: Path, runs: int) -> Found:
    found: Found = {
        "1,000 bare commits": [],
        "the bare statements of 1,000 decisions, in as many commits": [],
        "1,000 decisions in flight": [],
    }
    commits, bare, flight = found.values()
    async with office_in(folder / "flight.db") as office:
        with closing(open_rows(folder / "bare.db")) as connection:
            await office.decide_at_once(await office.ask(1_000))  # from here on, neither log grows
            for number in range(runs):
                commits.append(commit_bare(connection, 1_000))
                flight.append(await office.decide_at_once(await office.ask(1_000)))
                bare.append(await run_bare(office, 1_000, folder / f"flight-{number}.db"))
    return found


async def after_a_rest(folder: Path, runs: int) -> Found:
    """Measure the processor time of a decision. After a rest, the processor's caches hold nothing of the bot."""
    found: Found = {
        "processor time of one decision, right after another": [],
        f"the same after {1000 * REST:g} ms of rest": [],
    }
    async with office_in(folder / "rest.db") as office:
        await office.decide(await office.ask(100))
        for _ in range(runs):
            for seconds, taken in zip((0, REST), found.values(), strict=True):
                for click in await office.ask(12):
                    await asyncio.sleep(seconds)
                    began = time.process_time()
                    await office.desk.decide(click)
                    taken.append(time.process_time() - began)
    return found


async def first_after_a_rest(folder: Path, runs: int) -> Found:
    """Measure what a click waits for at the least: a trip to the store's thread, and a commit on its disk."""
    found: Found = {
        f"an empty job, after {1000 * REST:g} ms of rest": [],
        "a bare commit, after the same rest": [],
    }
    job, commit = found.values()
    async with office_in(folder / "first.db") as office:
        with closing(open_rows(folder / "first-bare.db")) as connection:
            for _ in range(runs * 12):
                await asyncio.sleep(REST)
                job.append(await timed(office.store.run(lambda tx: None)))
                await asyncio.sleep(REST)
                commit.append(commit_bare(connection, 1))
    return found


async def long_record(folder: Path, runs: int, rows: int) -> Found:
    found: Found = {}
    async with AsyncExitStack() as stack:
        offices: dict[str, Office] = {}
        for many in (1_000, rows):
            office = await stack.enter_async_context(office_in(folder / f"record-{many}.db"))
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
            offices[many] = await stack.enter_async_context(office_in(folder / f"waiting-{many}.db"))
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


def share_of_each(once: Found) -> str:
    """Say how much of the bar is left for what a decision does besides its statements, and how much that takes."""
    one, bare, idle, many = (1000 * statistics.median(taken) for taken in once.values())
    left, taken = ((whole - bare - idle) / 200 for whole in (AT_ONCE * one, many))
    return (
        f"200 decisions at once: {AT_ONCE} times one decision is {AT_ONCE * one:.1f} ms. Their bare statements and 200 "
        f"empty jobs take {bare + idle:.1f} ms. That leaves {left:.3f} ms per decision for everything else, which "
        f"takes {taken:.3f} ms."
    )


async def main(runs: int, rows: int) -> None:
    print("| | median ms | least | most | ratio | bar |\n|---|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gc.freeze()  # as the bot does, once it is online
        once = await at_once(folder, runs)
        show(once, f"{AT_ONCE} or less", lambda ratio: ratio <= AT_ONCE)
        show(await per_second(folder, runs), "0.5 or more", lambda ratio: ratio >= 0.5, inverse=True)
        show(await after_a_rest(folder, runs))
        show(await first_after_a_rest(folder, runs))
        sweeps, starts = await while_many_wait(folder, runs)
        show(sweeps)
        show(starts)
        show(await long_record(folder, runs, rows), "1.2 or less", lambda ratio: ratio <= 1.2)
    print(f"\n- {share_of_each(once)}\n", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the long record")
    given = parser.parse_args()
    asyncio.run(main(given.runs, given.rows))
