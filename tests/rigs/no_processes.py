"""Keeps the fast set fast: a test without the mark `slow` may start no process, and no browser, which is one.

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
"""The audit events that announce a new process, and our own for multiprocessing."""


class ProcessRefused(PermissionError):
    """What a library sees when the guard refuses: a process that could not be started."""


@dataclass
class ProcessGuard:
    """Refuses new processes while `refusing`, and notes each attempt: the code under test may catch the refusal."""

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
        """Stand in for the one start that has no audit event: multiprocessing's "spawn"."""
        self.hook("multiprocessing", (path,))
        return _spawn(path, args, passfds)


_spawn = multiprocessing.util.spawnv_passfds
GUARD = ProcessGuard()
sys.addaudithook(GUARD.hook)
multiprocessing.util.spawnv_passfds = GUARD.spawn
