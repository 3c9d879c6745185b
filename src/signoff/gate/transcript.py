"""Reads the framework's messages: the newest response, its text, and the conversation as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextContent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from signoff.approvals.policy import EarlierCall, Said

SUMMARISED = "signoff_summarised"
"""Metadata key of a request that holds a summary: the messages that it stands for."""
RESULT = 10_000
"""Most characters of an earlier call's result that a condition gets."""


def response_of(ctx: RunContext[Any]) -> ModelResponse:
    """Return the model response whose calls are being run."""
    return next(message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))


def text_of(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()


def words_in(event: object) -> str:
    """Return what the model has just written, if this event of the run's stream is about that."""
    match event:
        case PartStartEvent(part=TextPart(content=words)) | PartDeltaEvent(delta=TextPartDelta(content_delta=words)):
            return words
        case _:
            return ""


def is_prompt(message: ModelMessage) -> bool:
    """Whether a turn begins here. A tool's result may bring content for the model, which looks like a prompt."""
    kinds = {type(part) for part in message.parts}
    return UserPromptPart in kinds and ToolReturnPart not in kinds


def _prompt(part: UserPromptPart) -> str:
    """Return a prompt as text: the asker's words and the texts that they sent along, without images."""
    items = [part.content] if isinstance(part.content, str) else part.content
    texts = [item.content if isinstance(item, TextContent) else item for item in items]
    return "\n".join(text for text in texts if isinstance(text, str))


def said(messages: Sequence[ModelMessage]) -> list[Said]:
    """Return the conversation as roles, plain text and calls with their results, for predicates.

    A summary is left out in favour of what was said: a model wrote it, so it must not pass for a person's words.
    """
    lines: list[Said] = []
    calls: dict[str, ToolCallPart] = {}  # call id -> the newest call with that id, since models reuse ids
    for message in messages:
        if isinstance(message, ModelResponse):
            calls |= {call.tool_call_id: call for call in message.tool_calls}
            if text := text_of(message):
                lines.append(Said("assistant", text))
            continue
        if SUMMARISED in (message.metadata or {}):
            lines += said((message.metadata or {})[SUMMARISED])
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                lines.append(Said("user" if is_prompt(message) else "tool", _prompt(part)))
            elif isinstance(part, ToolReturnPart):
                text = part.model_response_str()
                args = _args(calls.get(part.tool_call_id))
                call = EarlierCall(part.tool_name, args, text[:RESULT], part.outcome == "success")
                lines.append(Said("tool", text, call))
    return lines


def _args(call: ToolCallPart | None) -> dict[str, Any]:
    try:
        # A copy: a condition is other people's code, and must not change the conversation.
        return deepcopy(call.args_as_dict(raise_if_invalid=True)) if call else {}
    except (ValueError, AssertionError):
        return {}  # not a JSON object
