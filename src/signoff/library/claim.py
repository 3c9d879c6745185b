"""Lets one resume at a time work on a stored run. The claim ends with its process, so a killed one blocks nobody.

It is a lock on a file beside the database. Without `fcntl`, as on Windows, it covers only one process.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock

from signoff.dataclass import dataclass

_here: set[Path] = set()
_guard = Lock()


@dataclass
class Claim:
    path: Path
    file: int | None

    @classmethod
    def take(cls, database: Path, run: str) -> Claim | None:
        """Return the claim on a run, or None if somebody else has it."""
        path = path_of(database, run)
        with _guard:
            if path in _here:
                return None
            file = _locked(path)
            if file == BUSY:
                return None
            _here.add(path)
            return cls(path, file)

    def release(self, *, remove: bool = False) -> None:
        """Give the claim back; a second time does nothing. `remove`: nobody will need this file again."""
        with _guard:
            if self.path not in _here or self.file is CLOSED:
                return
            if remove:
                self.path.unlink(missing_ok=True)
            if self.file is not None:
                os.close(self.file)
            self.file = CLOSED
            _here.discard(self.path)


BUSY = -1
CLOSED = -2


def path_of(database: Path, run: str) -> Path:
    return database.with_name(f"{database.name}.{run}.lock")


def _locked(path: Path) -> int | None:
    """Return the open and locked file, `BUSY` if it is locked already, or None where files cannot be locked."""
    try:
        import fcntl
    except ImportError:
        return None
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return BUSY
    return file
