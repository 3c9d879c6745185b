"""Changes several files of a workspace together: either all of them change, or none does.

All files are checked under the workspace's lock before the first one changes. If one cannot be changed, those before it
get their old content back. Only a process that dies in the middle leaves a part of the changes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress

from signoff.agent.tools.handles import NotTaken, inside
from signoff.agent.tools.paths import split_path
from signoff.agent.tools.workspace import (
    ABSENT,
    QUOTA,
    Changed,
    Present,
    Workspace,
    check_space,
    look_from,
    replace_file,
)
from signoff.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after."""

    path: str
    before: Present
    after: bytes | None
    """None: the file is deleted."""


def write_several(workspace: Workspace, changes: Sequence[Change]) -> None:
    """Make all changes. Raises Changed, and changes nothing, if a file is no longer as `before` has it."""
    workspace.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    with workspace.opened(make=True) as home:
        fcntl.flock(home, fcntl.LOCK_EX)
        present = [_as_before(home, change) for change in changes]
        _check_space(home, changes)
        done: list[tuple[Change, Present]] = []
        try:
            for change, before in zip(changes, present, strict=True):
                _make(home, change.path, change.after, before)
                done.append((change, before))
        except BaseException:
            for change, before in reversed(done):
                now = look_from(home, split_path(change.path), 0)
                _make(home, change.path, None if before.digest == ABSENT else before.data, now)
            raise


def _as_before(home: int, change: Change) -> Present:
    present = look_from(home, split_path(change.path), QUOTA)
    if present.digest != change.before.digest:
        raise Changed
    return present


def _check_space(home: int, changes: Sequence[Change]) -> None:
    is_new = any(change.before.digest == ABSENT for change in changes)
    before = Present(ABSENT if is_new else "several files", sum(change.before.size for change in changes))
    depth = sum(len(split_path(change.path)) for change in changes if change.before.digest == ABSENT)
    check_space(home, depth, before, sum(len(change.after or b"") for change in changes))


def _make(home: int, path: str, data: bytes | None, before: Present) -> None:
    names = split_path(path)
    with inside(home, names[:-1], make=data is not None) as folder:
        if data is not None:
            replace_file(folder, names[-1], data, before)
            return
        if before.digest == ABSENT:
            raise NotTaken(f'There is no file "{path}" in this workspace.')
        os.unlink(names[-1], dir_fd=folder)
        with suppress(OSError):  # the file is deleted; without this flush a power failure may bring it back
            os.fsync(folder)
