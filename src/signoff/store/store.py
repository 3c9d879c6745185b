"""The store as the rest of the program sees it: open, run functions in transactions, close."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from signoff.approvals.ports import RequestStore
from signoff.store.anchor import AnchorKeeper
from signoff.store.database import Database
from signoff.store.migrate import migrate, shipped
from signoff.store.sqlite import open_sqlite
from signoff.store.tx import Tx
from signoff.store.url import sqlite_path
from signoff.store.writer import Writer
from signoff.turns.ports import TurnStore

T = TypeVar("T")


class Store(RequestStore, TurnStore):
    """Satisfies the desk's port and the turns' port with one kind of transaction over all rows."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    @classmethod
    async def open(cls, url: str) -> Store:
        """Lock, open and migrate. Raises SettingsError, StoreUnavailable or AlreadyRunning, each with one line."""
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
        """How many transactions were committed since opening; many calls of `run` may share one."""
        return self._writer.commits

    async def run(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in one transaction; durable when this returns.

        What `work` raises is raised here and its changes are undone. StoreError if the database fails. `work` runs
        on another thread, to its end, even if the waiter is cancelled: it must not await or keep the transaction.
        """
        return await self._writer.submit(lambda db: work(Tx(db)))

    async def close(self) -> None:
        """Finish what is queued, then let go of the database. May be called twice."""
        await self._writer.close()

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
