"""A tool's own declarations, read from its PydanticAI definition, and what its card says about it.

`requires_approval=True` always asks. `metadata={"approval": ...}` takes `"always_require"`, `"never_require"` or a
predicate `f(args, context)`, sync or async, that returns True, False, or the reason why the call must ask. The marks
`read_only`, `acts`, `destructive` and `idempotent` are read here and nowhere else. `metadata={"independent": True}`
promises that the order in which calls start does not matter. `metadata={"shell": "command"}` says that the argument
`command` is a shell command line, so that rules compare its words. A tool of an MCP server asks, unless the toolset
around it declares otherwise: a server's hints about itself are no promise, unless the operator trusts the server.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import FunctionType
from typing import Any, TypeVar, cast

from pydantic_ai import ToolDefinition
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool

from signoff.approvals.model import Ruling, Verdict
from signoff.approvals.policy import Declaration, Predicate
from signoff.approvals.tool_description import Marks, ToolDescription
from signoff.gate.arguments import innermost, origin_of
from signoff.text.patterns import lazy_pattern

TRUSTED = "signoff_trusted"
"""Metadata key: whether the operator trusts the MCP server of this tool."""
TITLE = "signoff_title"
"""Metadata key: the title of an MCP tool, if it is not among the hints."""
OWN = "signoff_own"
"""Metadata key: whether Signoff itself or a plugin of the operator defines this tool."""
ASKS_PEOPLE = "asks_people"
"""Metadata key: the tool's author says that it does nothing but ask people. See `asking_people`."""
MAY_ASK = "signoff_may_ask"
"""Metadata key: whether the tool may ask people something while it runs. See `live_calls`."""
WHY = "signoff_why"
"""Metadata key: the reason for a declaration that we added because the tool made none."""
WORDS = {"always_require": Verdict.ASK, "never_require": Verdict.ALLOW}
MCP_ASKS = "a tool of an MCP server asks, unless a rule says otherwise"
MCP_READS = "its MCP server is trusted, and says that it only reads"

HARNESS_DELEGATES = ("pydantic_ai_harness.subagents", "pydantic_ai_harness.code_mode")
"""Modules of pydantic-ai-harness whose tools run agents or make calls, and do nothing else."""
HARNESS_CONTROLS = ("list_tasks", "message_task", "answer_task", "cancel_task", "create_agent")
"""The tools of these modules that do something themselves."""

HARNESS_ASKS = "pydantic_ai_harness.ask_user"
ONLY_ASKS = "it only asks people, who answer on a card"
SENTENCE = 200
"""Most characters of a description that are kept. A card shows fewer."""
NAMES = 100
"""Most arguments whose order is kept."""
DEFAULTS = 2000
"""Most characters of JSON that are kept of a tool's defaults."""
_SUMMARY = lazy_pattern(r"<summary>(.*?)</summary>", re.DOTALL)
_END = lazy_pattern(r"(?<=[.!?])\s")
F = TypeVar("F")
_ONLY_ASKING: set[object] = set()
_HINTS = {
    "readOnlyHint": ("read-only", "changes things"),
    "destructiveHint": ("destructive", "not destructive"),
    "idempotentHint": ("no further effect if repeated", "repeating it has further effects"),
    "openWorldHint": ("reaches outside systems", "reaches no outside systems"),
}
"""Name of an MCP hint -> our words for true and for false."""
_MARKED_BY = {"readOnlyHint": "read_only", "destructiveHint": "destructive", "idempotentHint": "idempotent"}
"""Name of an MCP hint -> the mark that it is."""


def declaration(tool_def: ToolDefinition) -> Declaration:
    if tool_def.kind == "unapproved":
        return Verdict.ASK
    said = (tool_def.metadata or {}).get("approval")
    if callable(said):
        return cast(Predicate, said)
    if said is None:
        return None
    # An unknown word is a mistake of the tool's author: ask rather than guess.
    verdict = WORDS.get(str(said), Verdict.ASK)
    why = (tool_def.metadata or {}).get(WHY)
    return Ruling(verdict, why) if isinstance(why, str) else verdict


def marks_of(tool_def: ToolDefinition) -> Marks:
    metadata = tool_def.metadata or {}
    return Marks.read(metadata, own=metadata.get(OWN) is True)


def is_read_only(tool_def: ToolDefinition) -> bool:
    return marks_of(tool_def).read_only is True


def is_independent(tool_def: ToolDefinition) -> bool:
    """Whether the order in which this tool's calls start does not matter."""
    return (tool_def.metadata or {}).get("independent") is True


def only_asking(function: F) -> F:
    """Mark a function of Signoff's own tools that does nothing but ask people.

    Other people's word for it is not enough: if a rule asks about their tool, its code does not run before that.
    """
    _ONLY_ASKING.add(function)
    return function


def only_asks(tool: ToolsetTool[Any]) -> bool:
    """Whether a call of this tool certainly does nothing but ask people, so that nobody has to approve it first."""
    if tool.tool_def.kind == "external" or _function_of(tool) in _ONLY_ASKING:
        return True
    origin = origin_of(tool)
    # Its author may have given it another way to reach a person. Then it runs as it is.
    return type(origin).__module__.startswith(HARNESS_ASKS) and getattr(origin, "_answerer", ...) is None


def says_it_asks(tool_def: ToolDefinition) -> bool:
    """Whether the tool's author says that it does nothing but ask people."""
    return (tool_def.metadata or {}).get(ASKS_PEOPLE) is True


def may_ask_people(tool_def: ToolDefinition) -> bool:
    """Whether the tool may ask people something while it runs."""
    return (tool_def.metadata or {}).get(MAY_ASK) is True


def runs_agents(tool: ToolsetTool[Any]) -> bool:
    """Whether the tool is known to run agents: it says so, or its function uses an agent of its module or closure.

    Its call is repeated after a restart, since what its agents did is in the book of calls.
    """
    said = (tool.tool_def.metadata or {}).get("delegate")
    if isinstance(said, bool):
        return said
    origin, inner = origin_of(tool), innermost(tool)
    if any(type(one).__module__.startswith(HARNESS_DELEGATES) for one in (tool, origin)):
        return inner.tool_def.name not in HARNESS_CONTROLS
    function = _function_of(tool)
    return inspect.isfunction(function) and any(isinstance(value, AbstractAgent) for value in _used_by(function))


def _function_of(tool: ToolsetTool[Any]) -> object:
    """Return the function that the tool calls, without its decorators; None if it calls none."""
    origin, inner = origin_of(tool), innermost(tool)
    if not isinstance(origin, FunctionToolset):
        return None
    known = origin.tools.get(getattr(inner, "original_name", None) or inner.tool_def.name)
    return inspect.unwrap(known.function) if known else None


def _used_by(function: FunctionType) -> Iterator[Any]:
    names = function.__code__.co_names
    yield from (function.__globals__[name] for name in names if name in function.__globals__)
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not set yet
            yield cell.cell_contents


def shell_arguments(tool_def: ToolDefinition) -> tuple[str, ...]:
    """Return the names of the arguments that the tool declares to be shell commands."""
    said: Any = (tool_def.metadata or {}).get("shell")
    if isinstance(said, str):
        return (said,)
    return tuple(map(str, cast("list[Any]", said))) if isinstance(said, list | tuple) else ()


def asking_if_mcp(tool: ToolsetTool[Any], origin: AbstractToolset[Any]) -> ToolsetTool[Any]:
    metadata = tool.tool_def.metadata or {}
    if "approval" in metadata or not (is_mcp(origin) or "annotations" in metadata) or is_read_only(tool.tool_def):
        return tool
    return saying(tool, "always_require", MCP_ASKS)


def hinted_marks(tool_def: ToolDefinition) -> dict[str, bool]:
    """Return the marks that an MCP server gives its tool: mark name -> value."""
    said: Any = (tool_def.metadata or {}).get("annotations")
    hints = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    return {mark: hints[hint] for hint, mark in _MARKED_BY.items() if _is_flag(hints.get(hint))}


def saying(tool: ToolsetTool[Any], approval: str, why: str, **words: object) -> ToolsetTool[Any]:
    """Return the tool with a declaration that we add."""
    metadata = {**(tool.tool_def.metadata or {}), "approval": approval, WHY: why, **words}
    return replace(tool, tool_def=replace(tool.tool_def, metadata=metadata))


def is_mcp(origin: AbstractToolset[Any]) -> bool:
    """Whether the toolset is an MCP server, no matter who brought it."""
    # Importing the module is slow, and not needed: it is already loaded if any such toolset exists.
    module = sys.modules.get("pydantic_ai.mcp")
    return module is not None and isinstance(origin, module.MCPToolset)


def describe_tool(tool: ToolsetTool[Any]) -> ToolDescription:
    definition = tool.tool_def
    metadata = definition.metadata or {}
    annotations: Any = metadata.get("annotations")
    hints = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    from_mcp = is_mcp(origin_of(tool)) or "annotations" in metadata
    title = metadata.get(TITLE) or hints.get("title")
    return ToolDescription(
        sentence=first_sentence(definition.description or ""),
        title=title[:SENTENCE] if isinstance(title, str) else "",
        from_mcp=from_mcp,
        trusted=from_mcp and metadata.get(TRUSTED) is True,
        hints=tuple(words[0 if hints[name] else 1] for name, words in _HINTS.items() if _is_flag(hints.get(name))),
        order=tuple(list(_properties(definition))[:NAMES]),
        # An MCP server could name a harmful value as the default, so that the card shows it in small print.
        defaults={} if from_mcp else _defaults(definition),
        marks=marks_of(definition),
        shell=shell_arguments(definition),
    )


def first_sentence(description: str) -> str:
    """Return the first sentence of a description, on one line."""
    inner = _SUMMARY.search(description)
    text = (inner[1] if inner else description).strip()
    paragraph = " ".join(text.split("\n\n", 1)[0].split())
    return _END.split(paragraph, maxsplit=1)[0][:SENTENCE]


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _properties(definition: ToolDefinition) -> Mapping[str, Any]:
    found: Any = definition.parameters_json_schema.get("properties")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _defaults(definition: ToolDefinition) -> dict[str, Any]:
    defaults = {
        name: cast("dict[str, Any]", schema)["default"]
        for name, schema in _properties(definition).items()
        if isinstance(schema, dict) and "default" in schema
    }
    try:
        fits = len(json.dumps(defaults, allow_nan=False)) <= DEFAULTS
    except (TypeError, ValueError, RecursionError):
        fits = False
    return defaults if fits else {}
