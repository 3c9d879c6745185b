"""The gate's own check of duplicate call ids. The framework refuses them first, so here they appear after its check."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.messages import ModelResponse, ToolCallPart

from signoff.turns.model import Finished
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import calls


def repeat_the_first_id(ctx: RunContext[Any], **_: Any) -> None:
    """Give the second call of the response the id of the first, as a hook of somebody else's might."""
    response = next(message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))
    first, second = response.tool_calls
    if first.tool_call_id != second.tool_call_id:
        parts = [replace(part, tool_call_id=first.tool_call_id) if part is second else part for part in response.parts]
        response.parts = parts
        assert [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)] == [first.tool_call_id] * 2


async def test_ids_that_become_equal_after_the_frameworks_check_run_nothing(bench: Bench) -> None:
    tool = Tool(bench.box.tool("free"), args_validator=repeat_the_first_id)
    step = await bench.start([calls(("free", {"value": "a"}), ("free", {"value": "b"})), "done"], [tool])
    assert isinstance(step, Finished)
    assert bench.box.ran == []
    # The refusal itself is not in what the model reads: the changed response has one id for two calls.
    assert not any("free did" in words for words in bench.script.results.values())
