"""A tool's own declarations, read from its PydanticAI definition, and what its card says about it.

`requires_approval=True` always asks. `metadata={"approval": ...}` takes `"always_require"`, `"never_require"` or a
predicate `f(args, context) -> bool`, sync or async, that returns true if the call must ask.
`metadata={"read_only": True}` promises that running the call twice does no harm. `metadata={"independent": True}`
promises that the order in which calls start does not matter. `metadata={"shell": "command"}` says that the argument
`command` is a shell command line, so that rules compare its words. A tool of an MCP server asks, unless the toolset
around it declares otherwise: a server's hints about itself are no promise.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from signoff.approvals.model import Ruling, Verdict
from signoff.approvals.policy import Declaration, Predicate
from signoff.approvals.tool_description import ToolDescription
from signoff.gate.arguments import origin_of

TRUSTED = "signoff_trusted"
"""Metadata key: whether the operator trusts the MCP server of this tool."""
WHY = "signoff_why"
"""Metadata key: the reason for a declaration that we added because the tool made none."""
WORDS = {"always_require": Verdict.ASK, "never_require": Verdict.ALLOW}
MCP_ASKS = "a tool of an MCP server asks, unless a rule says otherwise"
MCP_READS = "its MCP server is trusted, and says that it only reads"

SENTENCE = 200
"""Most characters of a description that are kept. A card shows fewer."""
NAMES = 100
"""Most arguments whose order is kept."""
DEFAULTS = 2000
"""Most characters of JSON that are kept of a tool's defaults."""
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_END = re.compile(r"(?<=[.!?])\s")
_HINTS = {
    "readOnlyHint": ("read-only", "changes things"),
    "destructiveHint": ("destructive", "not destructive"),
    "idempotentHint": ("no further effect if repeated", "repeating it has further effects"),
    "openWorldHint": ("reaches outside systems", "reaches no outside systems"),
}
"""Name of an MCP hint -> our words for true and for false."""


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


def is_read_only(tool_def: ToolDefinition) -> bool:
    return (tool_def.metadata or {}).get("read_only") is True


def is_independent(tool_def: ToolDefinition) -> bool:
    """Whether the order in which this tool's calls start does not matter."""
    return (tool_def.metadata or {}).get("independent") is True


def shell_arguments(tool_def: ToolDefinition) -> tuple[str, ...]:
    """Return the names of the arguments that the tool declares to be shell commands."""
    said: Any = (tool_def.metadata or {}).get("shell")
    if isinstance(said, str):
        return (said,)
    return tuple(map(str, cast("list[Any]", said))) if isinstance(said, list | tuple) else ()


def asking_if_mcp(tool: ToolsetTool[Any], origin: AbstractToolset[Any]) -> ToolsetTool[Any]:
    metadata = tool.tool_def.metadata or {}
    if "approval" in metadata or not (is_mcp(origin) or "annotations" in metadata):
        return tool
    return saying(tool, "always_require", MCP_ASKS)


def only_reads(tool_def: ToolDefinition) -> bool:
    """Whether an MCP server says that its tool changes nothing."""
    said: Any = (tool_def.metadata or {}).get("annotations")
    return isinstance(said, dict) and cast("dict[str, Any]", said).get("readOnlyHint") is True


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
    title = hints.get("title")
    return ToolDescription(
        sentence=first_sentence(definition.description or ""),
        title=title[:SENTENCE] if isinstance(title, str) else "",
        from_mcp=from_mcp,
        trusted=from_mcp and metadata.get(TRUSTED) is True,
        hints=tuple(words[0 if hints[name] else 1] for name, words in _HINTS.items() if _is_flag(hints.get(name))),
        order=tuple(list(_properties(definition))[:NAMES]),
        # An MCP server could name a harmful value as the default, so that the card shows it in small print.
        defaults={} if from_mcp else _defaults(definition),
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
