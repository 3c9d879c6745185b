"""Helpers for tests of several packages: a real store in a file, a clock that a test sets, and short builders."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from signoff.approvals.digest import bind
from signoff.approvals.model import Actor, ApprovalRequest, Batch, CallKey, Place, ToolCall
from signoff.store import Store
from signoff.turns.model import Turn
from tests.rigs.no_processes import GUARD

# Imports and collection make many objects and no garbage: a collector that looks for it takes a seventh of their time.
gc.disable()

TESTS = Path(__file__).parent
SLOW_FOLDERS = {"e2e", "page"}
LONG_FILES = {
    "agent/test_mcp_elicitation.py",
    "agent/test_mcp_protocol.py",
    "agent/test_registry_servers.py",
    "discord_sandbox/test_readme.py",
    "discord_sandbox/test_standalone.py",
    "e2e/test_answers.py",
    "e2e/test_backup.py",
    "e2e/test_bad_input.py",
    "e2e/test_budgets.py",
    "e2e/test_discord_tools.py",
    "e2e/test_frame.py",
    "e2e/test_imported_agent.py",
    "e2e/test_large_calls.py",
    "e2e/test_log.py",
    "e2e/test_long_replies.py",
    "e2e/test_mcp_questions.py",
    "e2e/test_missed_mentions.py",
    "e2e/test_old_version.py",
    "e2e/test_openai_provider.py",
    "e2e/test_operations_bot.py",
    "e2e/test_people.py",
    "e2e/test_progress.py",
    "e2e/test_questions.py",
    "e2e/test_reach.py",
    "e2e/test_record.py",
    "e2e/test_refusals.py",
    "e2e/test_schedules.py",
    "e2e/test_shutdown.py",
    "e2e/test_sub_agents.py",
    "gate/test_inner_crashes.py",
    "library/test_web_approval.py",
    "packaging/test_typed_commands.py",
    "packaging/test_wheel.py",
    "page/test_answer.py",
    "page/test_launch.py",
    "page/test_load.py",
    "page/test_parts.py",
    "page/test_people.py",
    "page/test_places.py",
    "page/test_reach.py",
    "page/test_restart.py",
    "page/test_tour.py",
    "terminal/test_answers.py",
    "terminal/test_leaving.py",
    "terminal/test_pipes.py",
}
"""Whole stories that cost many seconds of a processor. `make long` runs them, and so does every landing.

A single test that takes as long has the mark `long`."""

pytest_plugins = ["discord_sandbox.pytest_plugin", "tests.rigs.driver_office", "tests.rigs.gate_bench"]

SERVER = "900000000000000001"
PLACE = Place(SERVER, "700000000000000001", "700000000000000001")
ADA = Actor("100000000000000001", "Ada", SERVER, manages_server=True)
MAX = Actor("100000000000000002", "Max", SERVER)
OLGA = Actor("100000000000000003", "Olga", SERVER, roles=frozenset({"800000000000000001"}))

# Properties run with a few examples in `make fast`, with more in `make test` and with many in `make soak`.
settings.register_profile("fast", max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

_numbers = itertools.count(1)


@dataclass
class HandClock:
    """A clock that a test sets."""

    at: float = 1_000_000.0

    def now(self) -> float:
        return self.at


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(scope="session")
def new_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one database with `Store.open` to copy from: opening a copy takes a quarter of the time."""

    async def make(path: Path) -> Path:
        async with await Store.open(f"sqlite:///{path}"):
            return path

    with asyncio.Runner() as runner:
        return runner.run(make(tmp_path_factory.mktemp("new") / "signoff.db"))


@pytest.fixture
async def store(tmp_path: Path, new_database: Path) -> AsyncIterator[Store]:
    async with await Store.open(f"sqlite:///{shutil.copy(new_database, tmp_path)}") as opened:
        yield opened


def make_call(tool: str = "delete_file", args: dict[str, Any] | None = None, place: Place = PLACE) -> ToolCall:
    key = CallKey(place.conversation, 1, f"call_{next(_numbers)}")
    return bind(ToolCall(key, tool, {"path": "a.txt"} if args is None else args, "schema"), place)


def make_request(call: ToolCall | None = None, **fields: Any) -> ApprovalRequest:
    found: dict[str, Any] = {"why": "the tool is declared to always ask", "approvers": ("manage_server",), **fields}
    return ApprovalRequest(f"{next(_numbers):016x}", call or make_call(), **found)


def make_batch(*requests: ApprovalRequest, now: float = 1_000_000.0, **fields: Any) -> Batch:
    found: dict[str, Any] = {"turn": "turn-1", "place": PLACE, "asker": MAX, "deadline": now + 300, **fields}
    return Batch(f"{next(_numbers):016x}", requests=requests or (make_request(),), opened=now, **found)


def make_turn(text: str = "hello", place: Place = PLACE, asker: Actor = MAX, **fields: Any) -> Turn:
    number = next(_numbers)
    return Turn(f"discord:{number}", place, str(number), asker, text, 1_000_000.0 + number, **fields)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    GUARD.watch(item)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    GUARD.verdict()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the long files in `make test`: that costs each worker seconds.

    `make long` imports every file, since any test may have the mark, or a parameter with it.
    """
    if "not long" not in config.option.markexpr or not collection_path.is_relative_to(TESTS):
        return None
    return True if collection_path.relative_to(TESTS).as_posix() in LONG_FILES else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use the real bot or a browser as slow, and put the files with slow tests first.

    A long file at the end would leave the workers idle.
    """
    for item in items:
        path = item.path.relative_to(TESTS)
        if SLOW_FOLDERS.intersection(path.parts):
            item.add_marker(pytest.mark.slow)
        if path.as_posix() in LONG_FILES:
            item.add_marker(pytest.mark.long)
    longest = ("test_shutdown", "test_mcp_elicitation", "test_record", "test_bad_input", "test_recovery", "test_flow")
    slow = {item.path for item in items if item.get_closest_marker("slow")}

    def rank(item: pytest.Item) -> int:
        name = item.path.stem
        return longest.index(name) if name in longest else len(longest) + (item.path not in slow)

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Let the garbage collector skip the imported modules: they stay until the end, and it would visit them often."""
    gc.collect()
    gc.freeze()
    gc.enable()
