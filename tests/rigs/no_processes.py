"""Keeps the fast set fast: a test without the mark `slow` may not start a process, which includes a browser.

Python itself reports every start to an audit hook, so it does not matter which library the test uses.
"""

from __future__ import annotations

import multiprocessing.util
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

STARTS = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn", "multiprocessing"}
)
"""The audit events that announce a new process, and our own event for multiprocessing."""


class ProcessRefused(PermissionError):
    """The error that a library sees when the guard refuses: a process could not be started."""


@dataclass
class ProcessGuard:
    """Refuses new processes while `refusing`, and records each attempt: the code under test may catch the error."""

    refusing: bool = False
    attempts: list[str] = field(default_factory=list)

    def hook(self, event: str, args: tuple[object, ...]) -> None:
        if self.refusing and event in STARTS:
            self.attempts.append(f"{event} {args[0] if args else ''}".strip())
            raise ProcessRefused(f"This test starts a process ({self.attempts[-1]}) and is not marked `slow`.")

    def watch(self, item: pytest.Item) -> None:
        self.refusing = item.get_closest_marker("slow") is None
        self.attempts.clear()

    def verdict(self) -> None:
        """Fail the test if it tried to start a process. The hook stays installed and refuses nothing from here on."""
        self.refusing = False
        if self.attempts:
            pytest.fail(f"This test is not marked `slow` and tried to start a process: {', '.join(self.attempts)}")

    def spawn(self, path: Any, args: Any, passfds: Any) -> int:
        """Replace the one start that has no audit event: multiprocessing's "spawn"."""
        self.hook("multiprocessing", (path,))
        return _spawn(path, args, passfds)


_spawn = multiprocessing.util.spawnv_passfds
GUARD = ProcessGuard()
sys.addaudithook(GUARD.hook)
multiprocessing.util.spawnv_passfds = GUARD.spawn
