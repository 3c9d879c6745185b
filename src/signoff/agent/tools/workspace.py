"""The workspace: one folder per server. No path leads out of it.

`handles` opens the paths. Knows nothing of approvals: the caller of `write` passes the digest of the file as it was
shown, and gets `Changed` if the file is different now.
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
from pathlib import Path

from signoff.agent.tools.handles import NotTaken, inside, open_file, walk
from signoff.agent.tools.paths import RESERVED, split_path
from signoff.approvals.model import Actor, Place
from signoff.dataclass import dataclass

KB, MB = 1024, 1024 * 1024
QUOTA = 50 * MB
MOST_ENTRIES = 5_000
ABSENT = "absent"

_TEMPORARY = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[0-9A-Za-z_]{1,64}")


class Changed(Exception):
    """The file has changed since it was shown. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Present:
    """A file as it is now. The defaults stand for a file that does not exist."""

    digest: str = ABSENT
    size: int = 0
    data: bytes | None = b""
    """None if the file is larger than the caller allowed."""
    mode: int = 0o600
    """Only the bot's own account may read and write new files: they may hold secrets."""
    owner: tuple[int, int] | None = None


def folder_name(place: Place, asker: Actor) -> str:
    """Return the server's id or, in direct messages, one name per person for all conversations."""
    name = asker.id if place.is_direct else place.server
    if not _NAME.fullmatch(name):
        raise NotTaken("Refused: this conversation has no workspace, since its server's id is not a plain one.")
    return f"dm-{name}" if place.is_direct else name


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of one server. The first write creates it."""

    root: Path
    name: str

    def read(self, path: str, most: int) -> tuple[bytes, int]:
        """Return the first `most` bytes of the file, and its whole size."""
        names = split_path(path)
        with suppress(FileNotFoundError), self.opened() as home, inside(home, names[:-1]) as folder:
            handle = open_file(folder, names[-1])
            with os.fdopen(handle, "rb") as file:
                return file.read(most), os.fstat(handle).st_size
        raise NotTaken(f'There is no file "{path}" in this workspace.')

    def look(self, path: str, most: int) -> Present:
        """Return the file's digest, and its content if it has at most `most` bytes."""
        names = split_path(path)
        try:
            with self.opened() as home:
                return look_from(home, names, most)
        except FileNotFoundError:
            return Present()

    def write(self, path: str, data: bytes, seen: str | None) -> Present:
        """Replace the file atomically and return the old one.

        A file that already has this content is left alone. Raises Changed if the old file's digest is not `seen`. With
        `seen=None` any file is replaced.
        """
        names = split_path(path)
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.opened(make=True) as home:
            # Other writers, also in other processes, wait here. If two saw the same file, the second one gets Changed.
            fcntl.flock(home, fcntl.LOCK_EX)
            before = look_from(home, names, 0)
            if before.digest == digest_of(data):
                return before
            if seen is not None and before.digest != seen:
                raise Changed
            check_space(home, len(names), before, len(data))
            with inside(home, names[:-1], make=True) as folder:
                replace_file(folder, names[-1], data, before)
            return before

    def delete(self, path: str, seen: str | None) -> Present:
        """Delete the file and return it as it was. Raises Changed if its digest is not `seen`, unless that is None."""
        names = split_path(path)
        with suppress(FileNotFoundError), self.opened() as home:
            fcntl.flock(home, fcntl.LOCK_EX)
            before = look_from(home, names, 0)
            if seen is not None and before.digest != seen:
                raise Changed
            with inside(home, names[:-1]) as folder:
                os.unlink(names[-1], dir_fd=folder)
                with suppress(OSError):  # the file is deleted; without this flush a power failure may bring it back
                    os.fsync(folder)
            return before
        raise NotTaken(f'There is no file "{path}" in this workspace.')

    @contextmanager
    def opened(self, make: bool = False) -> Generator[int]:
        # The operator chose the path to the root, so links in it are followed; below the root none are.
        root = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with inside(root, (self.name,), make=make) as home:
                yield home
        finally:
            os.close(root)


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def look_from(home: int, names: Sequence[str], most: int) -> Present:
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


def replace_file(folder: int, name: str, data: bytes, before: Present) -> None:
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
        if look_from(folder, (name,), 0).digest != before.digest:
            raise Changed
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    with suppress(OSError):  # the file is written; without this flush a power failure may lose the rename
        os.fsync(folder)


def check_space(home: int, depth: int, before: Present, size: int) -> None:
    """Check that the write fits into the quota and the number of entries. Delete temporary files on the way.

    The caller has the lock, so those can only be the files of killed writers.
    """
    if before.digest != ABSENT and size <= before.size:
        return
    used = entries = 0
    for _, handle, names in walk(home, MOST_ENTRIES + 1):
        entries += len(names)
        if entries + depth > MOST_ENTRIES:
            raise NotTaken(f"Not written: this workspace has its {MOST_ENTRIES} files and folders already.")
        for name in names:
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    continue
                if name.startswith(RESERVED):
                    os.unlink(name, dir_fd=handle)
                else:
                    used += found.st_size
    left = max(0, QUOTA - used + before.size)
    if size > left:
        raise NotTaken(f"Not written: a workspace may hold {QUOTA // MB} MB in all, and {left} bytes are left.")
