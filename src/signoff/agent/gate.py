"""The gate: every tool call of every kind passes here, with the arguments that would really be used.

It is the outermost layer around all toolsets, so no hook of another capability runs behind it; an innermost seal
refuses the call if a layer in between changed the arguments after all. It trusts the desk's decision for the call's
digest and nothing else: the framework's own "approved" flag is neither read nor believed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolDefinition, ToolDenied
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_jsonable_python

from signoff.agent.bridge import said, told
from signoff.agent.declared import declaration, is_read_only
from signoff.agent.floor import Floor, ToolOverran
from signoff.agent.journal import Ask, Go, Journal, Replay, Settled
from signoff.approvals.digest import bind, fingerprint
from signoff.approvals.model import CallKey, JsonObject, RequestKind, Ruling, ToolCall, Verdict
from signoff.approvals.policy import Context, Policy
from signoff.turns.model import CallState, Turn

CallTool = Callable[[RunContext[Any]], Awaitable[Any]]

INTERRUPTED = "the bot was stopped while this call was running"
HELD = "it waits with the other calls of the same answer"


@dataclass(frozen=True, slots=True)
class Draft:
    """A call that must be asked about, on its way to a card."""

    call: ToolCall
    ruling: Ruling
    kind: RequestKind = RequestKind.CALL
    metadata: JsonObject = field(default_factory=dict[str, Any])


@dataclass
class Gate(AbstractCapability[Any]):
    """One per run step of a turn: it remembers what this response's calls were ruled to be."""

    policy: Policy
    journal: Journal
    turn: Turn
    floor: Floor
    hold: bool = True
    calls_per_response: int = 10
    drafts: dict[str, Draft] = field(default_factory=dict[str, Draft])
    ran: dict[CallKey, str] = field(default_factory=dict[CallKey, str])
    _rulings: dict[CallKey, Ruling] = field(default_factory=dict[CallKey, Ruling])
    _admitted: dict[str, str] = field(default_factory=dict[str, str])
    _declared: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GatedToolset(toolset, self)

    def seal(self) -> Seal:
        return Seal(self)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if native := request_context.model_request_parameters.native_tools:
            names = ", ".join(sorted(tool.kind for tool in native))
            raise UserError(f"tools that the model's provider executes cannot be gated and are refused: {names}")
        return request_context

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        # All calls of a response are validated before any runs, so that the batch is known when the first one runs.
        described = self._describe(tool_def, args, ctx, call.tool_call_id)
        self._rulings[described.key] = await self._rule(described, ctx)
        return args

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        """Let one call run, make it wait, or answer in its place."""
        ids = [call.tool_call_id for call in _response(ctx).tool_calls]
        if len(ids) > self.calls_per_response:
            raise ToolFailed(f"Nothing was run: {len(ids)} calls in one answer, {self.calls_per_response} are allowed.")
        if ids.count(ctx.tool_call_id or "") != 1:
            raise ToolFailed("Nothing was run: several calls of one answer have the same id.")
        if self._declared.get(tool_def.name, tool_def).kind == "external":
            raise ToolFailed("This tool is not available here: it would have to be executed elsewhere.")
        call = self._describe(tool_def, args, ctx, ctx.tool_call_id or "")
        ruling = await self._rule(call, ctx)
        if ruling.verdict is Verdict.DENY:
            return ToolDenied(f"Not allowed: {ruling.reason}. The call was not run.")
        if ruling.verdict is Verdict.ALLOW and self.hold and self._must_wait(call):
            ruling = replace(ruling, verdict=Verdict.ASK, reason=HELD)
        await self.floor.wait_open()
        entry = await self.journal.enter(call, asks=ruling.verdict is Verdict.ASK, read_only=is_read_only(tool_def))
        match entry:
            case Ask(RequestKind.MAY_HAVE_RUN):
                raise self._draft(Draft(call, replace(ruling, reason=INTERRUPTED), entry.kind))
            case Ask():
                raise self._draft(Draft(call, ruling))
            case Settled():
                return ToolDenied(told(entry.request, changed=entry.changed))
            case Replay():
                return self._replay(call, entry)
            case Go():
                self._admitted[call.key.call_id] = fingerprint(call.args)
                return await self._run(call, ruling, run, replace(ctx, tool_call_approved=entry.approved))

    async def _run(self, call: ToolCall, ruling: Ruling, run: CallTool, ctx: RunContext[Any]) -> Any:
        try:
            async with self.floor.occupy():
                result = await run(ctx)
        except ApprovalRequired as raised:
            await self.journal.withdraw(call)
            reason = "the tool itself asks, for these arguments"
            raise self._draft(Draft(call, replace(ruling, reason=reason), metadata=raised.metadata or {})) from raised
        except (ModelRetry, ToolFailed) as failure:
            await self.journal.failed(call, failure.message)
            raise
        except CallDeferred as raised:
            words = "This tool is not available here: it would have to be executed elsewhere."
            await self.journal.failed(call, words)
            raise ToolFailed(words) from raised
        except Exception as error:
            # An exception of one tool would cancel its siblings and end the turn: the model gets a failed result.
            words = (
                str(error) if isinstance(error, ToolOverran) else f"The tool failed: {type(error).__name__}: {error}"
            )
            await self.journal.failed(call, words)
            raise ToolFailed(words) from error
        self.ran[call.key] = call.tool
        return await self.journal.done(call, result)

    def _replay(self, call: ToolCall, entry: Replay) -> Any:
        self.ran[call.key] = call.tool
        if entry.record.state is CallState.FAILED:
            raise ToolFailed(entry.failure)
        return entry.result

    def _draft(self, draft: Draft) -> ApprovalRequired:
        self.drafts[draft.call.key.call_id] = draft
        return ApprovalRequired()

    def _must_wait(self, call: ToolCall) -> bool:
        """Whether another call of the same response has to ask."""
        return any(
            ruling.verdict is Verdict.ASK and key.position == call.key.position and key != call.key
            for key, ruling in self._rulings.items()
        )

    async def _rule(self, call: ToolCall, ctx: RunContext[Any]) -> Ruling:
        declared = declaration(self._declared[call.tool])
        conversation = said(ctx.messages) if callable(declared) else ()
        return await self.policy.decide(call, declared, Context(self.turn.place, self.turn.asker, conversation))

    def _describe(self, tool_def: ToolDefinition, args: dict[str, Any], ctx: RunContext[Any], call_id: str) -> ToolCall:
        position = sum(isinstance(message, ModelResponse) for message in ctx.messages)
        key = CallKey(self.turn.place.conversation, position, call_id)
        schema = fingerprint({"name": tool_def.name, "parameters": tool_def.parameters_json_schema})
        try:
            call = ToolCall(key, tool_def.name, _as_json(args), schema)
            return bind(call, self.turn.place)
        except (ValueError, TypeError, RecursionError) as error:
            raise ToolFailed(f"Nothing was run: the arguments cannot be shown to a person ({error}).") from error


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """The outer layer: every call goes to the gate, and none is classified away before it gets there."""

    gate: Gate

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        # The framework defers `unapproved` and `external` tools by itself, on arguments that nobody has validated.
        tools = await super().get_tools(ctx)
        self.gate._declared.update({name: tool.tool_def for name, tool in tools.items()})  # pyright: ignore[reportPrivateUsage]
        return {
            name: replace(tool, tool_def=replace(tool.tool_def, kind="function")) if tool.tool_def.defer else tool
            for name, tool in tools.items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def run(approved_ctx: RunContext[Any]) -> Any:
            return await self.wrapped.call_tool(name, tool_args, approved_ctx, tool)

        return await self.gate.admit(ctx, tool.tool_def, tool_args, run)


@dataclass
class Seal(AbstractCapability[Any]):
    """The inner layer: what reaches the tool is what the gate let in."""

    gate: Gate

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return SealedToolset(toolset, self.gate)


@dataclass
class SealedToolset(WrapperToolset[Any]):
    gate: Gate

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        admitted = self.gate._admitted.get(ctx.tool_call_id or "")  # pyright: ignore[reportPrivateUsage]
        if admitted is None or admitted != fingerprint(_as_json(tool_args)):
            raise ToolFailed("Not run: the arguments were changed after the call was let in.")
        return await super().call_tool(name, tool_args, ctx, tool)


def _response(ctx: RunContext[Any]) -> ModelResponse:
    return next(message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))


def _as_json(args: dict[str, Any]) -> dict[str, Any]:
    return to_jsonable_python(args, bytes_mode="base64", inf_nan_mode="constants")
