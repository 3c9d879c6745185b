"""The gate of one run: every call passes here with its final arguments, and what was shown is what runs.

It is the outermost layer around all toolsets. Calls that must ask are deferred, so that the framework gathers those of
one response; `handle_deferred_tool_calls` then has all of them decided before any of them runs. An approval is bound to
a digest of tool, schema and validated arguments and is used up by one execution; the framework's own "approved" flag
counts for nothing. It knows nothing of how a person is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolApproved, ToolDefinition, ToolDenied
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from signoff.approvals.containment import answered
from signoff.approvals.digest import fingerprint
from signoff.approvals.model import ApprovalDecision, CallKey, JsonObject, Ruling, ToolCall, Verdict
from signoff.gate.arguments import as_json
from signoff.gate.toolsets import CallTool as RunTool
from signoff.gate.toolsets import GatedToolset
from signoff.gate.transcript import response_of
from signoff.gate.wording import ASKED, HELD, NOT_AVAILABLE
from signoff.library.decider import Answer, Asker
from signoff.library.requests import build_request
from signoff.library.rulings import Rulings, has_output_call


@dataclass(frozen=True, slots=True)
class Decided:
    """An answer, the call that it is about, and how an approver changed its arguments."""

    answer: Answer
    call: ToolCall
    override: dict[str, Any] | None = None
    """As the approver wrote them."""
    validated: dict[str, Any] | None = None


@dataclass
class RunGate(AbstractCapability[Any]):
    """One per run: it keeps what was decided about the calls of this run."""

    asker: Asker
    rulings: Rulings
    hold: bool = True
    native_allowed: bool = False
    max_rounds: int = 25
    admitted: dict[str, str] = field(default_factory=dict[str, str])
    """What the seal lets through: call id to fingerprint of the arguments."""
    _approved: dict[CallKey, tuple[str, bool]] = field(default_factory=dict[CallKey, tuple[str, bool]])
    _rounds: set[int] = field(default_factory=set[int])

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GatedToolset(toolset, self)

    async def check(self, ctx: RunContext[Any], validate: Callable[..., Any], args: dict[str, Any]) -> None:
        await answered(validate, ctx, **args)  # if it asks, the framework hands it to `handle_deferred_tool_calls`

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self.rulings.responses += 1
        return response

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        # The framework validates all calls of a response before it runs any: so the first one knows of the others.
        await self.rulings.rule(ctx, tool_def, args, call.tool_call_id)
        return args

    def declare(self, tools: Mapping[str, ToolsetTool[Any]]) -> None:
        self.rulings.declared.update(tools)

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: RunTool) -> Any:
        """Let one call run, make it wait for a decision, or answer in its place."""
        if [call.tool_call_id for call in response_of(ctx).tool_calls].count(ctx.tool_call_id or "") != 1:
            raise ToolFailed("Nothing was run: several calls of one answer have the same id.")
        if self.rulings.is_external(tool_def.name):
            raise ToolFailed(NOT_AVAILABLE)
        call, ruling = await self.rulings.rule(ctx, tool_def, args, ctx.tool_call_id or "")
        if ruling.verdict is Verdict.DENY:
            return self._denied(call, ruling)
        digest, flag = self._approved.pop(call.key, (None, False))
        if digest is None:
            if ruling.verdict is Verdict.ALLOW and self.hold and self._is_held(call):
                ruling = replace(ruling, verdict=Verdict.ASK, reason=HELD, held=True)
            if ruling.verdict is Verdict.ASK:
                return await self._wait(ctx, call, ruling, None, args, run)
        elif digest != call.digest:
            raise ToolFailed("Not run: the arguments are not those that were approved.")
        try:
            return await self._run(ctx, call, args, run, approved=flag)
        except ApprovalRequired as raised:
            asked = replace(ruling, reason=ASKED, held=False)
            return await self._wait(ctx, call, asked, raised.metadata, args, run)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        """Decide about all deferred calls of one response. None of them runs before the last one is decided."""
        approvals: dict[str, ToolApproved | ToolDenied] = {}
        for part in requests.approvals:
            # Every call was seen when it was validated, also one that a hook or validator deferred before the gate.
            seen = self.rulings.seen.get(self.rulings.key(part.tool_call_id))
            if seen is None:
                approvals[part.tool_call_id] = ToolDenied("Not run: the call was deferred past the gate.")
            elif seen[1].verdict is Verdict.DENY:
                approvals[part.tool_call_id] = self._denied(*seen)
            else:
                call, ruling = seen
                if ruling.verdict is Verdict.ALLOW:
                    ruling = replace(ruling, reason=ASKED)
                decided = await self._decide(ctx, part, call, ruling, requests.metadata.get(part.tool_call_id))
                if decided.answer.approved:
                    self._approved[decided.call.key] = decided.call.digest, not ruling.held
                    approvals[part.tool_call_id] = ToolApproved(override_args=decided.override)
                else:
                    approvals[part.tool_call_id] = ToolDenied(decided.answer.refusal)
        unavailable = {part.tool_call_id: ToolFailed(NOT_AVAILABLE) for part in requests.calls}
        return requests.build_results(approvals=approvals, calls=unavailable)

    def _is_held(self, call: ToolCall) -> bool:
        """Whether a call that needs no approval by itself waits, since a person is asked about another of its response.

        Where memory, mode or nobody decides about the others, it has nothing to wait for. It is then not approved by
        anybody either, so that a tool that asks by itself still does. Its own remembered reject counts all the same.
        """
        siblings = [build_request(other, None) for other in self.rulings.asking_siblings(call)]
        own = self.asker.settled(build_request(call, None)) if siblings else None
        if own and own.how == "memory" and not own.approved:
            return True
        return not self._is_tired(call) and any(map(self.asker.asks, siblings))

    def _is_tired(self, call: ToolCall) -> bool:
        """Whether approval was asked for in so many responses that nobody is asked again."""
        return len(self._rounds | {call.key.position}) > self.max_rounds

    async def _wait(
        self,
        ctx: RunContext[Any],
        call: ToolCall,
        ruling: Ruling,
        metadata: JsonObject | None,
        args: dict[str, Any],
        run: RunTool,
    ) -> Any:
        """Defer the call to its batch; where the framework would drop a deferred call, ask about it here and now."""
        self.rulings.seen[call.key] = call, ruling
        # The flag is set once the batch was decided, or by a handler of the agent's own: there is no second batch.
        if not ctx.tool_call_approved and not has_output_call(ctx):
            raise ApprovalRequired(metadata=dict(metadata) if metadata else None)
        part = next(part for part in response_of(ctx).tool_calls if part.tool_call_id == call.key.call_id)
        decided = await self._decide(ctx, part, call, ruling, metadata)
        if not decided.answer.approved:
            return ToolDenied(decided.answer.refusal)
        args = args if decided.validated is None else decided.validated
        return await self._run(ctx, decided.call, args, run, approved=True)

    async def _decide(
        self, ctx: RunContext[Any], part: ToolCallPart, call: ToolCall, ruling: Ruling, metadata: JsonObject | None
    ) -> Decided:
        request = build_request(call, metadata, ruling)
        answer = self.asker.known(request)
        if answer is None:
            tired = self._is_tired(call)
            self._rounds.add(call.key.position)
            answer = Answer(ApprovalDecision(False), "max_rounds") if tired else await self.asker.ask(request)
        decided = Decided(answer, call)
        if answer.approved and answer.decision.override_args is not None:
            decided = await self._edited(ctx, part, call, answer, dict(answer.decision.override_args))
        self.asker.settle(request, decided.answer)
        return decided

    async def _edited(
        self, ctx: RunContext[Any], part: ToolCallPart, call: ToolCall, answer: Answer, override: dict[str, Any]
    ) -> Decided:
        """Edited arguments pass what the model's own did: schema, validators, hooks and the policy."""
        try:
            assert ctx.tool_manager is not None
            changed = replace(part, args=override)
            valid = await ctx.tool_manager.validate_tool_call(changed, approved=True, wrap_validation_errors=False)
            if valid.deferral is not None:
                raise ValueError("the tool asks again")
            edited, ruling = self.rulings.seen[call.key]
        except (ModelRetry, ToolFailed, ValueError) as error:
            words = _first_problem(error) if isinstance(error, ValidationError) else str(error)
            note = f"the arguments were edited before approval and do not fit the tool: {words}"
            return Decided(Answer(ApprovalDecision(False, note), "error"), call)
        if ruling.verdict is Verdict.DENY:
            return Decided(Answer(ApprovalDecision(False, ruling.reason), "policy"), call)
        # What is remembered, announced and bound is the validated form; the framework validates the edit itself again.
        decision = replace(answer.decision, override_args=dict(edited.args))
        return Decided(replace(answer, decision=decision), edited, override, valid.validated_args)

    async def _run(
        self, ctx: RunContext[Any], call: ToolCall, args: dict[str, Any], run: RunTool, *, approved: bool
    ) -> Any:
        self.admitted[call.key.call_id] = fingerprint(as_json(args))
        try:
            return await run(replace(ctx, tool_call_approved=approved), args)
        except ApprovalRequired as raised:
            if approved:
                raise ToolFailed("The tool asks for approval again although the call was approved.") from raised
            raise
        except CallDeferred as raised:
            raise ToolFailed(NOT_AVAILABLE) from raised

    def _denied(self, call: ToolCall, ruling: Ruling) -> ToolDenied:
        answer = Answer(ApprovalDecision(False, ruling.reason), "policy")
        self.asker.announce(call.tool, dict(call.args), answer)
        return ToolDenied(answer.refusal)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else problem["msg"]
