"""The store as the rest of the program sees it: open, run functions in transactions, close.

Error messages about a database URL repeat only its scheme: the rest may hold a password.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from signoff.approvals.ports import RequestStore
from signoff.errors import SettingsError, StoreUnavailable
from signoff.store.anchor import AnchorKeeper
from signoff.store.audit_rows import AuditRows
from signoff.store.budget_rows import BudgetRows
from signoff.store.database import Database
from signoff.store.listening_rows import ListeningRows
from signoff.store.migrate import migrate, shipped
from signoff.store.notice_rows import NoticeRows
from signoff.store.policy_rows import PolicyRows
from signoff.store.schedule_rows import ScheduleRows
from signoff.store.sqlite import open_sqlite
from signoff.store.status_rows import StatusRows
from signoff.store.turn_rows import TurnRows
from signoff.store.writer import Writer
from signoff.turns.ports import TurnStore

T = TypeVar("T")

_ACCEPTED = (
    "SIGNOFF_DATABASE_URL takes sqlite:///data/signoff.db (relative to the working folder)"
    " or sqlite:////full/path/signoff.db"
)


class Tx(NoticeRows, PolicyRows, TurnRows, BudgetRows, ScheduleRows, ListeningRows, StatusRows, AuditRows):
    """One transaction over all rows. `Store.run` passes it to `work`; it is valid only during that call."""


class Store(RequestStore, TurnStore):
    """Implements the desk's port and the turns' port with one kind of transaction over all rows."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.on_job: Callable[[float], None] | None = None
        """Is told how many seconds each job took."""

    @classmethod
    async def open(cls, url: str) -> Store:
        """Lock, open, migrate. Raises SettingsError, StoreUnavailable or AlreadyRunning, each with one line of text."""
        path = sqlite_path(url)
        keeper = AnchorKeeper(path)

        def opener() -> Database:
            db = open_sqlite(path)
            try:
                migrate(db, shipped(db.dialect), place=str(path))
                keeper.begin(db)
            except BaseException:
                db.close()
                raise
            return db

        return cls(await Writer.start(opener, chore=keeper))

    @property
    def commits(self) -> int:
        """Number of transactions committed since opening. Many calls of `run` may share one."""
        return self._writer.commits

    async def run(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in one transaction, which is durable when this returns.

        If `work` raises, its changes are undone and the exception is raised here. If the database fails, StoreError is
        raised. `work` runs on another thread, to its end, even if the caller is cancelled. It must not await, and must
        not keep the transaction.
        """
        if self.on_job is None:
            return await self._writer.submit(lambda db: work(Tx(db)))
        began = time.perf_counter()
        try:
            return await self._writer.submit(lambda db: work(Tx(db)))
        finally:
            self.on_job(time.perf_counter() - began)

    async def close(self) -> None:
        """Finish the queued work, then close and unlock the database. May be called twice."""
        await self._writer.close()

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def sqlite_path(url: str) -> Path:
    """Return the file that the URL names, relative or absolute as given."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        raise SettingsError(f"The database URL has no scheme. {_ACCEPTED}.")
    kind = scheme.lower().partition("+")[0]
    if kind in ("postgresql", "postgres"):
        raise StoreUnavailable(f"This version does not support PostgreSQL. {_ACCEPTED}.")
    if scheme.lower() != "sqlite":
        raise SettingsError(f"The database URL begins with {scheme[:20]!r}, which is not supported. {_ACCEPTED}.")
    if not rest.startswith("/"):
        raise SettingsError(f"The database URL needs three slashes, or four for a full path. {_ACCEPTED}.")
    name = rest[1:]
    if not name or name.endswith("/"):
        raise SettingsError(f"The database URL names no file. {_ACCEPTED}.")
    if name == ":memory:":
        raise SettingsError(f"A database in memory would forget what was approved. {_ACCEPTED}.")
    if "?" in name or "\0" in name:
        raise SettingsError(f"The database URL takes a path and no options. {_ACCEPTED}.")
    return Path(name)


def nearest_folder(path: Path) -> Path:
    """Return the folder of the file, or the nearest one above it that exists. It may turn out to be a file."""
    return next(folder for folder in path.parents if folder.exists() or folder == folder.parent)
