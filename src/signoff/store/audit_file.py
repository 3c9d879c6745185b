"""Reads the record of a database file without a lock, and without creating or changing anything.

Works while the bot is running and while it is not. Trusts nothing that it reads: a column may hold what was never
written there, and then it is handed on as it is, for `approvals.audit.verify` to find. Knows no table but the record's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.approvals.audit import Anchor, AuditRow, Report, verify
from signoff.errors import StoreUnavailable
from signoff.store.anchor import anchor_path, read_anchor
from signoff.store.audit_rows import COLUMNS, TEXT
from signoff.store.codec import escape, unescape
from signoff.store.sqlite import explain

_ROWS = f"SELECT {COLUMNS} FROM audit WHERE {{where}} ORDER BY seq"


@dataclass(frozen=True, slots=True)
class AuditFile:
    """One look at the record: everything in it is of one moment."""

    connection: sqlite3.Connection
    anchor: Anchor | None
    """None if it is missing or unreadable."""

    def rows(
        self, *, server: str | None = None, since: float | None = None, until: float | None = None
    ) -> Iterator[AuditRow]:
        given = {"server = ?": server, "at >= ?": since, "at < ?": until}
        narrowed = {condition: value for condition, value in given.items() if value is not None}
        sql = _ROWS.format(where=" AND ".join(narrowed) or "TRUE")
        for row in self.connection.execute(sql, tuple(narrowed.values())):
            yield AuditRow(*map(_read, row))

    def text(self, digest: str) -> str | None:
        row = self.connection.execute(TEXT, (digest,)).fetchone()
        return row and _read(row[0])

    def verify(self) -> Report:
        return verify(self.rows(), self.anchor, self.text)


@contextmanager
def open_audit_file(database: Path) -> Generator[AuditFile]:
    """StoreUnavailable, in one line, if there is no record to read or it cannot be read to its end."""
    path = database.resolve()
    if not path.is_file():
        raise StoreUnavailable(f"There is no database {database}: correct SIGNOFF_DATABASE_URL or --database.")
    # Before the rows: those only grow, so what is anchored now must be among them.
    try:
        anchor = read_anchor(anchor_path(path))
    except ValueError:
        anchor = None
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(_address(path), uri=True, timeout=0, isolation_level=None)
        connection.text_factory = _decode
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cache_size = -32000")  # texts are looked up all over the file
        connection.execute("BEGIN")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit'").fetchone():
            raise StoreUnavailable(f"The database {database} holds no record: it is not one of Signoff's.")
        yield AuditFile(connection, anchor)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"Cannot read the record of {database}: {explain(error)}") from error
    finally:
        if connection is not None:
            connection.close()


def _address(path: Path) -> str:
    wal = path.with_name(path.name + "-wal")
    try:
        closed = not wal.stat().st_size
    except FileNotFoundError:
        closed = True
    # A database that was closed is whole without its side files, which SQLite would make even for a reader.
    return path.as_uri() + "?mode=ro" + ("&immutable=1" if closed else "")


def _decode(raw: bytes) -> Any:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _read(value: Any) -> Any:
    """A column as the store would read it, if it is as the store would write it; else as it is."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        plain = unescape(value)
    except (ValueError, RecursionError):
        return value
    return plain if escape(plain) == value else value
