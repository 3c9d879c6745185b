"""A model that plays a script, and tools that record their calls, for tests that need exact control over responses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingCalls,
    DeltaThinkingPart,
    DeltaToolCall,
    DeltaToolCalls,
    FunctionModel,
)

Answer = ModelResponse | str
Delta = str | DeltaToolCalls | DeltaThinkingCalls
"""A piece of a streamed response."""


def calls(*wanted: tuple[str, dict[str, Any] | str], ids: Sequence[str] | None = None, say: str = "") -> ModelResponse:
    parts: list[Any] = [TextPart(say)] if say else []
    for number, (tool, args) in enumerate(wanted):
        parts.append(ToolCallPart(tool, args, ids[number] if ids else f"call_{number}"))
    return ModelResponse(parts=parts)


@dataclass
class Script:
    """Gives its responses in order and repeats the last one. Stores the messages of each model request."""

    answers: list[Answer]
    asked: list[list[ModelMessage]] = field(default_factory=list[list[ModelMessage]])

    def next(self, messages: list[ModelMessage]) -> ModelResponse:
        self.asked.append(list(messages))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return ModelResponse(parts=[TextPart(answer)]) if isinstance(answer, str) else answer

    @property
    def results(self) -> dict[str, str]:
        """Call id -> what the last request told the model about the call."""
        last = self.asked[-1][-1]
        assert isinstance(last, ModelRequest)
        return {p.tool_call_id: p.model_response_str() for p in last.parts if isinstance(p, ToolReturnPart)}

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Delta]:
        response = self.next(messages)
        for index, part in enumerate(response.parts):
            if isinstance(part, TextPart):
                for word in part.content.split(" "):
                    yield word + " "
            elif isinstance(part, ThinkingPart):
                yield {index: DeltaThinkingPart(content=part.content)}
            elif isinstance(part, ToolCallPart):
                args = part.args if isinstance(part.args, str) else json.dumps(part.args)
                yield {index: DeltaToolCall(name=part.tool_name, json_args=args, tool_call_id=part.tool_call_id)}

    def model(self) -> FunctionModel:
        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return self.next(messages)

        return FunctionModel(answer, stream_function=self.stream)


@dataclass
class Box:
    """Records every execution of a tool."""

    ran: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def tool(self, name: str, do: Callable[..., Any] | None = None) -> Callable[..., Any]:
        def run(value: str = "default", other: str | None = None) -> Any:
            """Record the call."""
            self.ran.append((name, value, other))
            return do(value) if do else f"{name} did {value}"

        run.__name__ = name
        return run
