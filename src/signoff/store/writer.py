"""One thread owns the connection and groups commits: jobs that arrive during a commit share the next one.

A durable commit costs one disk flush, however much is in it. Each job runs inside a savepoint, so a failing job is
undone alone. No job returns before the commit. Knows no table and no statement.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from signoff.errors import StoreError
from signoff.store.database import Database

T = TypeVar("T")

log = logging.getLogger(__name__)

GROUP_SIZE = 256
GROUP_SECONDS = 0.02
"""A group older than this takes no more jobs, so that its first job does not wait for many others."""


@dataclass(eq=False, slots=True)
class _Job:
    """Work, its waiter and its result. A queued job runs even if its waiter was cancelled."""

    work: Callable[[Database], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class Chore(Protocol):
    """Something that follows commits on the same thread, after whoever waited was told; once more before closing."""

    every: float
    """Seconds from one time to the next, however many commits there are."""

    def follow(self, db: Database) -> None:
        """Runs outside of a transaction. What it raises is logged and stops nothing."""
        ...


class Writer:
    """Runs jobs on a database that only its thread touches."""

    def __init__(self, opener: Callable[[], Database], *, size: int, seconds: float, chore: Chore | None) -> None:
        self._opener = opener
        self._chore = chore
        self._chore_due: float | None = None
        self._chore_done = float("-inf")
        self._size = size
        self._seconds = seconds
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closing = False
        self._drained = False
        self._thread = threading.Thread(target=self._serve, name="signoff-store", daemon=True)
        self.commits = 0
        """How many transactions were committed."""

    @classmethod
    async def start(
        cls,
        opener: Callable[[], Database],
        *,
        size: int = GROUP_SIZE,
        seconds: float = GROUP_SECONDS,
        chore: Chore | None = None,
    ) -> Writer:
        """Open the database on the new thread; what `opener` raises is raised here."""
        writer = cls(opener, size=size, seconds=seconds, chore=chore)
        opening = writer._enqueue(lambda db: None)
        writer._thread.start()
        try:
            await opening
        except BaseException:
            # Also when cancelled while opening: the thread then opens, finds the end of its queue and closes.
            writer._shut()
            raise
        return writer

    async def submit(self, work: Callable[[Database], T]) -> T:
        """Run `work` in a transaction that is durable when this returns. What it raises is raised here."""
        return await self._enqueue(work)

    async def close(self) -> None:
        """Finish what is queued, take nothing more, close the database."""
        self._shut()
        await asyncio.to_thread(self._thread.join)

    def _enqueue(self, work: Callable[[Database], T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._gate:
            if self._closing:
                raise StoreError("The store is closed: the program is shutting down. Nothing of this step was kept.")
            self._queue.put(_Job(work, loop, future))
        return future

    def _shut(self) -> None:
        # Under the gate, so that nothing is ever queued behind the end.
        with self._gate:
            if not self._closing:
                self._closing = True
                self._queue.put(None)

    # From here on everything runs on the thread.

    def _serve(self) -> None:
        opening = self._queue.get()
        assert opening is not None, "start() queues it before the thread runs"
        try:
            db = self._opener()
        except BaseException as error:
            opening.error = error
            _wake([opening])
            return
        _wake([opening])
        del opening
        try:
            while not self._drained:
                job = self._take(db)
                if job is None:
                    break
                self._commit_group(db, job)
                del job  # or the last job's result would live until the next one comes
        finally:
            self._shut()
            self._do_chore(db)
            db.close()
            self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """Nobody waits for ever, whatever ended the thread. After an orderly close there is no rest."""
        while not self._queue.empty():
            if job := self._queue.get():
                job.error = StoreError("The store has stopped: start the program again. Nothing of this step was kept.")
                _wake([job])

    def _take(self, db: Database) -> _Job | None:
        """The next job, or None at the end; until it comes, and before it if it is time, the chore is done."""
        while self._chore_due is not None:
            left = self._chore_due - time.monotonic()
            try:
                if left > 0:
                    return self._queue.get(timeout=left)
            except Empty:
                pass
            self._do_chore(db)
        return self._queue.get()

    def _do_chore(self, db: Database) -> None:
        if self._chore is None or self._chore_due is None:
            return
        self._chore_due, self._chore_done = None, time.monotonic()
        try:
            self._chore.follow(db)
        except Exception:
            log.exception("the chore after a commit failed; the commit itself is durable")

    def _commit_group(self, db: Database, first: _Job) -> None:
        group: list[_Job] = []
        until = time.monotonic() + self._seconds
        job: _Job | None = first
        try:
            while job is not None:
                group.append(job)
                if job is first:
                    db.begin()
                _run(db, job)
                job = self._next(group, until)
            db.commit()
            self.commits += 1
            if self._chore and self._chore_due is None:
                self._chore_due = self._chore_done + self._chore.every
        except BaseException as error:
            db.abandon()
            # Also jobs whose own work failed: they may have read rows of others that are rolled back now.
            for lost in group:
                lost.result = None
                lost.error = _lost(error)
        _wake(group)

    def _next(self, group: list[_Job], until: float) -> _Job | None:
        if len(group) >= self._size or time.monotonic() > until:
            return None
        try:
            job = self._queue.get_nowait()
        except Empty:
            return None
        self._drained = job is None
        return job


def _run(db: Database, job: _Job) -> None:
    """Run one job in its savepoint. Raises only if the whole transaction is lost."""
    db.savepoint()
    try:
        job.result = job.work(db)
        db.release()
    except BaseException as error:
        job.result = None
        job.error = error
        db.undo()


def _lost(error: BaseException) -> StoreError:
    lost = StoreError(str(error) if isinstance(error, StoreError) else f"The store failed unexpectedly: {error!r}")
    lost.__cause__ = error
    return lost


def _wake(jobs: Iterable[_Job]) -> None:
    waiting: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        waiting.setdefault(job.loop, []).append(job)
    for loop, those in waiting.items():
        try:
            loop.call_soon_threadsafe(_resolve, those)
        except RuntimeError:
            pass  # that loop is closed, and with it everybody who waited on it


def _resolve(jobs: Iterable[_Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue  # its waiter was cancelled
        if isinstance(job.error, StopIteration):
            # A future does not take this one, and its waiter would wait for ever.
            job.future.set_exception(RuntimeError("the work raised StopIteration"))
        elif job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
