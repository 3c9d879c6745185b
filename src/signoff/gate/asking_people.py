"""Tools that ask people something: what they ask, and the form for the answer, which becomes the tool's result.

A tool asks by raising `CallDeferred`. Its metadata may have a `question` and a `schema` for the answer; without a
schema, the tool's own return type makes the form. An external tool, which no code of ours runs, asks at once, and so
does the ask-user tool of pydantic-ai-harness. MCP servers ask in another way: see `live_calls`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Never, cast

from pydantic_ai import CallDeferred, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import to_jsonable_python

from signoff.approvals.answer_forms import Unaskable, inquire
from signoff.approvals.inquiries import Inquiry
from signoff.approvals.model import JsonObject, ToolCall
from signoff.gate import wording
from signoff.gate.arguments import origin_of
from signoff.gate.declarations import HARNESS_ASKS, says_it_asks

HARNESS_TOOL = "ask_user_question"
ANYTHING: JsonObject = {"type": "string", "title": "Answer"}


async def elsewhere(ctx: RunContext[Any], args: dict[str, Any]) -> Never:
    """Stand for a tool that no code of ours runs: people give its result."""
    raise CallDeferred


def inquiry_of_tool(tool: ToolsetTool[Any], call: ToolCall, metadata: Mapping[str, Any] | None) -> Inquiry:
    """Return what the call asks people. `metadata`: that of the `CallDeferred`. Raises ToolFailed if it is too much."""
    if type(origin_of(tool)).__module__.startswith(HARNESS_ASKS):
        try:
            return _asked_by_harness(call.args)
        except Unaskable as error:
            raise ToolFailed(wording.unaskable(error)) from error
    inquiry = _asked(metadata, tool.tool_def.return_schema)
    return replace(inquiry, tells_all=says_it_asks(tool.tool_def))


def inquiry_without_tool(name: str, args: JsonObject, metadata: Mapping[str, Any] | None) -> Inquiry:
    """Return what a deferred call asks people, where only the call itself is known and not its tool."""
    if name == HARNESS_TOOL:
        with suppress(Unaskable, KeyError, TypeError, AttributeError):
            return replace(_asked_by_harness(args), tells_all=False)  # it may be another tool of the same name
    return _asked(metadata)


def _asked(metadata: Mapping[str, Any] | None, returned: JsonObject | None = None) -> Inquiry:
    said: dict[str, Any] = to_jsonable_python(dict(metadata or {}), fallback=str)
    words = next((str(said[name]) for name in ("question", "message", "summary", "reason") if said.get(name)), "")
    schema = said.get("schema") or returned or ANYTHING
    try:
        return inquire(words, cast(JsonObject, schema))
    except Unaskable:
        return inquire(words[:1000], {"title": "Answer"})  # as JSON


def _asked_by_harness(args: JsonObject) -> Inquiry:
    """Return the questions of `ask_user_question`, whose result is header -> the chosen labels."""
    fields: dict[str, Any] = {}
    for question in args["questions"]:
        options = [
            {"const": one["label"], "title": one["label"], "description": one.get("description") or ""}
            for one in question["options"]
        ]
        most = {} if question.get("multi_select") else {"maxItems": 1}
        choice = {"type": "array", "items": {"oneOf": options}, "minItems": 1, **most}
        fields[question["header"]] = {**choice, "description": question["question"]}
    return inquire("", {"properties": fields, "required": list(fields)}, tells_all=True)
