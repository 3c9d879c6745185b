"""The two layers around the agent's toolsets: the outer one sends every call to the gate, the inner one seals it.

The outer layer also keeps the framework from deferring calls by itself. The seal is innermost: it refuses a call whose
arguments were changed between the gate and the tool.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from signoff.approvals.digest import fingerprint
from signoff.library.rulings import as_json

if TYPE_CHECKING:
    from signoff.library.gate import RunGate


@dataclass
class GatedToolset(WrapperToolset[Any]):
    gate: RunGate

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        # The framework would defer `unapproved` and `external` tools before the gate has seen their arguments.
        tools = await super().get_tools(ctx)
        self.gate.rulings.declared.update({name: tool.tool_def for name, tool in tools.items()})
        return {
            name: replace(tool, tool_def=replace(tool.tool_def, kind="function")) if tool.tool_def.defer else tool
            for name, tool in tools.items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def run(ctx: RunContext[Any], args: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, args, ctx, tool)

        return await self.gate.admit(ctx, tool.tool_def, tool_args, run)


@dataclass
class Seal(AbstractCapability[Any]):
    gate: RunGate

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return SealedToolset(toolset, self.gate)


@dataclass
class SealedToolset(WrapperToolset[Any]):
    gate: RunGate

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        admitted = self.gate.admitted.get(ctx.tool_call_id or "")
        if admitted is None or admitted != fingerprint(as_json(tool_args)):
            raise ToolFailed("Not run: the arguments were changed after the call was let in.")
        return await super().call_tool(name, tool_args, ctx, tool)
