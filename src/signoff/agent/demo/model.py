"""The offline demo model: deterministic, without a key or a network, and open about being a demo.

It turns the current turn's prompt into a plan (see `grammar`), sends one round of it per model request, and at the end
reports how each call went. It reads only the last prompt and the messages after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from signoff.agent.demo.examples import example_call
from signoff.agent.demo.grammar import REQUESTS, CallIds, CannotFollow, Plan, Round, read, without_mentions
from signoff.agent.demo.story import Happened, go_on

_I_AM = "I am the offline demo model: I understand a few fixed requests and nothing else."
_GREETING = re.compile(r"\A\W*(?:help|hi|hello|hey|what can you do)\b|\A\W*\Z", re.I)
_DENIALS = (
    (re.compile(r"\W*time(?:d[ -]|-)?out\b|\W*expired\b", re.I), "timed out"),
    (re.compile(r"Cancelled\b"), "cancelled"),
    (re.compile(r"Not allowed\b"), "not allowed"),
    (re.compile(r"The bot stopped\b"), "not known"),
)
"""Beginning of a denied result -> its meaning. Only the beginning is read: the rest may quote a person."""
_OUTCOMES = {
    "success": "done",
    "failed": "failed",
    "interrupted": "interrupted",
    "retried": "not run",
}
_LONGEST_RESULT = 300
_PIECE = 2_000
_FEW = 6
_MOST_CALLS = 8
"""The most examples for tools that the table of requests does not know."""


def demo_model() -> FunctionModel:
    return FunctionModel(_respond, stream_function=_stream, model_name="demo")


async def _respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=_parts(messages, info))


async def _stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    for number, part in enumerate(_parts(messages, info)):
        if isinstance(part, TextPart):
            for word in re.findall(r"\S+\s*|\s+", part.content):
                yield word
            continue
        yield {number: DeltaToolCall(part.tool_name, tool_call_id=part.tool_call_id)}
        if isinstance(part.args, str):
            for start in range(0, len(part.args), _PIECE):
                yield {number: DeltaToolCall(json_args=part.args[start : start + _PIECE])}
        else:
            # Some providers stream arguments as one dict. The framework accepts it here too, though the type says str.
            yield {number: DeltaToolCall(json_args=cast("str", part.args))}


def _parts(messages: Sequence[ModelMessage], info: AgentInfo) -> list[TextPart | ToolCallPart]:
    prompt, since = _current_turn(messages)
    tools = [tool.name for tool in info.function_tools]
    try:
        plan = read(prompt, tools)
    except CannotFollow as error:
        return [TextPart(f"{_I_AM} I cannot follow this one: {error}.")]
    if plan.story:
        now = go_on([Happened(part.tool_name, _outcome(part), _text(part)) for part in _returns(since)], tools)
        answered = sum(isinstance(message, ModelResponse) for message in messages)
        return _make_calls(now, plan, answered)
    done = sum(1 for message in since if isinstance(message, ModelResponse) and message.tool_calls)
    if done < len(plan.rounds) and plan.rounds[done].calls:
        answered = sum(isinstance(message, ModelResponse) for message in messages)
        return _make_calls(plan.rounds[done], plan, answered)
    if plan.rounds:
        said = plan.rounds[-1].words if not done else ""
        return [TextPart(said or _report(since))]
    if _GREETING.match(prompt):
        return [TextPart(f"{_I_AM}\n\n{_help(info)}")]
    return [TextPart(f"{_I_AM} I do not know what to do with this one.\n\n{_some_examples(info)}")]


def _current_turn(messages: Sequence[ModelMessage]) -> tuple[str, Sequence[ModelMessage]]:
    """Return the text of the last prompt, and the messages after it."""
    for number in range(len(messages) - 1, -1, -1):
        prompts = [part for part in messages[number].parts if isinstance(part, UserPromptPart)]
        if prompts:
            content = prompts[-1].content
            texts = [content] if isinstance(content, str) else [c if isinstance(c, str) else "" for c in content]
            return without_mentions("\n".join(texts)), messages[number + 1 :]
    return "", messages


def _make_calls(now: Round, plan: Plan, answered: int) -> list[TextPart | ToolCallPart]:
    parts: list[TextPart | ToolCallPart] = [TextPart(now.words)] if now.words else []
    for number, call in enumerate(now.calls):
        args = call.args if plan.form == "dict" or isinstance(call.args, str) else json.dumps(call.args)
        parts.append(ToolCallPart(call.tool, args, tool_call_id=_call_id(plan.ids, answered, number)))
    return parts


def _call_id(ids: CallIds, answered: int, number: int) -> str:
    match ids:
        case "unique":
            return f"demo_{answered}_{number}"
        case "repeated":
            return f"call_{number}"
        case "duplicate":
            return "call_0"


def _report(since: Sequence[ModelMessage]) -> str:
    lines = [f"- {part.tool_name}: {_outcome(part)}: {_shorten(_text(part))}" for part in _returns(since)]
    return "\n".join(["The offline demo model reports:", *lines])


def _returns(since: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in since for part in message.parts if isinstance(part, ToolReturnPart)]


def _outcome(part: ToolReturnPart) -> str:
    if part.outcome == "denied":
        return next((words for beginning, words in _DENIALS if beginning.match(_text(part))), "rejected")
    return _OUTCOMES[part.outcome]


def _text(part: ToolReturnPart) -> str:
    return part.model_response_str(wrap_if_error=False)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_RESULT else f"{text[:_LONGEST_RESULT]}... ({len(text)} characters in all)"


def _examples(info: AgentInfo) -> list[str]:
    """Return prompts that can be followed with these tools, each as an item of a list."""
    names = [tool.name for tool in info.function_tools]
    known = {request.shows for request in REQUESTS}
    others = [tool for tool in info.function_tools if tool.name not in known]
    calls = [example_call(tool.name, tool.parameters_json_schema) for tool in others[:_MOST_CALLS]]
    plain = [request.example for request in REQUESTS if request.fits(names)]
    return [f"- `{example}`" for example in [*calls, *plain]]


def _some_examples(info: AgentInfo) -> str:
    return "\n".join(["Try one of these:", *_examples(info)[:_FEW], "- `help`"])


def _help(info: AgentInfo) -> str:
    tools = [f"- {tool.name}: {_first_line(tool.description)}" for tool in info.function_tools]
    return "\n".join(
        [
            "You can type:",
            *_examples(info),
            '- call NAME {"argument": "value"}; call OTHER {...}; then call THIRD {...}',
            "",
            "I have these tools:" if tools else "I have no tools here.",
            *tools,
        ]
    )


def _first_line(text: str | None) -> str:
    return (text or "no description").strip().splitlines()[0]
