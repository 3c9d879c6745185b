"""The anchor: a small file beside the database with the number and hash of the newest row of the record.

It detects rows that were cut off at the end of the record. The thread that commits writes it after the commit, whole
or not at all. It is at most `DELAY` seconds behind, and after a crash it may miss the rows of that time.
Rows newer than the anchor are fine; a table that no longer has the anchored row was changed from outside. An attacker
who can write both the table and this file can deceive it. Reads only the newest row and the anchored row.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from signoff.approvals.audit import BROKEN, START, Anchor
from signoff.errors import StoreError, StoreUnavailable
from signoff.store.audit_rows import HASH_OF, AuditRows, newest
from signoff.store.database import Database

log = logging.getLogger(__name__)

DELAY = 0.05


def anchor_path(database: Path) -> Path:
    """Return the path beside the database file itself, after following links."""
    path = database.resolve()
    return path.with_name(path.name + ".head")


def read_anchor(path: Path) -> Anchor | None:
    """Return None if there is no such file. Raises ValueError if the file holds no anchor."""
    try:
        with path.open("rb") as file:
            fields = json.loads(file.read(4096))
        seq, hash = fields["seq"], fields["hash"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{path} holds no anchor") from error
    if type(seq) is not int or seq < 0 or not isinstance(hash, str):
        raise ValueError(f"{path} holds no anchor")
    return Anchor(seq, hash)


def write_anchor(path: Path, anchor: Anchor) -> None:
    _replace(path, json.dumps({"seq": anchor.seq, "hash": anchor.hash}).encode() + b"\n")


class AnchorKeeper:
    """The writer's chore. Each new head must extend the anchored one; if not, a permanent row of the record says so."""

    after = DELAY

    def __init__(self, database: Path, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._known = START
        self._failing = False

    def begin(self, db: Database) -> None:
        """Compare the file with the table at opening. Raises StoreUnavailable if no anchor can be written."""
        self._path = anchor_path(self._database)
        try:
            known, spoiled = read_anchor(self._path), False
        except ValueError:
            known, spoiled = None, True
        try:
            if known:
                self._known = known
                self._extend(db)
            elif spoiled or newest(db) != START:
                # A new database gets its anchor before its first row, so a database with rows must have had one.
                self._break(db, None)
            else:
                write_anchor(self._path, START)
        except OSError as error:
            raise StoreUnavailable(
                f"Cannot write {self._path} ({error.strerror}), which anchors the audit record."
                " Let this user write to that folder, or set SIGNOFF_DATABASE_URL to another place."
            ) from error

    def follow(self, db: Database) -> None:
        try:
            self._extend(db)
            self._failing = False
        except OSError as error:
            if not self._failing:
                log.error("cannot write %s (%s): the record goes on unanchored until it works", self._path, error)
            self._failing = True

    def _extend(self, db: Database) -> None:
        if self._known != START and db.one(HASH_OF, self._known.seq) != (self._known.hash,):
            self._break(db, self._known)
            return
        head = newest(db)
        if head != self._known:
            write_anchor(self._path, head)
            self._known = head

    def _break(self, db: Database, known: Anchor | None) -> None:
        """Copy the old anchor, add a row to the record, then anchor that row. A crash in between repeats this."""
        head = newest(db)
        kept = _set_aside(self._path, head.seq + 1)
        heads = {"anchored": _words(known), "found": _words(head), "kept": kept}
        db.begin()
        try:
            AuditRows(db).audit(BROKEN, "", "", "signoff", heads, self._clock())
            db.commit()
        except StoreError:
            db.abandon()
            raise
        log.error(
            "the audit record was cut or changed from outside: %s, and the table ends at row %d."
            " Row %d of the record says so%s. Run: signoff audit verify",
            f"row {known.seq} was anchored" if known else "its anchor is missing or unreadable",
            head.seq,
            head.seq + 1,
            f", the old anchor is kept as {kept}" if kept else "",
        )
        self._known = newest(db)
        write_anchor(self._path, self._known)


def _words(anchor: Anchor | None) -> dict[str, object] | None:
    return anchor and {"seq": anchor.seq, "hash": anchor.hash}


def _set_aside(path: Path, seq: int) -> str:
    """Copy the anchor to a free name, or find a copy that exists. Return that name, or "" if there is no anchor."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ""
    for number in range(1, 1000):
        aside = path.with_name(f"{path.name}.broken-{seq}" + (f"-{number}" if number > 1 else ""))
        if not aside.exists():
            _replace(aside, content)
        if aside.read_bytes() == content:
            return aside.name
    raise OSError(errno.EEXIST, "too many broken anchors")


def _replace(path: Path, content: bytes) -> None:
    """Write the file whole or not at all, even if the power fails.

    The folder is not flushed: if the rename is lost, the older anchor is still valid.
    """
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        if os.write(descriptor, content) < len(content):
            raise OSError(errno.ENOSPC, "the disk is full")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)
