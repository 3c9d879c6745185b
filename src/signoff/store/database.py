"""The layer between our SQL and a database driver: one connection, one thread, one transaction at a time.

Statements use `?` and only SQL that SQLite and PostgreSQL share. A subclass of `Database` per dialect defines how its
driver differs. Knows no table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

from signoff.errors import StoreError
from signoff.store.codec import escape, unescape

Value = str | bytes | int | float | None
Row = tuple[Any, ...]

_JOB = "job"


class Cursor(Protocol):
    """The part of a DB-API cursor that we use."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, sql: Any, params: Any, /) -> Any: ...

    def executemany(self, sql: Any, params: Any, /) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    def cursor(self) -> Cursor: ...

    def close(self) -> None: ...


class Database(ABC):
    """A connection in autocommit mode, with explicit BEGIN and COMMIT.

    After a failed statement every further statement is refused until `undo`, as in PostgreSQL.
    """

    dialect: ClassVar[str]
    begin_sql: ClassVar[str] = "BEGIN"
    driver_errors: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        """One for all statements: each one's rows are fetched before the next one runs."""
        self._failed: StoreError | None = None
        self.known: dict[str, Any] = {}
        """What jobs of the open transaction have read and written, for the next ones. Forgotten when work is undone."""

    @abstractmethod
    def explain(self, error: Exception) -> str:
        """Return the cause of a driver's error and what to do about it."""

    @abstractmethod
    def has_tables(self) -> bool: ...

    @abstractmethod
    def has_table(self, name: str) -> bool: ...

    @abstractmethod
    def script(self, text: str) -> None:
        """Run several statements inside the open transaction."""

    def all(self, sql: str, *params: Value) -> list[Row]:
        self.check()
        try:
            self._cursor.execute(sql, _written(params))
            rows = self._cursor.fetchall()
        except self.driver_errors as error:
            raise self._fail(error) from error
        return [_read(row) for row in rows]

    def one(self, sql: str, *params: Value) -> Row | None:
        rows = self.all(sql, *params)
        return rows[0] if rows else None

    def change(self, sql: str, *params: Value) -> int:
        """Run a statement and return the number of rows that it changed."""
        self.check()
        try:
            self._cursor.execute(sql, _written(params))
        except self.driver_errors as error:
            raise self._fail(error) from error
        return self._cursor.rowcount

    def change_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        self.check()
        try:
            self._cursor.executemany(sql, [_written(row) for row in rows])
        except self.driver_errors as error:
            raise self._fail(error) from error

    def begin(self) -> None:
        self._failed = None
        self.known.clear()
        self._command(self.begin_sql)

    def commit(self) -> None:
        self.known.clear()  # from here on, somebody else may write to the file
        self._command("COMMIT")

    def abandon(self) -> None:
        """Roll back the transaction, if there still is one. Never raises."""
        self._failed = None
        self.known.clear()
        try:
            self._command("ROLLBACK")
        except StoreError:
            # The database has already rolled back, as SQLite does on a full disk.
            self._failed = None

    def check(self) -> None:
        """Raise if a statement failed, even if its error was swallowed."""
        if self._failed is not None:
            raise self._failed

    def savepoint(self) -> None:
        self._command(f"SAVEPOINT {_JOB}")

    def release(self) -> None:
        """Keep the changes since the savepoint."""
        self._command(f"RELEASE SAVEPOINT {_JOB}")

    def undo(self) -> None:
        """Undo the changes since the savepoint. Raises if the whole transaction was already rolled back."""
        self.known.clear()
        self._command(f"ROLLBACK TO SAVEPOINT {_JOB}")
        self._command(f"RELEASE SAVEPOINT {_JOB}")
        self._failed = None

    def close(self) -> None:
        try:
            self._connection.close()
        except self.driver_errors:
            pass  # all acknowledged work is committed, so a failing close loses nothing

    def _command(self, sql: str) -> None:
        try:
            self._cursor.execute(sql, ())
        except self.driver_errors as error:
            raise self._failure(error) from error

    def _fail(self, error: Exception) -> StoreError:
        self._failed = self._failure(error)
        return self._failed

    def _failure(self, error: Exception) -> StoreError:
        return StoreError(f"The database failed and nothing of this step was kept: {self.explain(error)}")


def _written(params: Sequence[Value]) -> list[Value]:
    return [escape(str(value)) if isinstance(value, str) else value for value in params]


def _read(row: Row) -> Row:
    # Most rows are returned as they are: to copy each one took twice as long.
    for value in row:
        if value and type(value) is str and value[0] == '"':
            return tuple([unescape(value) if type(value) is str else value for value in row])
    return row
