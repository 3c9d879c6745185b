"""Walks through a workspace by handle: what is where, without following a link. Also measures how full it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from signoff.agent.tools.handles import inside, walk
from signoff.agent.tools.paths import RESERVED, split_path
from signoff.agent.tools.workspace import MOST_ENTRIES, Workspace
from signoff.dataclass import dataclass

MOST_WALKED = 4 * MOST_ENTRIES
"""A command may make more entries than a workspace should have. The walk ends after this many."""


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    bytes: int
    entries: int


def entries_of(workspace: Workspace, start: str = "", *, deep: bool = True) -> Iterator[Entry]:
    """Yield the entries below a folder, sorted by name within each folder. Nothing if the folder does not exist."""
    above = split_path(start) if start else ()
    count = 0
    with suppress(FileNotFoundError), workspace.opened() as home, inside(home, above) as folder:
        for path, handle, names in walk(folder, MOST_WALKED):
            for name in names:
                count += 1
                if count > MOST_WALKED:
                    return
                with suppress(OSError):  # it was deleted, or a command took the bot's rights away
                    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                    if not name.startswith(RESERVED):
                        yield Entry("/".join((*above, *path, name)), _kind(status.st_mode), status.st_size)
            if not deep:
                return


def usage(workspace: Workspace) -> Usage:
    """Return how much the workspace holds. Links count as entries only."""
    total = entries = 0
    for entry in entries_of(workspace):
        entries += 1
        total += entry.size if entry.kind == "file" else 0
    return Usage(total, entries)


def _kind(mode: int) -> Literal["file", "folder", "link", "other"]:
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"
