"""The fast set starts no process: a test without the mark `slow` that tries to fails, even if it hides the error."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.rigs.no_processes import GUARD, ProcessRefused

NOTHING = [sys.executable, "-c", ""]


def spawn() -> None:
    multiprocessing.get_context("spawn").Process(target=print).start()


def start_with_asyncio() -> None:
    asyncio.run(asyncio.create_subprocess_exec(*NOTHING))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "start",
    [lambda: subprocess.run(NOTHING), start_with_asyncio, os.fork, os.forkpty, lambda: os.system("true"), spawn],
    ids=["subprocess", "asyncio", "fork", "forkpty", "system", "multiprocessing"],
)
def test_a_process_is_refused_and_noted(start: Callable[[], object]) -> None:
    with pytest.raises(ProcessRefused):
        start()
    with pytest.raises(pytest.fail.Exception, match="not marked `slow`"):
        GUARD.verdict()
    GUARD.attempts.clear()


def test_a_refusal_that_is_swallowed_still_fails_the_test() -> None:
    with contextlib.suppress(OSError):
        subprocess.run(NOTHING)
    with pytest.raises(pytest.fail.Exception, match="not marked `slow`"):
        GUARD.verdict()
    GUARD.attempts.clear()


@pytest.mark.slow
def test_a_slow_test_may_start_one() -> None:
    assert subprocess.run(NOTHING).returncode == 0


def test_slow_tests_leave_the_fast_set(request: pytest.FixtureRequest) -> None:
    """The folders that drive the real bot and the browser are marked as a whole."""
    for item in request.session.items:
        if {"e2e", "page"} & set(item.path.parts):
            assert item.get_closest_marker("slow"), item.nodeid
