"""Examples of prompts that the demo model understands, for any tool, made from the schema of its arguments.

The values are plausible fillers, since nobody here knows what the tool is for.
"""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.toolsets import FunctionToolset

from signoff.agent.demo.grammar import REQUESTS
from signoff.servers.tool_names import ACTING, READING

Schema = dict[str, Any]

_DEEPEST = 4
_FILLERS: dict[str, Any] = {"string": "example", "integer": 1, "number": 1, "boolean": True, "null": None}


def examples_for(agent: AbstractAgent[Any, Any]) -> list[tuple[str, str]]:
    """Return name and example for each function tool: first those that the table of requests does not know.

    Discord tools that the table does not know are last, because made-up ids lead nowhere. The tools of MCP servers are
    not known before a run.
    """
    tools = [
        tool.tool_def for each in agent.toolsets if isinstance(each, FunctionToolset) for tool in each.tools.values()
    ]
    known = {request.shows: request.example for request in REQUESTS if request.shows}
    own = [
        (tool.name, example_call(tool.name, tool.parameters_json_schema)) for tool in tools if tool.name not in known
    ]
    names = {tool.name for tool in tools}
    last = {*READING, *ACTING}
    shown = [(name, example) for name, example in known.items() if name in names]
    return [one for one in own if one[0] not in last] + shown + [one for one in own if one[0] in last]


def example_call(tool: str, schema: Schema) -> str:
    """Return `call TOOL {...}` with a value for each required argument."""
    return f"call {tool} {json.dumps(_object(schema, schema, 0), ensure_ascii=False)}"


def _object(part: Schema, whole: Schema, depth: int) -> dict[str, Any]:
    properties: dict[str, Schema] = part.get("properties") or {}
    wanted = [name for name in properties if name in (part.get("required") or ())]
    return {name: _value(properties[name], whole, depth + 1) for name in wanted}


def _value(given: Any, whole: Schema, depth: int) -> Any:
    part = _resolved(cast(Schema, given) if isinstance(given, dict) else {}, whole)
    if "const" in part:
        return part["const"]
    if "default" in part:
        return _on_one_line(part["default"])
    if part.get("examples"):
        return _on_one_line(part["examples"][0])
    if part.get("enum"):
        return part["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if part.get(key):
            return _value(part[key][0], whole, depth + 1) if depth < _DEEPEST else None
    kind = part.get("type")
    if kind == "object" or "properties" in part:
        return _object(part, whole, depth) if depth < _DEEPEST else {}
    if kind == "array":
        return [_value(part["items"], whole, depth + 1)] if part.get("items") and depth < _DEEPEST else []
    if kind in ("integer", "number"):
        return part.get("minimum", part.get("exclusiveMinimum", 0) + 1)
    return _FILLERS.get(str(kind), "example")


def _on_one_line(value: Any) -> Any:
    """Return only the first line of a text: people read it on a button, where JSON shows a line break as two signs."""
    return next(iter(value.splitlines()), "") if isinstance(value, str) else value


def _resolved(part: Schema, whole: Schema) -> Schema:
    """Follow one reference inside the schema, as pydantic writes them."""
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    definitions: dict[str, Schema] = whole.get("$defs") or {}
    return definitions.get(name, part)
