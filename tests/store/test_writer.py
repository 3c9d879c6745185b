from __future__ import annotations

import asyncio
import sys
import threading
import time
from pathlib import Path

import pytest

from signoff.approvals.errors import UnknownRequest
from signoff.errors import StoreError
from signoff.store import Store
from signoff.store.audit_file import open_audit_file
from signoff.store.database import Database
from signoff.store.migrate import migrate, shipped
from signoff.store.sqlite import open_sqlite
from signoff.store.store import Tx
from signoff.store.writer import SWITCH_INTERVAL, Writer
from signoff.turns.model import TurnState
from tests.rigs.store_samples import a_batch, a_request, a_turn, settled


class Gate:
    """Keeps the writer thread inside a job, so that jobs queued meanwhile go into the same transaction."""

    def __init__(self, store: Store) -> None:
        self._open = threading.Event()
        entered = threading.Event()

        def hold(tx: Tx) -> None:
            entered.set()
            assert self._open.wait(10)

        self.task = asyncio.ensure_future(store.run(hold))
        self._entered = entered

    async def __aenter__(self) -> Gate:
        await asyncio.to_thread(self._entered.wait, 10)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        self._open.set()


class SlowChore:
    """A chore that is not due before the store is closed."""

    after = 60.0

    def __init__(self) -> None:
        self.runs = 0

    def follow(self, db: Database) -> None:
        self.runs += 1


async def open_with(database: Path, *, size: int, seconds: float = 60.0) -> Store:
    def opener() -> Database:
        db = open_sqlite(database)
        migrate(db, shipped("sqlite"), place="here")
        return db

    return Store(await Writer.start(opener, size=size, seconds=seconds))


def orphan(tx: Tx) -> None:
    """Run statements that all succeed, and make SQLite refuse the commit."""
    tx.db.change("PRAGMA defer_foreign_keys = ON")
    tx.insert_batch(a_batch("doomed"))
    tx.db.change("DELETE FROM batches WHERE id = ?", "doomed")


async def test_two_hundred_at_once_share_few_commits(store: Store) -> None:
    before = store.commits
    began = time.perf_counter()
    results = await asyncio.gather(*(store.run(lambda tx, n=n: tx.insert_turn(a_turn(f"t{n}"))) for n in range(200)))
    took = time.perf_counter() - began
    commits = store.commits - before
    print(f"200 durable writes: {took * 1000:.1f} ms in {commits} commits")
    assert all(results)
    assert commits <= 40
    assert took < 5
    assert len(await store.run(lambda tx: tx.turns_in(TurnState.QUEUED))) == 200


async def test_what_waits_while_the_thread_is_busy_is_one_commit(database: Path) -> None:
    store = await open_with(database, size=1000)
    async with Gate(store) as gate:
        rest = [asyncio.ensure_future(store.run(lambda tx, n=n: tx.insert_turn(a_turn(f"t{n}")))) for n in range(50)]
    await asyncio.gather(gate.task, *rest)
    assert store.commits == 1
    await store.close()


async def test_a_computing_event_loop_lets_the_thread_run_soon(url: str) -> None:
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.005)
        async with await Store.open(url):
            assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL, rel=0.1)
        sys.setswitchinterval(SWITCH_INTERVAL / 5)
        shorter = sys.getswitchinterval()
        async with await Store.open(url):
            assert sys.getswitchinterval() == shorter, "an even shorter one is left alone"
    finally:
        sys.setswitchinterval(before)


async def test_groups_are_bounded(database: Path) -> None:
    store = await open_with(database, size=10)
    async with Gate(store) as gate:
        rest = [asyncio.ensure_future(store.run(lambda tx, n=n: tx.insert_turn(a_turn(f"t{n}")))) for n in range(99)]
    await asyncio.gather(gate.task, *rest)
    assert store.commits == 10
    await store.close()


async def test_an_old_group_takes_no_more(database: Path) -> None:
    store = await open_with(database, size=1000, seconds=0.0)
    async with Gate(store) as gate:
        rest = [asyncio.ensure_future(store.run(lambda tx, n=n: tx.insert_turn(a_turn(f"t{n}")))) for n in range(5)]
    await asyncio.gather(gate.task, *rest)
    assert store.commits == 6
    await store.close()


async def test_a_failing_job_fails_alone(store: Store) -> None:
    def refuse(tx: Tx) -> None:
        tx.insert_turn(a_turn("refused"))
        raise UnknownRequest("not yours")

    def break_sql(tx: Tx) -> None:
        tx.insert_turn(a_turn("broken"))
        tx.db.change("INSERT INTO nowhere VALUES (1)")

    async with Gate(store) as gate:
        jobs = [
            asyncio.ensure_future(store.run(work))
            for work in (
                lambda tx: tx.insert_turn(a_turn("one")),
                refuse,
                lambda tx: tx.insert_turn(a_turn("two")),
                break_sql,
                lambda tx: tx.insert_turn(a_turn("three")),
            )
        ]
    one, refused, two, broken, three = await asyncio.gather(*jobs, return_exceptions=True)
    await gate.task
    assert (one, two, three) == (True, True, True)
    assert isinstance(refused, UnknownRequest)
    assert str(refused) == "not yours"
    assert isinstance(broken, StoreError)
    assert "nothing of this step was kept" in str(broken)
    assert [turn.id for turn in await store.run(lambda tx: tx.turns_in(TurnState.QUEUED))] == ["one", "two", "three"]


async def test_the_first_job_of_a_group_fails_alone_too(database: Path) -> None:
    store = await open_with(database, size=1000)
    entered, leave = threading.Event(), threading.Event()

    def refuse(tx: Tx) -> None:
        tx.insert_turn(a_turn("refused"))
        entered.set()
        assert leave.wait(10)
        raise UnknownRequest("not yours")

    refused = asyncio.ensure_future(store.run(refuse))
    await asyncio.to_thread(entered.wait, 10)
    rest = [asyncio.ensure_future(store.run(lambda tx, n=n: tx.insert_turn(a_turn(n)))) for n in ("one", "two")]
    await asyncio.sleep(0)
    leave.set()
    assert await asyncio.gather(*rest) == [True, True]
    with pytest.raises(UnknownRequest):
        await refused
    assert store.commits == 1
    assert [turn.id for turn in await store.run(lambda tx: tx.turns_in(TurnState.QUEUED))] == ["one", "two"]
    await store.close()


async def test_a_failing_jobs_rows_leave_the_record_whole(store: Store, database: Path) -> None:
    def note(n: int, error: Exception | None = None):
        def work(tx: Tx) -> None:
            tx.audit("asked", "s1", f"q{n}", "u1", {}, 1.0)
            tx.audit("approved", "s1", f"q{n}", "u1", {}, 1.0)
            if error:
                raise error

        return work

    async with Gate(store) as gate:
        works = [note(n, ValueError("no") if n in (0, 2, 3) else None) for n in range(6)]
        jobs = [asyncio.ensure_future(store.run(work)) for work in works]
    results = await asyncio.gather(gate.task, *jobs, return_exceptions=True)
    assert [isinstance(result, ValueError) for result in results[1:]] == [True, False, True, True, False, False]
    rows = await store.run(lambda tx: tx.db.all("SELECT seq, subject FROM audit ORDER BY seq"))
    assert rows == [(1, "q1"), (2, "q1"), (3, "q4"), (4, "q4"), (5, "q5"), (6, "q5")]
    with open_audit_file(database) as file:
        assert file.verify().intact


async def test_work_that_swallows_a_database_error_is_undone_all_the_same(store: Store) -> None:
    def stubborn(tx: Tx) -> str:
        tx.insert_turn(a_turn("before"))
        with pytest.raises(StoreError):
            tx.db.change("INSERT INTO nowhere VALUES (1)")
        with pytest.raises(StoreError):
            tx.insert_turn(a_turn("after"))
        return "done"

    with pytest.raises(StoreError):
        await store.run(stubborn)
    assert await store.run(lambda tx: tx.turns_in(TurnState.QUEUED)) == []


async def test_when_the_commit_fails_everybody_in_it_is_told(database: Path) -> None:
    store = await open_with(database, size=1000)
    batch = a_batch("b1", a_request("q1"))
    await store.run(lambda tx: tx.insert_batch(batch))

    def too_late(tx: Tx) -> None:
        # This reads a neighbour's write that will be rolled back, so its result must not survive the commit.
        assert not tx.settle(settled(batch.requests[0]))
        raise UnknownRequest("already settled")

    async with Gate(store) as gate:
        jobs = [
            asyncio.ensure_future(store.run(work))
            for work in (
                lambda tx: tx.settle(settled(batch.requests[0])),
                too_late,
                orphan,
                lambda tx: tx.insert_turn(a_turn()),
            )
        ]
    results = await asyncio.gather(gate.task, *jobs, return_exceptions=True)
    told = [result for result in results if isinstance(result, StoreError)]
    assert len(told) == 5
    assert len({id(error) for error in told}) == len(told)
    assert await store.run(lambda tx: tx.batch("b1")) == batch
    assert await store.run(lambda tx: tx.turn("t1")) is None
    assert await store.run(lambda tx: tx.insert_turn(a_turn())), "the store goes on"
    await store.close()


async def test_a_cancelled_waiter_breaks_nothing_and_its_work_is_whole(store: Store) -> None:
    def two_rows(n: int):
        def work(tx: Tx) -> None:
            tx.insert_turn(a_turn(f"t{n}"))
            tx.audit("asked", "s1", f"t{n}", "u1", {}, 1.0)

        return work

    async with Gate(store) as gate:
        tasks = [asyncio.ensure_future(store.run(two_rows(n))) for n in range(100)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
    await asyncio.gather(gate.task, *tasks, return_exceptions=True)
    turns = {turn.id for turn in await store.run(lambda tx: tx.turns_in(TurnState.QUEUED))}
    audited = {row[0] for row in await store.run(lambda tx: tx.db.all("SELECT subject FROM audit"))}
    assert turns == audited
    assert {f"t{n}" for n in range(1, 100, 2)} <= turns


async def test_a_caller_whose_loop_is_gone_does_not_stop_the_others(store: Store) -> None:
    def leave_at_once() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(store.run(lambda tx: time.sleep(0.2)))
        loop.run_until_complete(asyncio.sleep(0.05))
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()

    await asyncio.to_thread(leave_at_once)
    await asyncio.sleep(0.3)
    assert await store.run(lambda tx: tx.insert_turn(a_turn()))


async def test_two_loops_can_share_a_store(store: Store) -> None:
    def elsewhere() -> bool:
        return asyncio.run(store.run(lambda tx: tx.insert_turn(a_turn("there"))))

    here, there = await asyncio.gather(
        store.run(lambda tx: tx.insert_turn(a_turn("here"))), asyncio.to_thread(elsewhere)
    )
    assert here
    assert there


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(3), KeyError("x"), asyncio.CancelledError()])
async def test_odd_exceptions_reach_the_caller_and_not_the_thread(store: Store, error: BaseException) -> None:
    def work(tx: Tx) -> None:
        tx.insert_turn(a_turn())
        raise error

    expected = RuntimeError if isinstance(error, StopIteration) else type(error)
    caught: BaseException | None = None
    try:
        await store.run(work)
    except BaseException as raised:
        caught = raised
    assert type(caught) is expected
    assert await store.run(lambda tx: tx.turn("t1")) is None


async def test_close_finishes_what_is_queued_and_takes_nothing_more(url: str) -> None:
    store = await Store.open(url)
    async with Gate(store) as gate:
        tasks = [asyncio.ensure_future(store.run(lambda tx, n=n: tx.insert_turn(a_turn(f"t{n}")))) for n in range(600)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0)
        with pytest.raises(StoreError, match="closed"):
            await store.run(lambda tx: tx.insert_turn(a_turn("late")))
    assert all(await asyncio.gather(*tasks))
    await asyncio.gather(gate.task, closing)
    await store.close()
    async with await Store.open(url) as again:
        assert len(await again.run(lambda tx: tx.turns_in(TurnState.QUEUED))) == 600


async def test_opening_that_is_cancelled_lets_go_of_the_database(url: str) -> None:
    others = set(threading.enumerate())
    for _ in range(20):
        task = asyncio.ensure_future(Store.open(url))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.to_thread(_join_new, others)
    async with await Store.open(url) as store:
        assert await store.run(lambda tx: tx.insert_turn(a_turn()))


def _join_new(others: set[threading.Thread]) -> None:
    for thread in set(threading.enumerate()) - others:
        if thread.name == "signoff-store":
            thread.join(10)


async def test_a_chore_does_not_delay_the_job_after_a_commit(database: Path) -> None:
    chore = SlowChore()
    writer = await Writer.start(lambda: open_sqlite(database), chore=chore)
    for _ in range(3):
        await writer.submit(lambda db: db.one("SELECT 1"))
    assert chore.runs == 0
    await writer.close()
    assert chore.runs == 1
