"""What a tool says of itself, read from its PydanticAI definition.

`requires_approval=True` asks always. `metadata={"approval": ...}` takes `"always_require"`, `"never_require"` or a
predicate `f(args, context) -> bool`, sync or async, that is true where the call must ask.
`metadata={"read_only": True}` promises that running the call twice does no harm. A tool of an MCP server asks, unless
the toolset around it declares otherwise: what the server says of itself is no promise.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from signoff.approvals.model import Verdict
from signoff.approvals.policy import Declaration, Predicate

WORDS = {"always_require": Verdict.ASK, "never_require": Verdict.ALLOW}


def declaration(tool_def: ToolDefinition) -> Declaration:
    if tool_def.kind == "unapproved":
        return Verdict.ASK
    said = (tool_def.metadata or {}).get("approval")
    if callable(said):
        return cast(Predicate, said)
    if said is None:
        return None
    # A word that we do not know is a mistake of the tool's author: ask rather than guess.
    return WORDS.get(str(said), Verdict.ASK)


def is_read_only(tool_def: ToolDefinition) -> bool:
    return (tool_def.metadata or {}).get("read_only") is True


def asking_if_mcp(tool: ToolsetTool[Any], origin: AbstractToolset[Any]) -> ToolsetTool[Any]:
    metadata = tool.tool_def.metadata or {}
    if "approval" in metadata or not (_is_mcp(origin) or "annotations" in metadata):
        return tool
    return saying(tool, approval="always_require")


def only_reads(tool_def: ToolDefinition) -> bool:
    """Whether an MCP server says that its tool changes nothing."""
    said: Any = (tool_def.metadata or {}).get("annotations")
    return isinstance(said, dict) and cast("dict[str, Any]", said).get("readOnlyHint") is True


def saying(tool: ToolsetTool[Any], **words: object) -> ToolsetTool[Any]:
    metadata = {**(tool.tool_def.metadata or {}), **words}
    return replace(tool, tool_def=replace(tool.tool_def, metadata=metadata))


def _is_mcp(origin: AbstractToolset[Any]) -> bool:
    # Whoever has such a toolset has imported its module, which is slow to import for those who have none.
    module = sys.modules.get("pydantic_ai.mcp")
    return module is not None and isinstance(origin, module.MCPToolset)
