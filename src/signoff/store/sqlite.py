"""The SQLite dialect: opens the file, makes commits durable and explains SQLite's errors. Knows no table."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import ClassVar

from signoff.errors import StoreUnavailable
from signoff.store.database import Database
from signoff.store.lock import ProcessLock

_BUSY_MS = 5000
_STATEMENTS = 512
"""How many prepared statements are kept: more than the store has, since preparing one takes longer than running it."""

_CAUSES = {
    "SQLITE_FULL": "the disk is full. Free some space and try again.",
    "SQLITE_READONLY": "the database may not be written. Give this user the right to write the file and its folder.",
    "SQLITE_BUSY": "another program holds the database. Close it and try again.",
    "SQLITE_LOCKED": "another program holds the database. Close it and try again.",
    "SQLITE_IOERR": "the disk reported an error. Check the disk and its free space, then start the program again.",
    "SQLITE_CORRUPT": "the file is damaged. Stop the program and put a backup in its place.",
    "SQLITE_NOTADB": "the file is not a SQLite database. Move it away, or set SIGNOFF_DATABASE_URL to another file.",
    "SQLITE_CANTOPEN": "the file cannot be opened. Check that this user may read and write it and its folder.",
    "SQLITE_PERM": "the file may not be opened. Check that this user may read and write it and its folder.",
}


class SqliteDatabase(Database):
    dialect: ClassVar[str] = "sqlite"
    # Without IMMEDIATE, a transaction that first reads and then writes can fail with "busy" halfway through.
    begin_sql: ClassVar[str] = "BEGIN IMMEDIATE"
    driver_errors: ClassVar[tuple[type[Exception], ...]] = (sqlite3.Error, sqlite3.Warning)

    def __init__(self, connection: sqlite3.Connection, lock: ProcessLock) -> None:
        super().__init__(connection)
        self._lock = lock

    def explain(self, error: Exception) -> str:
        return explain(error)

    def has_tables(self) -> bool:
        return self.one("SELECT 1 FROM sqlite_master LIMIT 1") is not None

    def has_table(self, name: str) -> bool:
        return self.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name) is not None

    def script(self, text: str) -> None:
        # executescript() would commit first, so a crash could leave half a migration behind.
        statement = ""
        for line in text.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self.change(statement)
                statement = ""
        if statement.strip():
            self.change(statement)

    def close(self) -> None:
        super().close()
        self._lock.release()


def open_sqlite(given: Path) -> SqliteDatabase:
    """Lock and open the file. Create it and its folder if needed. Raises StoreUnavailable with the reason."""
    path = _prepare(given)
    lock = ProcessLock.acquire(path)
    try:
        return SqliteDatabase(_connect(path), lock)
    except BaseException:
        lock.release()
        raise


def _prepare(given: Path) -> Path:
    try:
        # Resolve links, so that two names of one file share one lock.
        path = given.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreUnavailable(
            f"Cannot open the database {given}: there is a file where its folder should be."
            " Move that file away, or set SIGNOFF_DATABASE_URL to another place."
        ) from error
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreUnavailable(
            f"Cannot make the folder of the database {given} ({reason})."
            " Make it yourself, or set SIGNOFF_DATABASE_URL to a place that this user may write."
        ) from error
    if path.is_dir():
        raise StoreUnavailable(
            f"Cannot open the database {path}: it is a folder. Name a file in it: set SIGNOFF_DATABASE_URL."
        )
    return path


def _connect(path: Path) -> sqlite3.Connection:
    connection: sqlite3.Connection | None = None
    try:
        if not path.exists():
            # Create the file as private, since it holds conversations; SQLite gives its side files the same rights.
            # Do this only for a new file: closing a descriptor of a file that is open elsewhere in this process would
            # drop SQLite's own locks on it.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, timeout=_BUSY_MS / 1000, isolation_level=None, cached_statements=_STATEMENTS)
        _set_up(connection, path)
        return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, OSError):
            raise StoreUnavailable(
                f"Cannot open the database {path} ({error.strerror})."
                " Give this user the right to read and write it, or set SIGNOFF_DATABASE_URL to another place."
            ) from error
        if isinstance(error, sqlite3.Error):
            raise StoreUnavailable(f"Cannot open the database {path}: {explain(error)}") from error
        raise


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailable(
            f"Cannot open the database {path}: its file system does not allow the write-ahead log."
            " Put it on a local disk: set SIGNOFF_DATABASE_URL."
        )
    # FULL: an acknowledged decision survives a power cut, not only a crash.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # The pages that a savepoint may have to restore stay in memory. Otherwise SQLite opens, writes and removes a
    # temporary file for every job of more than 16 pages.
    connection.execute("PRAGMA temp_store = MEMORY")
    # Detect a read-only file now, not at the first click. BEGIN alone does not fail on one, so write something too.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA user_version = 1")
    connection.execute("ROLLBACK")


def explain(error: Exception) -> str:
    """Return the cause of SQLite's error and what to do about it."""
    name = getattr(error, "sqlite_errorname", "")
    for prefix, cause in _CAUSES.items():
        if name.startswith(prefix):
            return cause
    return f"{error}. This is probably a fault of the program: please report it."
