"""Marks the tools that Signoff itself and the operator's plugins define, when they are loaded.

If such a tool declares nothing about approval, it does not ask, unless signoff.toml says otherwise. All other tools,
of an imported agent or of a capability, then ask. Decides nothing: the policy reads the mark.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool, WrapperToolset

from signoff.dataclass import dataclass
from signoff.gate.declarations import OWN


def as_own(entry: Tool[Any] | AbstractToolset[Any]) -> Tool[Any] | AbstractToolset[Any]:
    """Return the tool or the toolset, marked as the operator's own."""
    if isinstance(entry, Tool):
        return _own_tool(entry)
    if isinstance(entry, FunctionToolset):
        entry.tools = {name: _own_tool(tool) for name, tool in entry.tools.items()}
        entry.metadata = {**(entry.metadata or {}), OWN: True}  # for tools that are added later
        return entry
    return OwnToolset(entry)


def _own_tool(tool: Tool[Any]) -> Tool[Any]:
    # A copy: the plugin may have given the same tool to an agent of its own.
    own = copy(tool)
    own.metadata = {**(tool.metadata or {}), OWN: True}
    return own


@dataclass
class OwnToolset(WrapperToolset[Any]):
    """A toolset of a plugin whose tools are known only when it runs."""

    @property
    def id(self) -> str | None:
        return self.wrapped.id

    @property
    def label(self) -> str:
        return self.wrapped.label

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        return {name: replace(tool, tool_def=_own_definition(tool)) for name, tool in tools.items()}


def _own_definition(tool: ToolsetTool[Any]) -> Any:
    return replace(tool.tool_def, metadata={**(tool.tool_def.metadata or {}), OWN: True})
