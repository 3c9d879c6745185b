"""A tool's own declarations, read from its PydanticAI definition.

`requires_approval=True` always asks. `metadata={"approval": ...}` takes `"always_require"`, `"never_require"` or a
predicate `f(args, context) -> bool`, sync or async, that returns true if the call must ask.
`metadata={"read_only": True}` promises that running the call twice does no harm. `metadata={"independent": True}`
promises that the order in which calls start does not matter. A tool of an MCP server asks, unless the toolset around it
declares otherwise: a server's hints about itself are no promise.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from signoff.approvals.model import Ruling, Verdict
from signoff.approvals.policy import Declaration, Predicate

WHY = "signoff_why"
"""Metadata key: the reason for a declaration that we added because the tool made none."""
WORDS = {"always_require": Verdict.ASK, "never_require": Verdict.ALLOW}
MCP_ASKS = "a tool of an MCP server asks, unless a rule says otherwise"
MCP_READS = "its MCP server is trusted, and says that it only reads"


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
