"""An agent for `[agent] import` whose model calls one tool with as many characters as the mention says.

The mention ends in a kind and a number: `list 400000` makes a list of that many characters.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

KINDS: dict[str, Callable[[int], Any]] = {
    "text": lambda size: "\n".join(f"line {n}: the quick brown fox jumps over the dog" for n in range(size // 50)),
    "list": lambda size: [f"item {n} of the list" for n in range(size // 24)],
    "table": lambda size: {f"key{n}": {"path": f"/srv/{n}", "size": n, "on": True} for n in range(size // 60)},
}
"""Kind -> a function that makes a value of about this many characters."""


def store(value: Any) -> str:
    """Store a value."""
    return f"stored {len(json.dumps(value))} characters"


async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        yield "done"
        return
    prompts = [
        part.content
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    kind, size = str(prompts[-1]).split()[-2:]
    args = json.dumps({"value": KINDS[kind](int(size))})
    yield {0: DeltaToolCall(name="store", json_args=args, tool_call_id=f"call_{len(messages)}")}


agent = Agent(FunctionModel(stream_function=stream), tools=[Tool(store, requires_approval=True)])
