"""Folders and files by handle: every name is opened below the folder before it, and never through a symbolic link.

So it makes no difference what somebody puts in the place of a folder meanwhile: a handle keeps what was opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not to wait for the other end of a pipe.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotTaken(Exception):
    """The workspace refuses; the text says why and that nothing was done."""


@contextmanager
def inside(start: int, names: Sequence[str], *, make: bool = False) -> Generator[int]:
    """The handle of the folder that the names lead to. FileNotFoundError if one is missing and none is to be made."""
    handle = os.dup(start)
    try:
        for name in names:
            inner = _enter(handle, name, make)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _enter(handle: int, name: str, make: bool) -> int:
    try:
        if make:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=handle)
                os.fsync(handle)
        return os.open(name, _FOLDER, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise NotTaken(f'Refused: "{name}" is a symbolic link or not a folder. Links are not followed.') from None
        raise


def open_file(folder: int, name: str) -> int:
    """FileNotFoundError if there is none."""
    # Before it is opened, since opening a device may do something; and after, since it may have been exchanged.
    _check_ordinary(os.stat(name, dir_fd=folder, follow_symlinks=False), name)
    try:
        handle = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NotTaken(f'Refused: "{name}" is a symbolic link or not an ordinary file.') from None
        raise
    try:
        _check_ordinary(os.fstat(handle), name)
    except NotTaken:
        os.close(handle)
        raise
    return handle


def _check_ordinary(found: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise NotTaken(f'Refused: "{name}" is a folder.')
    if stat.S_ISLNK(found.st_mode):
        raise NotTaken(f'Refused: "{name}" is a symbolic link. Links are not followed.')
    if not stat.S_ISREG(found.st_mode):
        raise NotTaken(f'Refused: "{name}" is not an ordinary file but a pipe, a socket or a device.')
    if found.st_nlink > 1:
        why = "the other may lie outside the workspace, where nobody has approved anything"
        raise NotTaken(f'Refused: "{name}" is a hard link, one file with {found.st_nlink} names; {why}.')
