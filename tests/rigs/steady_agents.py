"""Agents whose model keeps no state: its response depends on the conversation alone, so it survives a restart."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

Round = Sequence[tuple[str, dict[str, Any]]]
"""The calls of one response: (tool, arguments)."""


def steady_agent(
    name: str, rounds: Sequence[Round], tools: list[Any], asked: Callable[[str], None] = lambda name: None
) -> Agent[Any, Any]:
    """Return an agent that makes these calls round by round, and then says what it was told about them."""

    def respond(messages: Sequence[ModelMessage]) -> ModelResponse:
        asked(name)
        made = sum(isinstance(message, ModelResponse) for message in messages)
        if made >= len(rounds):
            return ModelResponse(parts=[TextPart(f"{name}: {'; '.join(_told(messages))}")])
        # Other agents use the same ids, as some models do.
        calls = [ToolCallPart(tool, args, f"call_{number}") for number, (tool, args) in enumerate(rounds[made])]
        return ModelResponse(parts=calls)

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return respond(messages)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        for index, part in enumerate(respond(messages).parts):
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                args = json.dumps(part.args)
                yield {index: DeltaToolCall(name=part.tool_name, json_args=args, tool_call_id=part.tool_call_id)}

    return Agent(FunctionModel(answer, stream_function=stream), name=name, tools=tools)


def _told(messages: Sequence[ModelMessage]) -> list[str]:
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)]
