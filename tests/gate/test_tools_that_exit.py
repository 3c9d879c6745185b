"""Tools, conditions and previews that raise an exit, an interrupt or a panic: only their call fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Tool

from signoff.errors import TurnFailed
from signoff.turns.model import Finished
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import calls


class Panic(BaseException):
    """An extension written in Rust raises such an exception when it panics."""


def _enders() -> list[Any]:
    def raising(error: type[BaseException]) -> list[Any]:
        def in_thread(*args: Any, **named: Any) -> Any:
            raise error

        async def on_loop(*args: Any, **named: Any) -> Any:
            raise error

        async def later(*args: Any, **named: Any) -> Any:
            await asyncio.sleep(0.01)
            raise error

        return [pytest.param(one, id=f"{error.__name__}-{one.__name__}") for one in (in_thread, on_loop, later)]

    kinds: list[type[BaseException]] = [BaseException, KeyboardInterrupt, SystemExit, GeneratorExit, Panic]
    return [case for kind in [*kinds, asyncio.CancelledError, StopIteration] for case in raising(kind)]


ENDERS = _enders()


@pytest.mark.parametrize("ender", ENDERS)
async def test_an_exit_an_interrupt_or_a_panic_is_a_failed_result(bench: Bench, ender: Any) -> None:
    def act() -> Any:
        return ender()

    async def act_on_loop() -> Any:
        return await ender()

    tool = Tool(act_on_loop if asyncio.iscoroutinefunction(ender) else act, name="act")
    wanted = calls(("act", {}), ("fine", {"value": "x"}))
    async with asyncio.timeout(20):
        step = await bench.start([wanted, "done"], [tool, bench.box.tool("fine")])
    assert isinstance(step, Finished)
    assert step.text.strip() == "done"
    assert "The tool failed: " in bench.script.results["call_0"]
    assert ("fine", "x", None) in bench.box.ran


@pytest.mark.parametrize("ender", ENDERS)
async def test_the_same_in_a_preview_is_a_failed_result(bench: Bench, ender: Any) -> None:
    tool = Tool(bench.box.tool("act"), requires_approval=True, metadata={"preview": ender})
    async with asyncio.timeout(20):
        step = await bench.start([calls(("act", {})), "done"], [tool])
    assert isinstance(step, Finished)
    assert "its preview failed (" in bench.script.results["call_0"]
    assert bench.box.ran == []


async def test_a_task_that_a_tool_left_alone_cannot_end_the_loop_of_the_tools(bench: Bench) -> None:
    kept: list[asyncio.Task[None]] = []

    async def leave() -> None:
        raise SystemExit(3)

    async def careless() -> str:
        kept.append(asyncio.create_task(leave()))
        await asyncio.sleep(0.05)
        return "careless"

    async with asyncio.timeout(20):
        step = await bench.start([calls(("careless", {})), calls(("careless", {})), "done"], [careless])
    assert isinstance(step, Finished)
    assert bench.script.results == {"call_0": "careless"}


async def test_an_error_whose_text_cannot_be_read_is_a_failed_result(bench: Bench) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    def act() -> str:
        raise Mute

    step = await bench.start([calls(("act", {})), "done"], [act])
    assert isinstance(step, Finished)
    assert "Mute: its text cannot be read" in bench.script.results["call_0"]


@pytest.mark.parametrize("what", ["approval", "args_validator"])
@pytest.mark.parametrize("ender", ENDERS)
async def test_the_same_in_a_condition_or_a_validator_runs_nothing_and_is_said(
    bench: Bench, what: str, ender: Any
) -> None:
    named: dict[str, Any] = {what: ender} if what == "args_validator" else {"metadata": {what: ender}}
    async with asyncio.timeout(20):
        with pytest.raises(TurnFailed, match="Nothing was approved"):
            await bench.start([calls(("act", {})), "done"], [Tool(bench.box.tool("act"), **named)])
    assert bench.box.ran == []
