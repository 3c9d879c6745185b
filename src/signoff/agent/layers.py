"""The two layers around all toolsets: the outer one leads every call to the gate, the inner one checks what comes out.

Neither knows the policy. Where they sit in the framework decides whether the gate holds: see docs/decisions/002.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_jsonable_python

from signoff.agent.declared import asking_if_mcp
from signoff.approvals.digest import fingerprint

CallTool = Callable[[RunContext[Any], dict[str, Any]], Awaitable[Any]]


class Keeper(Protocol):
    """A gate as the layers need it."""

    admitted: dict[str, str]
    """Fingerprints of the arguments that were let in, by call id."""

    def declare(self, tools: Mapping[str, ToolsetTool[Any]]) -> None:
        """The tools of this step, as their toolsets declare them."""
        ...

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        """Let one call run, make it wait, or answer in its place."""
        ...


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """The outer layer: every call goes to the gate, and none is classified away before it gets there."""

    gate: Keeper

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        # The framework defers `unapproved` and `external` tools by itself, on arguments that nobody has validated.
        found = await super().get_tools(ctx)
        tools = {name: asking_if_mcp(tool, origin_of(tool)) for name, tool in found.items()}
        self.gate.declare(tools)
        return {
            name: replace(tool, tool_def=replace(tool.tool_def, kind="function")) if tool.tool_def.defer else tool
            for name, tool in tools.items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def run(approved_ctx: RunContext[Any], args: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, args, approved_ctx, tool)

        return await self.gate.admit(ctx, tool.tool_def, tool_args, run)


@dataclass
class Seal(AbstractCapability[Any]):
    """The inner layer: what reaches the tool is what the gate let in."""

    gate: Keeper

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return SealedToolset(toolset, self.gate)


@dataclass
class SealedToolset(WrapperToolset[Any]):
    gate: Keeper

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        admitted = self.gate.admitted.get(ctx.tool_call_id or "")
        if admitted is None or admitted != fingerprint(as_json(tool_args)):
            raise ToolFailed("Not run: the arguments were changed after the call was let in.")
        return await super().call_tool(name, tool_args, ctx, tool)


def as_json(args: dict[str, Any]) -> dict[str, Any]:
    return to_jsonable_python(args, bytes_mode="base64", inf_nan_mode="constants")


def source_of(tool: ToolsetTool[Any]) -> str:
    """Where a tool comes from, the same after every start: a tool of that name from elsewhere is another tool."""
    return origin_of(tool).label


def origin_of(tool: ToolsetTool[Any]) -> AbstractToolset[Any]:
    while isinstance(inner := getattr(tool, "source_tool", None), ToolsetTool):
        tool = inner  # pyright: ignore[reportUnknownVariableType]
    toolset = tool.toolset
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    return toolset
