"""Reads the record of a database file without a lock, and without creating or changing anything.

Works whether or not the bot is running. Trusts nothing that it reads: a column may hold a value that the store never
wrote. Such a value is passed on unchanged, so that `approvals.audit.verify` finds it. Knows only the record's tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from signoff.approvals.audit import Anchor, AuditRow, Report, verify
from signoff.dataclass import dataclass
from signoff.errors import StoreUnavailable
from signoff.store.anchor import anchor_path, read_anchor
from signoff.store.audit_rows import COLUMNS, TEXT
from signoff.store.codec import escape, unescape
from signoff.store.sqlite import explain

_ROWS = f"SELECT {COLUMNS} FROM audit WHERE {{where}} ORDER BY seq"


@dataclass(frozen=True, slots=True)
class AuditFile:
    """A snapshot of the record: all rows are read in one transaction."""

    connection: sqlite3.Connection
    anchor: Anchor | None
    """None if the anchor file is missing or unreadable."""

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
    """Open the record. Raises StoreUnavailable, in one line, if there is none or it cannot be read to its end."""
    path = database.resolve()
    if not path.is_file():
        raise StoreUnavailable(f"There is no database {database}: correct SIGNOFF_DATABASE_URL or --database.")
    # Read the anchor before the rows: rows are only added, so the anchored row must be among them.
    try:
        anchor = read_anchor(anchor_path(path))
    except ValueError:
        anchor = None
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(read_only_address(path), uri=True, timeout=0, isolation_level=None)
        connection.text_factory = _decode
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cache_size = -32000")  # 32 MB: texts are spread all over the file
        connection.execute("BEGIN")
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit'").fetchone():
            raise StoreUnavailable(f"The database {database} holds no record: it is not one of Signoff's.")
        yield AuditFile(connection, anchor)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"Cannot read the record of {database}: {explain(error)}") from error
    finally:
        if connection is not None:
            connection.close()


def read_only_address(path: Path) -> str:
    """Return the URI that opens a database without writing, also beside a running bot."""
    wal = path.with_name(path.name + "-wal")
    try:
        closed = not wal.stat().st_size
    except FileNotFoundError:
        closed = True
    # A closed database is complete without its side files. SQLite would create them even for a reader, unless
    # the file is opened as immutable.
    return path.resolve().as_uri() + "?mode=ro" + ("&immutable=1" if closed else "")


def _decode(raw: bytes) -> Any:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _read(value: Any) -> Any:
    """Decode a column as the store does. Return it unchanged if the store would not have written it this way."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        plain = unescape(value)
    except (ValueError, RecursionError):
        return value
    return plain if escape(plain) == value else value
