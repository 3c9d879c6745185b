"""Copies of the database: made while the bot runs, checked before they get their name, and put back in place.

A copy is two files: FILE, a complete database, and FILE.head, the anchor of its record. Both together can be checked
with `signoff audit verify`, like the original. Knows no table but the record's, and nothing of turns.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from signoff.approvals.audit import Report
from signoff.dataclass import dataclass
from signoff.errors import StoreUnavailable
from signoff.store.anchor import anchor_path, read_anchor, write_anchor
from signoff.store.audit_file import open_audit_file, read_only_address
from signoff.store.lock import ProcessLock
from signoff.store.migrate import shipped
from signoff.store.sqlite import explain

SIDE_FILES = ("-wal", "-shm", ".head")
"""What SQLite and the anchor keep beside a database, as endings of its name."""


@dataclass(frozen=True, slots=True)
class Copy:
    path: Path
    size: int
    report: Report
    """What the verification of the copied record found."""


def back_up(database: Path, target: Path) -> Copy:
    """Copy the database, also while a bot uses it. Raises StoreUnavailable if that fails; then no copy is left."""
    source = database.resolve()
    if not source.is_file():
        raise StoreUnavailable(f"There is no database {database}: correct SIGNOFF_DATABASE_URL or --database.")
    for path in (target, _head(target)):
        if path.exists() or path.is_symlink():
            raise StoreUnavailable(f"{path} exists already and is not overwritten: name another file.")
    with _temporary(target) as part:
        # Read the anchor before the rows: rows are only added, so the anchored row must be in the copy.
        try:
            anchor = read_anchor(anchor_path(source))
        except ValueError:
            anchor = None
        _copy(source, part)
        if anchor:
            write_anchor(_head(part), anchor)
        report = check(part)
        if report.intact and anchor:
            write_anchor(_head(part), report.head)
        _flush(part)
        size = part.stat().st_size
        if anchor:
            os.replace(_head(part), _head(target))
        _name(part, target)
    return Copy(target, size, report)


def check(path: Path) -> Report:
    """Read the whole file and verify its record. Raises StoreUnavailable if it is damaged or not one of ours."""
    try:
        connection = sqlite3.connect(read_only_address(path), uri=True, timeout=0)
        try:
            problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
            if problems != ["ok"]:
                raise StoreUnavailable(f"{path} is damaged: {problems[0]}. Use another copy.")
            (version,) = connection.execute("SELECT MAX(version) FROM schema_version").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} is not a readable database of Signoff: {explain(error)}") from error
    newest = shipped("sqlite")[-1].number
    if version > newest:
        raise StoreUnavailable(
            f"{path} has schema version {version}, and this program knows {newest} at most. Update the program."
        )
    with open_audit_file(path) as file:
        return file.verify()


@contextmanager
def replacing(database: Path, backup: Path, *, suffix: str, replace: bool) -> Generator[Path]:
    """Yield a copy of the backup that takes the database's place when the context ends without an error.

    Until then nothing is changed, and no bot can start on the database. The old database gets `suffix` at the end of
    its name; without `replace`, an old database is an error.
    """
    target = database.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = ProcessLock.acquire(target)
    try:
        if target.exists() and not replace:
            raise StoreUnavailable(f"There is a database {database} already. With --replace it is moved aside first.")
        with _temporary(target) as part:
            with suppress(FileNotFoundError):
                shutil.copyfile(_head(backup), _head(part))
            _copy(backup, part)
            yield part
            _flush(part)
            # Also without an old database: SQLite would replay a -wal that a killed bot left into the restored file.
            for ending in (*SIDE_FILES, ""):
                with suppress(FileNotFoundError):
                    os.rename(f"{target}{ending}", f"{target}{suffix}{ending}")
            os.replace(_head(part), _head(target))
            os.replace(part, target)
    finally:
        lock.release()


def _copy(source: Path, target: Path) -> None:
    try:
        connection = sqlite3.connect(read_only_address(source), uri=True, timeout=5, isolation_level=None)
        try:
            # One read transaction, which stops no writer. Unlike a copy of the pages, it leaves deleted texts behind.
            connection.execute("VACUUM INTO ?", (str(target),))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreUnavailable(f"The copy {target} could not be written: {explain(error)}") from error


@contextmanager
def _temporary(target: Path) -> Generator[Path]:
    """Yield an empty private file beside the target. It and its side files are removed at the end."""
    part = target.with_name(f"{target.name}.part")
    try:
        for path in (part, _head(part)):
            path.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnavailable(f"Cannot write {part} ({error.strerror}): name a file in another folder.") from error
    try:
        yield part
    except OSError as error:
        raise StoreUnavailable(f"The copy {target} could not be written: {error.strerror or error}") from error
    finally:
        for ending in ("", *SIDE_FILES, ".lock"):
            with suppress(OSError):
                os.unlink(f"{part}{ending}")


def _name(part: Path, target: Path) -> None:
    """Give the copy its name, without overwriting a file that appeared in the meantime."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise StoreUnavailable(f"{target} exists already and is not overwritten: name another file.") from None
    except OSError:
        os.rename(part, target)  # a file system without hard links


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _head(path: Path) -> Path:
    return path.with_name(f"{path.name}.head")
