"""One thread owns the connection and groups commits: jobs that arrive during a commit share the next one.

A durable commit costs one disk flush for any number of jobs. A failing job is undone alone. No caller gets its result
before the commit. Knows no table and no statement.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from signoff.dataclass import dataclass
from signoff.errors import StoreError
from signoff.store.database import Database

T = TypeVar("T")

log = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.0001
"""Seconds after which a computing thread lets another one run, in the whole process. Python's default is fifty times
longer. Each statement lets go of the interpreter, so a job waits so long after each of its statements while the event
loop computes: a decision was durable after 12 ms at best with the default, and after 2 ms with half a millisecond.
With this, a click is acknowledged another twentieth sooner."""
GROUP_SIZE = 256
GROUP_SECONDS = 0.05
"""A group older than this accepts no more jobs, so that its first job does not wait for many others."""


@dataclass(eq=False, slots=True)
class _Job:
    """A piece of work, the future that its caller awaits, and its result. It runs even if the caller was cancelled."""

    work: Callable[[Database], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class Chore(Protocol):
    """Work that runs on the writer's thread some time after commits, and before closing."""

    after: float
    """Seconds from a commit to the run that follows it. Further commits in between share that run."""

    def follow(self, db: Database) -> None:
        """Run outside of a transaction. An exception is logged and stops nothing."""
        ...


class Writer:
    """Runs jobs on a database that only its thread touches."""

    def __init__(self, opener: Callable[[], Database], *, size: int, seconds: float, chore: Chore | None) -> None:
        self._opener = opener
        self._chore = chore
        self._chore_due: float | None = None
        self._size = size
        self._seconds = seconds
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closing = False
        self._drained = False
        self._thread = threading.Thread(target=self._serve, name="signoff-store", daemon=True)
        self.commits = 0
        """Number of committed transactions."""

    @classmethod
    async def start(
        cls,
        opener: Callable[[], Database],
        *,
        size: int = GROUP_SIZE,
        seconds: float = GROUP_SECONDS,
        chore: Chore | None = None,
    ) -> Writer:
        """Open the database on the new thread. Exceptions of `opener` are raised here."""
        writer = cls(opener, size=size, seconds=seconds, chore=chore)
        opening = writer._enqueue(lambda db: None)
        writer._thread.start()
        try:
            await opening
        except BaseException:
            # If the caller was cancelled, the thread finishes opening, finds the end of its queue and closes.
            writer._shut()
            raise
        return writer

    async def submit(self, work: Callable[[Database], T]) -> T:
        """Run `work` in a transaction that is durable when this returns. Its exceptions are raised here."""
        return await self._enqueue(work)

    async def close(self) -> None:
        """Accept no more jobs, finish the queued ones and close the database."""
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
        # With the lock, so that no job is ever queued behind the end marker.
        with self._gate:
            if not self._closing:
                self._closing = True
                self._queue.put(None)

    # The methods below run on the thread.

    def _serve(self) -> None:
        opening = self._queue.get()
        assert opening is not None, "start() queues it before the thread runs"
        if sys.getswitchinterval() > SWITCH_INTERVAL:
            sys.setswitchinterval(SWITCH_INTERVAL)
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
                del job  # otherwise the last job's result stays in memory until the next job
        finally:
            self._shut()
            self._do_chore(db)
            db.close()
            self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """Fail the jobs still queued if the thread crashed, so that no caller waits for ever.

        After an orderly close there are none.
        """
        while not self._queue.empty():
            if job := self._queue.get():
                job.error = StoreError("The store has stopped: start the program again. Nothing of this step was kept.")
                _wake([job])

    def _take(self, db: Database) -> _Job | None:
        """Wait for the next job, and run the chore in between when it is due. None is the end of the queue."""
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
        self._chore_due = None
        try:
            self._chore.follow(db)
        except Exception:
            log.exception("the chore after a commit failed; the commit itself is durable")

    def _commit_group(self, db: Database, first: _Job) -> None:
        group = [first]
        until = time.monotonic() + self._seconds
        try:
            db.begin()
            holds_work = _run(db, first, False)
            while job := self._next(group, until):
                group.append(job)
                holds_work = _run(db, job, holds_work)
            db.commit()
            self.commits += 1
            if self._chore and self._chore_due is None:
                # Not at once: the next step of a turn often follows within milliseconds, and would wait for the chore.
                self._chore_due = time.monotonic() + self._chore.after
        except BaseException as error:
            db.abandon()
            # Jobs whose own work failed get this error too: they may have read rows that are now rolled back.
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


def _run(db: Database, job: _Job, holds_work: bool) -> bool:
    """Run one job, and return whether the transaction holds work then. Raises only if all of it has failed.

    A job needs a savepoint only if the transaction holds the work of others: else it is undone by starting anew.
    """
    if holds_work:
        db.savepoint()
    try:
        job.result = job.work(db)
        db.check()
        if holds_work:
            db.release()
        return True
    except BaseException as error:
        job.result = None
        job.error = error
        if holds_work:
            db.undo()
        else:
            db.abandon()
            db.begin()
        return holds_work


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
            pass  # that loop is closed, so nobody waits any more


def _resolve(jobs: Iterable[_Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue  # its waiter was cancelled
        if isinstance(job.error, StopIteration):
            # A future refuses StopIteration, so its caller would wait for ever.
            job.future.set_exception(RuntimeError("the work raised StopIteration"))
        elif job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
