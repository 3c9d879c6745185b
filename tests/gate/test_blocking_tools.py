"""Async tools that block, and sync tools that never end: the bot goes on, and so do other people's tools."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from signoff.approvals.model import Choice
from signoff.gate import tool_threads
from signoff.gate.tool_slots import ToolSlots
from signoff.turns.model import Finished
from tests.conftest import PLACE, make_turn
from tests.rigs.gate_bench import Bench, batch_of
from tests.rigs.loop_probe import LoopProbe
from tests.rigs.scripted import calls


def another(bench: Bench, number: int = 2) -> Bench:
    """A turn in another conversation, beside the bench's own."""
    place = replace(PLACE, conversation=f"{PLACE.conversation}-{number}")
    return Bench(bench.store, bench.clock, bench.desk, turn=make_turn(place=place))


async def test_an_async_tool_that_blocks_stops_neither_the_bot_nor_the_next_call(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tool_threads, "PATIENCE", 0.2)
    slots, release = ToolSlots(), threading.Event()

    async def freeze() -> str:
        release.wait(20)
        return "frozen"

    async def quick() -> str:
        await asyncio.sleep(0)
        return "quick"

    async with asyncio.timeout(20), LoopProbe() as probe:
        frozen = asyncio.ensure_future(bench.start([calls(("freeze", {})), "done"], [freeze], slots=slots))
        while "the tool freeze blocks" not in caplog.text:  # noqa: ASYNC110 - only the log tells
            await asyncio.sleep(0.01)
        # The second call of that tool stops no other tool, not even for a moment.
        again, third = another(bench, 2), another(bench, 3)
        second = asyncio.ensure_future(again.start([calls(("freeze", {})), "done"], [freeze], slots=slots))
        await asyncio.sleep(0.05)
        started = time.monotonic()
        step = await third.start([calls(("quick", {})), "done"], [quick], slots=slots)
        took = time.monotonic() - started
        release.set()
        assert isinstance(await frozen, Finished)
        assert isinstance(await second, Finished)
    assert isinstance(step, Finished)
    assert (bench.script.results, again.script.results) == ({"call_0": "frozen"}, {"call_0": "frozen"})
    assert third.script.results == {"call_0": "quick"}
    assert took < 5
    assert probe.longest < 5


async def test_an_async_tool_that_blocks_is_given_up_at_its_time_limit(bench: Bench) -> None:
    release = threading.Event()

    async def freeze() -> str:
        release.wait(20)
        return "frozen"

    try:
        async with asyncio.timeout(10):
            step = await bench.start([calls(("freeze", {})), "done"], [freeze], slots=ToolSlots(0.2))
    finally:
        release.set()
    assert isinstance(step, Finished)
    assert "did not finish within 0.2 seconds" in bench.script.results["call_0"]


@pytest.mark.parametrize("what", ["approval", "preview", "args_validator"])
async def test_a_condition_a_preview_or_a_validator_that_blocks_stops_nobody(bench: Bench, what: str) -> None:
    release = threading.Event()

    async def freeze(*args: Any, **named: Any) -> str:
        release.wait(20)
        return ""

    named: dict[str, Any] = {what: freeze} if what == "args_validator" else {"metadata": {what: freeze}}
    tool = Tool(bench.box.tool("act"), requires_approval=what == "preview", **named)
    try:
        async with asyncio.timeout(10):
            step = await bench.start([calls(("act", {})), "done"], [tool], slots=ToolSlots(0.2))
    finally:
        release.set()
    assert isinstance(step, Finished)
    assert "took longer than 0.2 s" in bench.script.results["call_0"]
    assert bench.box.ran == []


async def test_a_sync_tool_that_never_ends_is_given_up_at_its_time_limit(bench: Bench) -> None:
    release = threading.Event()

    def stuck() -> str:
        release.wait(20)
        return "never"

    try:
        async with asyncio.timeout(10):
            step = await bench.start([calls(("stuck", {})), "done"], [stuck], slots=ToolSlots(0.2))
    finally:
        release.set()
    assert isinstance(step, Finished)
    assert "did not finish within 0.2 seconds" in bench.script.results["call_0"]


async def test_async_tools_share_one_loop_that_is_not_the_bots(bench: Bench) -> None:
    """A client or a lock that belongs to a loop can be used by all calls."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def where(ctx: RunContext[Any]) -> str:
        loops.append(asyncio.get_running_loop())
        return "here"

    async def preview(ctx: RunContext[Any]) -> str:
        loops.append(asyncio.get_running_loop())
        return "would say where"

    tool = Tool(where, requires_approval=True, metadata={"preview": preview})
    step = await bench.start([calls(("where", {})), calls(("where", {})), "done"], [tool])
    step = await bench.decide(step, Choice.ACCEPT)
    step = await bench.decide(step, Choice.ACCEPT)
    assert isinstance(step, Finished)
    assert len(loops) >= 4
    assert len(set(loops)) == 1
    assert loops[0] is not asyncio.get_running_loop()


async def test_a_tool_may_stay_on_the_bots_loop(bench: Bench) -> None:
    async def where() -> str:
        return "the bot's" if asyncio.get_running_loop() is bots else "another"

    bots = asyncio.get_running_loop()
    tools = [Tool(where, metadata={"bot_loop": True}), Tool(where, name="elsewhere")]
    step = await bench.start([calls(("where", {}), ("elsewhere", {})), "done"], tools)
    assert isinstance(step, Finished)
    assert bench.script.results == {"call_0": "the bot's", "call_1": "another"}


async def test_an_async_tool_of_a_renamed_toolset_asks_from_the_other_loop(bench: Bench) -> None:
    async def act(ctx: RunContext[Any], value: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "careful"})
        return f"{value} {asyncio.get_running_loop() is not bots}"

    bots = asyncio.get_running_loop()
    toolset = FunctionToolset[Any]([act]).prefixed("my")
    step = await bench.start([calls(("my_act", {"value": "x"})), "done"], [], toolsets=[toolset])
    assert batch_of(step).requests[0].metadata == {"reason": "careful"}
    assert isinstance(await bench.decide(step, Choice.ACCEPT), Finished)
    assert bench.script.results == {"call_0": "x True"}


async def test_a_stopped_run_cancels_its_async_tool(bench: Bench) -> None:
    started, ended = threading.Event(), threading.Event()

    async def wait() -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return "never"

    run = asyncio.ensure_future(bench.start([calls(("wait", {})), "done"], [wait]))
    assert await asyncio.to_thread(started.wait, 10)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert await asyncio.to_thread(ended.wait, 10)


def stop_loop() -> None:
    asyncio.get_running_loop().stop()


def close_loop() -> None:
    loop: Any = asyncio.get_running_loop()
    loop.run_forever = loop.close  # instead of going on after the stop
    loop.stop()


@pytest.mark.parametrize(("end", "told"), [(stop_loop, "stopped"), (close_loop, "a tool closed the event loop")])
async def test_a_tool_that_ends_its_loop_does_not_end_the_tools_after_it(bench: Bench, end: Any, told: str) -> None:
    async def act() -> str:
        end()
        await asyncio.sleep(0.01)
        return "stopped"

    async def quick() -> str:
        await asyncio.sleep(0)
        return "quick"

    slots, second = ToolSlots(), another(bench)
    async with asyncio.timeout(10):
        assert isinstance(await bench.start([calls(("act", {})), "done"], [act], slots=slots), Finished)
        assert isinstance(await second.start([calls(("quick", {})), "done"], [quick], slots=slots), Finished)
    assert told in bench.script.results["call_0"]
    assert second.script.results == {"call_0": "quick"}


async def test_a_task_with_a_name_of_its_own_does_not_hide_the_tool_that_blocks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tool_threads, "PATIENCE", 0.2)
    release = threading.Event()

    async def block() -> None:
        release.wait(20)

    async def freeze() -> str:
        await asyncio.create_task(block(), name="mine")
        return "frozen"

    async with asyncio.timeout(20):
        run = asyncio.ensure_future(bench.start([calls(("freeze", {})), "done"], [freeze]))
        while "blocks the event loop" not in caplog.text:  # noqa: ASYNC110 - only the log tells
            await asyncio.sleep(0.01)
        release.set()
        assert isinstance(await run, Finished)
    assert "the tool freeze blocks" in caplog.text
