"""One folder per server, and files in it that nothing can lead out of.

How a path is walked is the affair of `handles`. Knows nothing of approvals: whoever writes says what the file looked
like when it was shown, and is told if that is no longer so.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from signoff.agent.tools.handles import NotTaken, inside, open_file
from signoff.agent.tools.paths import RESERVED, split_path
from signoff.approvals.model import Actor, Place

KB, MB = 1024, 1024 * 1024
QUOTA = 50 * MB
MOST_ENTRIES = 5_000
ABSENT = "absent"

_TEMPORARY = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[0-9A-Za-z_]{1,64}")


class Changed(Exception):
    """The file is not what it was when it was shown; nothing was written."""


@dataclass(frozen=True, slots=True)
class Present:
    """A file as it is now, or that there is none."""

    digest: str = ABSENT
    size: int = 0
    data: bytes | None = b""
    """None where it is larger than was asked for."""
    mode: int = 0o600
    """New files are for the bot's own account: they may hold secrets."""
    owner: tuple[int, int] | None = None


def folder_name(place: Place, asker: Actor) -> str:
    """The server's id; in direct messages one folder per person, whatever the conversation."""
    name = asker.id if place.is_direct else place.server
    if not _NAME.fullmatch(name):
        raise NotTaken("Refused: this conversation has no workspace, since its server's id is not a plain one.")
    return f"dm-{name}" if place.is_direct else name


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of one server. It is made when the first file is written."""

    root: Path
    name: str

    def read(self, path: str, most: int) -> tuple[bytes, int]:
        """The file's beginning, at most so many bytes, and its whole size."""
        names = split_path(path)
        with suppress(FileNotFoundError), self._open() as home, inside(home, names[:-1]) as folder:
            handle = open_file(folder, names[-1])
            with os.fdopen(handle, "rb") as file:
                return file.read(most), os.fstat(handle).st_size
        raise NotTaken(f'There is no file "{path}" in this workspace.')

    def look(self, path: str, most: int) -> Present:
        """The file's digest, and its content if it is not larger than this."""
        names = split_path(path)
        try:
            with self._open() as home:
                return _look_from(home, names, most)
        except FileNotFoundError:
            return Present()

    def write(self, path: str, data: bytes, seen: str | None) -> Present:
        """Replace the file by a new one in one step; returns what was there. None: whatever it was, it may go."""
        names = split_path(path)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._open(make=True) as home:
            # Another writer, of this process or another, waits here: of two that saw the same file one comes too late.
            fcntl.flock(home, fcntl.LOCK_EX)
            before = _look_from(home, names, 0)
            if before.digest == digest_of(data):
                return before
            if seen is not None and before.digest != seen:
                raise Changed
            _check_room(home, len(names), before, len(data))
            with inside(home, names[:-1], make=True) as folder:
                _replace(folder, names[-1], data, before)
            return before

    @contextmanager
    def _open(self, make: bool = False) -> Generator[int]:
        # The way to the root is the operator's, links and all; below it there are none.
        root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with inside(root, (self.name,), make=make) as home:
                yield home
        finally:
            os.close(root)


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _look_from(home: int, names: Sequence[str], most: int) -> Present:
    try:
        with inside(home, names[:-1]) as folder:
            return _look(folder, names[-1], most)
    except FileNotFoundError:
        return Present()


def _look(folder: int, name: str, most: int) -> Present:
    handle = open_file(folder, name)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if found.st_size > QUOTA:
            raise NotTaken(f'Refused: "{name}" is larger than a whole workspace may be ({QUOTA // MB} MB).')
        data = file.read(most + 1)
        digest, size = hashlib.sha256(data), len(data)
        while piece := file.read(MB):
            digest.update(piece)
            size += len(piece)
    kept = data if size <= most else None
    return Present(digest.hexdigest(), size, kept, stat.S_IMODE(found.st_mode) & 0o777, (found.st_uid, found.st_gid))


def _replace(folder: int, name: str, data: bytes, before: Present) -> None:
    temporary = f"{RESERVED}{secrets.token_hex(8)}"
    handle = os.open(temporary, _TEMPORARY, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if before.owner:
                with suppress(PermissionError):
                    os.fchown(handle, *before.owner)
            os.fchmod(handle, before.mode)
            file.flush()
            os.fsync(handle)
        if _look_from(folder, (name,), 0).digest != before.digest:
            raise Changed
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    with suppress(OSError):  # it is written; whether its name survives a power failure is for the disk to say
        os.fsync(folder)


def _check_room(home: int, depth: int, before: Present, size: int) -> None:
    """Under the lock, so that an unfinished file of a writer that was killed is known to be nobody's: it goes."""
    if before.digest != ABSENT and size <= before.size:
        return
    used = entries = 0
    for _, folders, files, handle in os.fwalk(".", dir_fd=home, follow_symlinks=False):
        entries += len(folders) + len(files)
        if entries + depth > MOST_ENTRIES:
            raise NotTaken(f"Not written: this workspace has its {MOST_ENTRIES} files and folders already.")
        for name in files:
            with suppress(FileNotFoundError):
                if name.startswith(RESERVED):
                    os.unlink(name, dir_fd=handle)
                else:
                    used += os.stat(name, dir_fd=handle, follow_symlinks=False).st_size
    left = max(0, QUOTA - used + before.size)
    if size > left:
        raise NotTaken(f"Not written: a workspace may hold {QUOTA // MB} MB in all, and {left} bytes are left.")
