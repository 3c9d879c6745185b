"""Records to attack: a real database file, written by the store and then changed with plain sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from signoff.approvals.audit import AuditRow, Report
from signoff.store import Store
from signoff.store.audit_file import open_audit_file
from signoff.store.store import Tx

KINDS = ("opened", "approved", "rejected", "expired")


def write_row(tx: Tx, n: int) -> None:
    """Write row n with its own text."""
    data = {"batch": f"b{n}", "note": "späť"}
    tx.audit(KINDS[n % 4], "s1", f"q{n}", f"u{n % 3}", data, 1000.5 + n, tool=f"t{n % 2}", text=f"text of {n}")


async def write_record(path: Path, rows: int) -> None:
    async with await Store.open(f"sqlite:///{path}") as store:
        await store.run(lambda tx: [write_row(tx, n) for n in range(1, rows + 1)])


@contextmanager
def attacking(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the database as an attacker who has dropped its triggers."""
    connection = sqlite3.connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def look(path: Path) -> Report:
    with open_audit_file(path) as file:
        return file.verify()


def rows_of(path: Path) -> list[AuditRow]:
    with open_audit_file(path) as file:
        return list(file.rows())


def found(path: Path) -> tuple[object, str]:
    """Return what verify reports: the row and the text."""
    report = look(path)
    assert report.finding, "nothing was found"
    return report.finding.seq, report.finding.what
