"""A tool that makes calls through the same gate, on the tools' own event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.messages import ToolCallPart

from signoff.turns.model import Finished
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import calls


async def test_a_tool_on_the_tools_loop_may_call_another_tool(bench: Bench) -> None:
    async def outer(ctx: RunContext[Any], value: str) -> str:
        """Call another tool."""
        assert ctx.tool_manager is not None
        first = await ctx.tool_manager.handle_call(ToolCallPart("free", {"value": value}, "inner_1"))
        second = await ctx.tool_manager.handle_call(ToolCallPart("free", {"value": value + "2"}, "inner_2"))
        return f"{first}, {second}"

    tools = [Tool(outer), Tool(bench.box.tool("free"))]
    starting = bench.start([calls(("outer", {"value": "x"})), "done"], tools)
    step = await asyncio.wait_for(starting, 10)
    assert isinstance(step, Finished), step
    assert [value for _, value, _ in bench.box.ran] == ["x", "x2"]


async def test_a_tool_in_a_thread_may_call_another_tool_on_a_loop_that_ends_then(bench: Bench) -> None:
    def outer(ctx: RunContext[Any], value: str) -> str:
        """Call another tool."""
        assert ctx.tool_manager is not None
        return str(asyncio.run(ctx.tool_manager.handle_call(ToolCallPart("free", {"value": value}, "inner_1"))))

    tools = [Tool(outer), Tool(bench.box.tool("free"))]
    starting = bench.start([calls(("outer", {"value": "x"})), "done"], tools)
    step = await asyncio.wait_for(starting, 10)
    assert isinstance(step, Finished), step
    assert [value for _, value, _ in bench.box.ran] == ["x"]
