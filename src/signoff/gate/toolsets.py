"""The two layers around all toolsets: the outer one passes every call to the gate, the inner one checks what runs.

Neither knows the policy. Their position in the framework is essential for the gate's safety: see docs/decisions/002.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.capabilities import CapabilityOrdering
from pydantic_ai.exceptions import ModelRetry, ToolFailed, ToolFailedError, ToolRetryError, UserError
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from signoff.approvals.digest import fingerprint
from signoff.approvals.large_values import off_loop_if_large
from signoff.dataclass import dataclass
from signoff.gate.arguments import origin_of, seal_of
from signoff.gate.declarations import ONLY_ASKS, asking_if_mcp, is_mcp, marks_of, only_asks, saying, says_it_asks
from signoff.gate.lost_calls import lost
from signoff.gate.passing_events import PassesEvents
from signoff.gate.pending_call import CallTool

FINDERS = ("tool-search", "capability-load")
"""The framework's names for its own tools that find and load other tools."""


class Keeper(Protocol):
    """A gate as the layers need it."""

    native_allowed: bool
    """Whether tools that the model's provider executes may be offered to the model at all."""

    admitted: dict[str, str]
    """Call id -> fingerprint of the arguments that were let in."""

    def moved(self, ctx: RunContext[Any], tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
        """Return the tool so that its own code runs where it can stop nothing else."""
        ...

    async def check(self, ctx: RunContext[Any], validate: Callable[..., Any], args: dict[str, Any]) -> None:
        """Run a tool's own validator on the arguments. The validator may already ask for approval."""
        ...

    def declare(self, tools: Mapping[str, ToolsetTool[Any]]) -> None:
        """Note the tools of this step, as their toolsets declare them."""
        ...

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        """Let one call run, defer it, or return a refusal or a stored result in its place."""
        ...


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """The outer layer: every call goes to the gate, and the framework defers none before that."""

    gate: Keeper

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        # The framework would defer `unapproved` and `external` tools by itself, with arguments that are not validated.
        found = await super().get_tools(ctx)
        tools = {name: _declared(tool) for name, tool in found.items()}
        self.gate.declare(tools)
        return {name: self._as_gated(tool) for name, tool in tools.items()}

    def _as_gated(self, tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
        if tool.args_validator_func:
            tool = replace(tool, args_validator_func=self._checking(tool.args_validator_func))
        return replace(tool, tool_def=replace(tool.tool_def, kind="function")) if tool.tool_def.defer else tool

    def _checking(self, validate: Callable[..., Any]) -> Callable[..., Any]:
        async def validator(ctx: RunContext[Any], /, **args: Any) -> None:
            await self.gate.check(ctx, validate, args)

        return validator

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def run(approved_ctx: RunContext[Any], args: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, args, approved_ctx, tool)

        return await self.gate.admit(ctx, tool.tool_def, tool_args, run)


def _as_mcp(tool: ToolsetTool[Any], origin: AbstractToolset[Any]) -> ToolsetTool[Any]:
    """If the tool is an MCP server's, let it ask, and let its arguments be checked against its schema."""
    tool = asking_if_mcp(tool, origin)
    if tool.args_validator_func or not is_mcp(origin):
        return tool
    from signoff.gate.mcp_arguments import fitting  # only if there is an MCP server: the library loads slowly

    return fitting(tool)


@dataclass
class Seal(PassesEvents):
    """The inner layer: a tool gets only the arguments that the gate let in, and the model's provider runs no tools."""

    gate: Keeper

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return SealedToolset(toolset, self.gate)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        # Check here and not at the gate, to see also the tools that capabilities in between add on the way.
        if request_context.model_request_parameters.native_tools and not self.gate.native_allowed:
            from signoff.gate.provider_tools import only_local  # most runs have no such tools

            if names := ", ".join(sorted(only_local(request_context))):
                raise UserError(
                    f"Tools that the model's provider executes bypass every approval and are refused: {names}"
                )
        return request_context


@dataclass
class SealedToolset(WrapperToolset[Any]):
    gate: Keeper

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        admitted = self.gate.admitted.get(ctx.tool_call_id or "")
        if admitted is None or admitted != await off_loop_if_large(tool_args, lambda: seal_of(tool_args)):
            raise ToolFailed("Not run: the arguments were changed after the call was let in.")
        try:
            return await super().call_tool(name, tool_args, ctx, self.gate.moved(ctx, tool))
        except Exception as error:
            idempotent = marks_of(tool.tool_def).idempotent is True
            if is_mcp(origin_of(tool)) and (failure := lost(name, error, idempotent=idempotent)):
                raise failure from error
            raise


def _declared(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    """Return the tool with our declaration, if it only asks people, or if an MCP server or the framework brings it."""
    ours = tool.tool_def.tool_kind in FINDERS and type(tool.toolset).__module__.startswith("pydantic_ai.")
    if ours:
        return saying(tool, "never_require", "it only finds or loads tools, which pass the gate", read_only=True)
    asks = only_asks(tool) or says_it_asks(tool.tool_def)
    if asks and "approval" not in (tool.tool_def.metadata or {}):
        return saying(tool, "never_require", ONLY_ASKS)
    return _as_mcp(tool, origin_of(tool))


def around_the_gate(handler: Callable[[dict[str, Any]], Awaitable[Any]]) -> CallTool:
    """Return how to call a tool of a wrapper that is around the gate, with the failures as the tool raised them."""

    async def run(ctx: RunContext[Any], args: dict[str, Any]) -> Any:
        try:
            return await handler(args)
        except (ToolRetryError, ToolFailedError) as error:
            if isinstance(error.__cause__, ModelRetry | ToolFailed):
                raise error.__cause__ from None
            raise

    return run


def schema_of(name: str, tool: ToolsetTool[Any]) -> str:
    """Return a fingerprint of the tool's name, parameters and source, which is part of every call's digest."""
    return fingerprint({"name": name, "parameters": tool.tool_def.parameters_json_schema, "source": source_of(tool)})


def source_of(tool: ToolsetTool[Any]) -> str:
    """Return where a tool comes from, as a label that restarts do not change.

    A tool with the same name from elsewhere is another tool.
    """
    return origin_of(tool).label
