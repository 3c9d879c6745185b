"""Lets only one process own the database, with an exclusive lock on a file beside it.

The kernel holds the lock and releases it when the process ends, so a lock file left behind by a killed process blocks
nobody. The file is never removed: otherwise two processes could lock two files of the same name. Knows no SQL.
"""

from __future__ import annotations

import json
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path

from signoff.errors import AlreadyRunning, StoreUnavailable

_PATIENCE = 0.2
"""Seconds to wait for the owner's entry if the owner has the lock but has not written the entry yet."""


class ProcessLock:
    """A lock from `acquire` until `release` or the end of the process. Child processes do not inherit it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, database: Path) -> ProcessLock:
        """Take the lock for a resolved path. Raises AlreadyRunning if another process, or this one, has it."""
        try:
            import fcntl
        except ImportError:
            raise StoreUnavailable(
                "This system has no file locks of the kind that keep two bots apart: run on Linux or macOS."
            ) from None
        path = database.with_name(database.name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(
                f"Cannot write {path} ({error.strerror}), which the database needs beside it."
                " Let this user write to that folder, or set SIGNOFF_DATABASE_URL to another place."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _read_owner(descriptor)
            os.close(descriptor)
            raise AlreadyRunning(
                f"Already running: {owner} owns the database {database}."
                " Stop it first, or set SIGNOFF_DATABASE_URL to another place."
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise StoreUnavailable(
                f"Cannot lock {path} ({error.strerror}). Put the database on a local disk: set SIGNOFF_DATABASE_URL."
            ) from error
        lock = cls(descriptor)
        lock._write_owner()
        return lock

    @staticmethod
    def owner(database: Path) -> str | None:
        """Describe the process that has the lock; None if nobody has it. Creates nothing, and holds the lock no longer
        than it takes to try it."""
        try:
            import fcntl
        except ImportError:
            return None  # no process can take the lock here either
        try:
            descriptor = os.open(database.with_name(database.name + ".lock"), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read_owner(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return None

    def release(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _write_owner(self) -> None:
        words = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(words).encode() + b"\n", 0)
        except OSError:
            pass  # a full disk: the lock still holds, but the file cannot name its owner


def _read_owner(descriptor: int) -> str:
    """Describe the owner in text. The file may hold anything, so only numbers and a short host name are repeated."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            words = json.loads(os.pread(descriptor, 4096, 0))
            since = datetime.fromtimestamp(float(words["since"]), UTC)
            host = "".join(c for c in str(words["host"]) if c.isalnum() or c in "-._")[:64]
            return f"process {int(words['pid'])} on {host}, since {since:%Y-%m-%d %H:%M:%S} UTC,"
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            if time.monotonic() > until:
                return "another process"
            time.sleep(0.01)
