"""Opens folders and files by handle: each name relative to the handle of its folder, never through a symbolic link.

A handle keeps the folder that was opened, so it does not matter if somebody replaces a folder on the path meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK, so that opening a pipe does not wait for its other end.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

DEEPEST_WALKED = 32


class NotTaken(Exception):
    """The workspace refuses an operation. The text says why. Nothing was done."""


@contextmanager
def inside(start: int, names: Sequence[str], *, make: bool = False) -> Generator[int]:
    """Open the folder at the path `names`. Raises FileNotFoundError if one is missing, unless `make` creates it."""
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


def walk(start: int, most: int) -> Generator[tuple[tuple[str, ...], int, list[str]]]:
    """Yield the path of each folder below `start`, its handle and the names in it, sorted, each folder before its own.

    A command may make a tree of any size. Not more than `most` names of a folder are listed, folders deeper than
    `DEEPEST_WALKED` are not entered, and neither are links and folders that cannot be opened.
    """
    yield from _walk(start, (), most)


def _walk(handle: int, path: tuple[str, ...], most: int) -> Generator[tuple[tuple[str, ...], int, list[str]]]:
    with os.scandir(handle) as entries:
        listed = {entry.name: entry.is_dir(follow_symlinks=False) for entry in islice(entries, most)}
    yield path, handle, sorted(listed)
    for name in sorted(name for name, is_folder in listed.items() if is_folder and len(path) < DEEPEST_WALKED):
        with suppress(OSError):
            inner = os.open(name, _FOLDER, dir_fd=handle)
            try:
                yield from _walk(inner, (*path, name), most)
            finally:
                os.close(inner)


def open_file(folder: int, name: str) -> int:
    """Open an ordinary file for reading and return its handle. Raises FileNotFoundError if there is none."""
    # Check before opening, since opening a device may have an effect, and after, since the file may have been replaced.
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
