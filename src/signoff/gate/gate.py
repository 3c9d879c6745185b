"""The gate: every tool call of every kind passes here, with the arguments that would really be used.

It is the outermost layer around all toolsets, so no hook of another capability runs behind it; an innermost seal
refuses the call if a layer in between changed the arguments after all (see `layers`). It trusts the desk's decision for
the call's digest and nothing else: the framework's own "approved" flag is neither read nor believed.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import ValidationError
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolDefinition, ToolDenied
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import to_jsonable_python

from signoff.approvals.containment import answered, contained
from signoff.approvals.digest import bind, fingerprint
from signoff.approvals.model import (
    ApprovalRequest,
    CallKey,
    JsonObject,
    RequestKind,
    RequestState,
    Ruling,
    ToolCall,
    Verdict,
)
from signoff.approvals.policy import Context, Declaration, Said
from signoff.gate.arguments import as_json, shown
from signoff.gate.declarations import declaration, is_read_only
from signoff.gate.journal import Ask, Go, Journal, Replay, Settled
from signoff.gate.pending_call import Attempt, Draft, Refusal
from signoff.gate.previews import CallInfo, Preview, preview
from signoff.gate.tool_slots import ToolOverran, ToolSlots
from signoff.gate.toolsets import CallTool, GatedToolset, Seal, source_of
from signoff.gate.transcript import response_of, said
from signoff.gate.wording import ASKED, CHANGED, CUT_OFF, HELD, INTERRUPTED, NOT_AVAILABLE, told, with_note
from signoff.turns.model import CallState, Turn


class Judge(Protocol):
    """The policy as the gate needs it. Whatever it raises means that the call does not run."""

    async def decide(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling: ...


@dataclass
class Gate(AbstractCapability[Any]):
    """One per run step of a turn: it remembers what this response's calls were ruled to be."""

    policy: Judge
    journal: Journal
    turn: Turn
    slots: ToolSlots
    hold: bool = True
    calls_per_response: int = 10
    heard: Sequence[Said] | None = None
    """The conversation, where it is not that of the run itself."""
    drafts: dict[str, Draft] = field(default_factory=dict[str, Draft])
    ran: dict[CallKey, str] = field(default_factory=dict[CallKey, str])
    declared: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, "ToolsetTool[Any]"])
    """The tools of this step as their toolsets declare them."""
    admitted: dict[str, str] = field(default_factory=dict[str, str])
    """Fingerprints of the arguments that were let in, for the seal."""
    responses: int = 0
    """How many answers of the model the conversation has: an agent may shorten what a run sees of it."""
    native_allowed = False
    _rulings: dict[CallKey, Ruling] = field(default_factory=dict[CallKey, Ruling])
    _asked_early: dict[CallKey, JsonObject] = field(default_factory=dict[CallKey, JsonObject])
    """Calls whose tool asked while their arguments were validated, with its words."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GatedToolset(toolset, self)

    def seal(self) -> Seal:
        return Seal(self)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        await self.slots.wait_open(self.turn.place.server)
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self.responses += 1
        return response

    async def after_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        # All calls of a response are validated before any runs, so that the batch is known when the first one runs.
        described = self._describe(tool_def.name, args, call.tool_call_id)
        self._rulings[described.key] = await self._rule(described, ctx)
        return args

    def declare(self, tools: Mapping[str, ToolsetTool[Any]]) -> None:
        self.declared.update(tools)

    async def check(self, ctx: RunContext[Any], validate: Callable[..., Any], args: dict[str, Any]) -> None:
        record, request = await self.journal.met(self._key(ctx.tool_call_id or ""))
        if (record and record.ended) or (request and not _may_still_run(request)):
            return  # nothing is left to check: the world may be as it is because the call has run
        if request and request.edit:
            return  # what the person wrote is checked instead, at `_edited`
        try:
            await self._check(ctx, validate, args, approved=_said_yes(request))
        except (ModelRetry, ToolFailed) as failure:
            if record is None:
                raise
            # It was cut off, and may have made the world as it is. People are asked first if it is to run again.
            if _said_yes(request):
                raise ToolFailed(f"{CUT_OFF} {failure.message}") from failure

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        """Let one call run, make it wait, or answer in its place."""
        attempt = self._attempt(ctx, tool_def.name, args, run)
        record, request = await self.journal.met(attempt.call.key)
        if record and record.ended:
            return self._replay(attempt.call, Replay(record))
        try:
            if request and request.edit and request.called == attempt.call.digest and _may_still_run(request):
                attempt = await self._edited(attempt, request)
            answer = await self._admit(attempt)
        except (ModelRetry, ToolFailed) as failure:
            if record is None:
                raise
            raise ToolFailed(f"{CUT_OFF} {failure.message}") from failure
        if record and isinstance(answer, Refusal):
            return ToolDenied(f"{CUT_OFF} {answer.message}")
        return answer

    async def _admit(self, attempt: Attempt) -> Any:
        call, tool_def = attempt.call, attempt.tool_def
        while True:
            # First: what is ruled and looked at before a pause is out of date after it.
            await self.slots.wait_open(self.turn.place.server)
            ruling = await self._rule(call, attempt.ctx)
            if ruling.verdict is Verdict.DENY:
                return Refusal(f"Not allowed: {ruling.reason}. The call was not run.")
            if ruling.verdict is Verdict.ALLOW and self.hold and self._must_wait(call):
                ruling = replace(ruling, verdict=Verdict.ASK, reason=HELD, held=True)
            asks = ruling.verdict is Verdict.ASK
            view = await self._preview(tool_def, attempt.ctx, attempt.args) if asks else Preview("")
            call = replace(call, operands=view.operands)
            match await self.journal.enter(call, asks=asks, read_only=is_read_only(tool_def)):
                case Ask(RequestKind.MAY_HAVE_RUN as kind):
                    ruling = replace(ruling, reason=INTERRUPTED, held=False)
                    raise self._draft(Draft(call, ruling, kind, preview=view.text, edit=attempt.edit))
                case Ask(again=again):
                    ruling = replace(ruling, reason=CHANGED, held=False) if again else ruling
                    words = self._asked_early.get(call.key, {})
                    raise self._draft(Draft(call, ruling, metadata=words, preview=view.text, edit=attempt.edit))
                case Settled(request, changed=True):
                    return Refusal(told(request, changed=True))
                case Settled(request):
                    return ToolDenied(told(request))
                case Replay() as entry:
                    return self._replay(call, entry)
                case Go(request):
                    if not self.slots.is_shut(self.turn.place.server):
                        return await self._go(replace(attempt, call=call), ruling, request)
                    await self.journal.withdraw(call)  # the server was paused in this very moment

    async def _go(self, attempt: Attempt, ruling: Ruling, request: ApprovalRequest | None) -> Any:
        call, args = attempt.call, attempt.args
        self.admitted[call.key.call_id] = fingerprint(as_json(args))
        info = CallInfo(self.turn.place, self.turn.asker, request.call.operands if request else {})
        approved = _said_yes(request)
        ctx = replace(attempt.ctx, tool_call_approved=approved, tool_call_metadata=info)

        async def noted() -> Any:
            result = await attempt.run(ctx, args)
            if request is None or request.edit is None:
                return result
            return with_note(result, f"{request.edit.by.name} changed the arguments of this call before it ran")

        try:
            return await self._run(call, noted)
        except ApprovalRequired as raised:
            # What it would do is looked at anew: it may be asking because that has changed.
            view = await self._preview(attempt.tool_def, ctx, args)
            if approved and not _by_person(request) and view.operands == info.operands:
                # Nobody is there to grow tired of it: it would ask and be approved for ever.
                raise ToolFailed("Not run: the tool asks again although it was approved.") from raised
            ruling = replace(ruling, reason=ASKED, held=False)
            call = replace(call, operands=view.operands)
            words = to_jsonable_python(raised.metadata or {}, fallback=str)
            draft = Draft(call, ruling, metadata=words, preview=view.text, edit=request.edit if request else None)
            raise self._draft(draft) from raised

    async def _run(self, call: ToolCall, run: Callable[[], Awaitable[Any]]) -> Any:
        try:
            async with self.slots.occupy():
                with contained():
                    result = await run()
        except ApprovalRequired:
            await self.journal.withdraw(call)
            raise
        except (ModelRetry, ToolFailed) as failure:
            await self.journal.failed(call, failure.message)
            raise
        except CallDeferred as raised:
            await self.journal.failed(call, NOT_AVAILABLE)
            raise ToolFailed(NOT_AVAILABLE) from raised
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

    def _attempt(self, ctx: RunContext[Any], name: str, args: dict[str, Any], run: CallTool) -> Attempt:
        """One call, with the arguments that its tool would get. Refuses what cannot be put to anybody."""
        ids = [call.tool_call_id for call in response_of(ctx).tool_calls]
        if len(ids) > self.calls_per_response:
            raise ToolFailed(f"Nothing was run: {len(ids)} calls in one answer, {self.calls_per_response} are allowed.")
        if ids.count(ctx.tool_call_id or "") != 1:
            raise ToolFailed("Nothing was run: several calls of one answer have the same id.")
        tool_def = self.declared[name].tool_def
        if tool_def.kind == "external":
            raise ToolFailed(NOT_AVAILABLE)
        ctx = replace(ctx, tool_call_metadata=CallInfo(self.turn.place, self.turn.asker))
        return Attempt(ctx, tool_def, args, run, self._describe(name, args, ctx.tool_call_id or ""))

    async def _edited(self, attempt: Attempt, request: ApprovalRequest) -> Attempt:
        """From here on there are only the arguments that a person wrote, as the tool's own validator reads them."""
        ctx, tool = attempt.ctx, self.declared[attempt.tool_def.name]
        text = json.dumps(dict(request.call.args))
        try:
            args = tool.args_validator.validate_json(text, context=ctx.validation_context)
        except ValidationError as error:
            raise ToolFailed("Not run: the tool no longer takes the arguments that were approved.") from error
        call = self._describe(attempt.tool_def.name, args, attempt.call.key.call_id)
        if call.digest != request.call.digest:
            raise ToolFailed(told(request, changed=True))
        if tool.args_validator_func:
            await self._check(ctx, tool.args_validator_func, args, approved=_said_yes(request))
        return replace(attempt, args=args, call=call, edit=request.edit)

    async def _check(
        self, ctx: RunContext[Any], validate: Callable[..., Any], args: dict[str, Any], *, approved: bool
    ) -> None:
        """A validator that asks would defer its call before the gate: that is noted. Once approved, it looks again."""
        what, key = "the check of its arguments", self._key(ctx.tool_call_id or "")
        try:
            await self.slots.in_time(what, answered(validate, ctx, **args))
        except ApprovalRequired as raised:
            self._asked_early[key] = to_jsonable_python(raised.metadata or {}, fallback=str)
            if approved:
                with suppress(ApprovalRequired):
                    await self.slots.in_time(what, answered(validate, replace(ctx, tool_call_approved=True), **args))

    def _must_wait(self, call: ToolCall) -> bool:
        """Whether another call of the same response has to ask."""
        return any(
            ruling.verdict is Verdict.ASK and key.position == call.key.position and key != call.key
            for key, ruling in self._rulings.items()
        )

    async def _rule(self, call: ToolCall, ctx: RunContext[Any]) -> Ruling:
        declared = declaration(self.declared[call.tool].tool_def)
        heard = said(ctx.messages) if self.heard is None and callable(declared) else self.heard or ()
        context = Context(self.turn.place, self.turn.asker, heard)
        ruling = await self.slots.in_time("its condition", self.policy.decide(call, declared, context))
        if ruling.verdict is Verdict.ALLOW and call.key in self._asked_early:
            return replace(ruling, verdict=Verdict.ASK, reason=ASKED)
        return ruling

    async def _preview(self, tool_def: ToolDefinition, ctx: RunContext[Any], args: dict[str, Any]) -> Preview:
        try:
            return await self.slots.in_time("its preview", preview(tool_def, ctx, args))
        except (ModelRetry, ToolFailed):
            raise
        except Exception as error:
            raise ToolFailed(f"Nothing was run: its preview failed ({type(error).__name__}: {error}).") from error

    def _describe(self, name: str, args: dict[str, Any], call_id: str) -> ToolCall:
        tool = self.declared[name]
        schema = fingerprint(
            {"name": name, "parameters": tool.tool_def.parameters_json_schema, "source": source_of(tool)}
        )
        try:
            return bind(ToolCall(self._key(call_id), name, shown(tool, args), schema), self.turn.place)
        except (ValueError, TypeError, RecursionError) as error:
            raise ToolFailed(f"Nothing was run: the arguments cannot be shown to a person ({error}).") from error

    def _key(self, call_id: str) -> CallKey:
        return CallKey(self.turn.place.conversation, self.responses, call_id)


def _may_still_run(request: ApprovalRequest) -> bool:
    return request.state in (RequestState.PENDING, RequestState.APPROVED)


def _said_yes(request: ApprovalRequest | None) -> bool:
    """Whether the tool may take itself for approved. A call that only waited, and that no person saw, was not."""
    if request is None or request.state is not RequestState.APPROVED:
        return False
    return not request.held or _by_person(request)


def _by_person(request: ApprovalRequest | None) -> bool:
    return bool(request and request.settlement and request.settlement.by)
