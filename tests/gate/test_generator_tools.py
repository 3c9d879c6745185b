"""Generators as tools: they run like any tool, and their items are the result."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Any

import pytest

from signoff.gate import tool_threads
from signoff.gate.tool_slots import ToolSlots
from signoff.turns.model import Finished
from tests.rigs.gate_bench import Bench
from tests.rigs.loop_probe import LoopProbe
from tests.rigs.scripted import calls


def numbers() -> Generator[int]:
    assert threading.current_thread() is not threading.main_thread()
    yield from (1, 2, 3)


async def later_numbers() -> AsyncGenerator[int]:
    assert threading.current_thread() is not threading.main_thread()
    for number in (1, 2, 3):
        await asyncio.sleep(0)
        yield number


def numbers_returned() -> Iterator[int]:
    return (number for number in (1, 2, 3))


async def later_numbers_returned() -> Any:
    return later_numbers()


@pytest.mark.parametrize("tool", [numbers, later_numbers, numbers_returned, later_numbers_returned])
async def test_the_items_of_a_generator_are_the_result(bench: Bench, tool: Any) -> None:
    step = await bench.start([calls((tool.__name__, {})), "done"], [tool])
    assert isinstance(step, Finished)
    assert bench.script.results["call_0"] == "[1,2,3]"


def slow_items() -> Generator[int]:
    for number in range(60):
        time.sleep(0.05)
        yield number


async def slow_async_items() -> AsyncGenerator[int]:
    for number in range(60):
        await asyncio.sleep(0.05)
        yield number


@pytest.mark.parametrize("tool", [slow_items, slow_async_items])
async def test_a_generator_has_no_longer_than_any_tool_and_stops_nobody(bench: Bench, tool: Any) -> None:
    async with asyncio.timeout(2), LoopProbe() as probe:
        step = await bench.start([calls((tool.__name__, {})), "done"], [tool], slots=ToolSlots(0.3))
    assert isinstance(step, Finished)
    assert "did not finish within 0.3 seconds" in bench.script.results["call_0"]
    assert probe.longest < 1


async def test_a_generator_that_never_ends_is_a_failed_result(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_threads, "MOST_ITEMS", 50)
    closed = threading.Event()

    def forever() -> Generator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    step = await bench.start([calls(("forever", {})), "done"], [forever])
    assert isinstance(step, Finished)
    assert "gave more than 50 items" in bench.script.results["call_0"]
    assert closed.is_set()
