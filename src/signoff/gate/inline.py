"""The gate that asks inside the run: a decider decides, and the run continues at once.

The framework collects the calls of a response that must ask. `handle_deferred_tool_calls` gets a decision on all of
them before any runs, and writes each decision into the book. Then the framework calls them again, and the gate lets in
those that are approved in the book. This module does not know how a person is asked.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Literal, Protocol

from pydantic import ValidationError
from pydantic_ai import CallToolsNode, ModelRetry, RunContext, ToolApproved, ToolDefinition, ToolDenied
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from signoff.approvals.approvers import ASKER
from signoff.approvals.inquiries import NOT_SENT, BadAnswer
from signoff.approvals.model import (
    Actor,
    ApprovalDecision,
    ApprovalRequest,
    CallKey,
    Choice,
    Edit,
    Place,
    RequestState,
    Ruling,
    Settlement,
    ToolCall,
    Verdict,
)
from signoff.dataclass import dataclass
from signoff.gate import wording
from signoff.gate.arguments import first_problem
from signoff.gate.book import MemoryBook
from signoff.gate.delegation import Delegation, InnerRun, Opened, install, outside
from signoff.gate.gate import Gate
from signoff.gate.inner_gate import run_inside
from signoff.gate.pending_call import Attempt, CallInfo, CallTool, PendingCall, Preview
from signoff.gate.transcript import response_of

install(run_inside)

log = logging.getLogger(__name__)

How = Literal["ui", "memory", "mode", "no_approver", "error", "policy", "max_rounds", "unreadable", "held", "expired"]
USER = Actor("user", "", "local")
LOCAL = Place("local", "local", "local")
"""The place of a program that has no server: the person who runs it asks and decides."""
Round = tuple[str, int]
"""A response that had to ask: its conversation and its position there."""

REASONS: dict[How, str] = {
    "ui": "",
    "memory": "remembered",
    "mode": "mode auto_deny",
    "no_approver": "nobody is there to approve the call",
    "error": "approval could not be obtained",
    "policy": "",
    "max_rounds": "approval was asked for too often in this run; do not repeat the call",
    "unreadable": "the arguments cannot be shown to a person",
    "held": "",
    "expired": "",
}
"""How a request was rejected -> the reason that the model reads before a person's own note."""
NO_ANSWER: dict[How, str] = {
    "mode": "",
    "no_approver": "nobody is there to answer",
    "error": "an answer could not be obtained",
    "max_rounds": "people were asked too often in this run; do not repeat the call",
}
"""The same for a request that needs an answer, where the words differ."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, and where it comes from."""

    decision: ApprovalDecision
    how: How

    @property
    def approved(self) -> bool:
        return self.decision.approved

    def answer_to(self, request: ApprovalRequest) -> Decided:
        """Return this decision with the answer checked, if the request needs one. Raises BadAnswer if it does not fit.

        An approval alone is an answer only if the form can be left empty.
        """
        if request.inquiry is None or not self.approved:
            return replace(self, decision=replace(self.decision, answer=None))
        if self.decision.override_args is not None:
            raise BadAnswer(f"An answer cannot change the arguments of the call. {NOT_SENT}")
        answer = request.inquiry.check(self.decision.answer or {})
        return replace(self, decision=replace(self.decision, answer=answer))

    def fitting(self, request: ApprovalRequest) -> Decided:
        """Return this decision as it counts for the request. An answer that does not fit the form declines."""
        try:
            return self.answer_to(request)
        except BadAnswer as error:
            log.warning("the answer to %s does not fit and counts as declined: %s", request.call.tool, error)
            return Decided(ApprovalDecision(False, f"the answer does not fit: {error}"), "error")

    def settle(self, request: ApprovalRequest) -> ApprovalRequest:
        """Return the request, settled by this decision as it counts for the request."""
        if self.how == "expired":
            return replace(request, state=RequestState.EXPIRED, settlement=Settlement(None, None, 0.0))
        counts = self.fitting(request)
        yes, no = (Choice.ANSWER, Choice.DECLINE) if request.inquiry else (Choice.ACCEPT, Choice.REJECT)
        choice, said = yes if counts.approved else no, counts.decision
        reasons = (said.note,) if counts.approved else (counts._reason(request), said.note)
        by = USER if counts.how in ("ui", "memory") else None
        end = Settlement(choice, by, 0.0, ": ".join(filter(None, reasons)), answer=said.answer)
        return replace(request, state=choice.state, settlement=end)

    def _reason(self, request: ApprovalRequest) -> str:
        return NO_ANSWER.get(self.how, REASONS[self.how]) if request.inquiry else REASONS[self.how]


class Decider(Protocol):
    """Decides the requests of one run."""

    def known(self, request: ApprovalRequest) -> Decided | None:
        """Return the decision if nobody has to be asked, or if nobody is there to ask."""
        ...

    async def ask(self, request: ApprovalRequest) -> Decided: ...

    def settle(self, request: ApprovalRequest, decided: Decided) -> None:
        """Remember the decision if it says so, and tell the subscribers."""
        ...

    def announce(self, request: ApprovalRequest, decided: Decided) -> None:
        """Tell the subscribers."""
        ...


def round_of(key: CallKey) -> Round:
    return key.conversation, key.position


@dataclass
class InlineGate(Gate):
    """One per run. Its book is in memory, because the run does not outlive the process."""

    asks_inside: ClassVar[bool] = True

    decider: Decider = field(kw_only=True)
    decisions: MemoryBook = field(kw_only=True)
    """This gate's book. The gate writes decisions into it."""
    max_rounds: int = 25
    """After this many responses that had to ask, nobody is asked again."""
    _rounds: set[Round] = field(default_factory=set[Round])
    """The responses that had to ask, also those of agents inside tools."""
    _accepted: dict[CallKey, bool] = field(default_factory=dict[CallKey, bool])
    """Key of each decided question -> whether it was accepted."""
    _ended: set[CallKey] = field(default_factory=set[CallKey])
    """Keys of the calls that ran, failed or were deferred: none of them will ask inside this run of its response."""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _after_text: bool = False
    """Whether `run_stream` took the text of the newest response as the final result, and runs its calls after that.

    It then drops deferred calls, and the response is not yet among the messages.
    """
    _streamed: list[ToolCallPart] = field(default_factory=list[ToolCallPart])
    """The calls of such a response."""

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        try:
            return await handler()
        finally:
            self.live.end_turn(self.conversation or self.place.conversation)

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        # Calls belong to a CallToolsNode, except those that `run_stream` runs after text: they have no node.
        self._after_text, self._streamed = not isinstance(node, CallToolsNode), []
        return node

    async def wrap_tool_validate(self, ctx: RunContext[Any], *, call: ToolCallPart, **rest: Any) -> dict[str, Any]:
        if self._after_text and self._key(call.tool_call_id) not in self._pending:
            self._streamed.append(call)
        return await super().wrap_tool_validate(ctx, call=call, **rest)

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        if self._after_text:
            ctx = replace(ctx, messages=[*ctx.messages, ModelResponse(parts=self._streamed)])
        return await super().admit(ctx, tool_def, args, run)

    def _key(self, call_id: str | None) -> CallKey:
        # The framework reports a streamed response only after its calls.
        key = super()._key(call_id)
        return replace(key, position=key.position + self._after_text)

    async def open_inner(self, call: Delegation, run: InnerRun, given: Sequence[ModelMessage]) -> Opened:
        """Return a gate that asks about the calls of an agent inside a tool in the same way."""
        book = MemoryBook()
        gate = InlineGate(
            self.policy,
            book,
            self.place,
            self.asker,
            self.slots,
            self.hold,
            self.calls_per_response,
            self.contains_failures,
            self.native_allowed,
            progress=self.progress,
            conversation=run.conversation,
            path=(*self.path, run.agent),
            live=self.live,
            decider=self.decider,
            decisions=book,
            max_rounds=self.max_rounds,
            _rounds=self._rounds,
        )
        return Opened(gate)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Decide all deferred calls of one response. None of them runs before the last one is decided."""
        approvals, pending = await self._collect(ctx, requests)
        for call in sorted(pending, key=lambda call: call.ruling.held):
            await self._decide(ctx, call)
        unavailable = {part.tool_call_id: ToolFailed(wording.NOT_AVAILABLE) for part in requests.calls}
        return requests.build_results(approvals=approvals, calls=unavailable)

    async def _collect(
        self, ctx: RunContext[Any], requests: DeferredToolRequests
    ) -> tuple[dict[str, ToolApproved | ToolDenied], list[PendingCall]]:
        """Return a result for each deferred call (call id -> result), and the calls that have to be decided first."""
        approvals: dict[str, ToolApproved | ToolDenied] = {}
        pending: list[PendingCall] = []
        for part in requests.approvals:
            try:
                call = await self._deferred(ctx, part, requests.metadata.get(part.tool_call_id))
            except (ModelRetry, ToolFailed) as failure:
                approvals[part.tool_call_id] = ToolDenied(failure.message)
                continue
            if call is None:
                approvals[part.tool_call_id] = ToolDenied(wording.PAST_THE_GATE)
                continue
            # Let the framework call it again whatever the decision is: the gate then reads it from the book.
            approvals[part.tool_call_id] = ToolApproved()
            if call.ruling.verdict is not Verdict.DENY:
                pending.append(call)
        return approvals, pending

    async def _deferred(
        self, ctx: RunContext[Any], part: ToolCallPart, metadata: dict[str, Any] | None
    ) -> PendingCall | None:
        """Return the call as the gate deferred it or, if another hook deferred it before the gate, as validated.

        Returns None if the call was never validated here. Raises ToolFailed if its preview fails.
        """
        key = self._key(part.tool_call_id)
        if key in self._pending:
            return self._pending[key]
        if key not in self._seen:
            return None
        call, ruling = self._seen[key]
        if ruling.verdict is Verdict.ALLOW:
            ruling = replace(ruling, verdict=Verdict.ASK, reason=wording.ASKED)
        call, view = await self._with_preview(ctx, call)
        return self._pend(call, ruling, view, metadata=metadata)

    async def _with_preview(self, ctx: RunContext[Any], call: ToolCall) -> tuple[ToolCall, Preview]:
        """Return the call with its operands, and its preview."""
        tool, info = self.examiner.tools[call.tool], CallInfo(self.place, self.asker)
        args = tool.args_validator.validate_json(json.dumps(dict(call.args)), context=ctx.validation_context)
        ctx = replace(ctx, tool_name=call.tool, tool_call_id=call.key.call_id, tool_call_metadata=info)
        view = await self.examiner.preview(tool.tool_def, ctx, args)
        return replace(call, operands=view.operands), view

    async def _ask(self, attempt: Attempt, pending: PendingCall) -> Attempt:
        """Defer the call to its batch, or decide it at once if the framework would drop a deferred call."""
        # The flag is set after the batch was decided, or by the agent's own handler: there is no second batch.
        if not (attempt.ctx.tool_call_approved or self._after_text or has_output_call(attempt.ctx)):
            return await super()._ask(attempt, pending)
        self._pending[pending.call.key] = pending
        # Nobody waits for this call while a person is asked: the calls after it may be the questions that it waits for.
        self._order.passed(pending.call.key)
        if pending.ruling.held:
            await self._wait_for_questions(pending.call.key)
        await self._decide(attempt.ctx, pending)
        request = self.decisions.requests[pending.call.key]
        return (
            await self._edited(attempt, request) if request.edit and request.state is RequestState.APPROVED else attempt
        )

    async def _wait_for_questions(self, key: CallKey) -> None:
        def settled() -> bool:
            questions = [call.key for call in self._questions(key)]
            return all(other in self._accepted or other in self._ended for other in questions)

        async with self._changed:
            await self._changed.wait_for(settled)

    async def wrap_tool_execute(self, ctx: RunContext[Any], *, call: ToolCallPart, **rest: Any) -> Any:
        try:
            return await super().wrap_tool_execute(ctx, call=call, **rest)
        finally:
            async with self._changed:
                self._ended.add(self._key(call.tool_call_id))
                self._changed.notify_all()

    async def _decide(self, ctx: RunContext[Any], pending: PendingCall) -> None:
        """Write the decision about one call into the book."""
        request = self._request(pending.call, pending.ruling, pending)
        key = request.call.key
        if request.held:
            # Nobody is asked about a held call: it runs if a question of its response was accepted.
            accepted = any(self._accepted.get(call.key) for call in self._questions(key))
            decided = Decided(ApprovalDecision(accepted), "held")
            self.decider.announce(request, decided)
            self.decisions.write(decided.settle(request))
            return
        decided = self.decider.known(request)
        if decided is None:
            tired = self._is_tired(key)
            self._rounds.add(round_of(key))
            with outside():
                decided = Decided(ApprovalDecision(False), "max_rounds") if tired else await self.decider.ask(request)
        decided = decided.fitting(request)
        if decided.approved and decided.decision.override_args is not None:
            request, decided = await self._with_edit(ctx, request, decided)
        self.decider.settle(request, decided)
        self.decisions.write(decided.settle(request))
        if request.inquiry is None:
            self._accepted[key] = decided.approved  # an answer approves nothing, and declining takes no approval back
        async with self._changed:
            self._changed.notify_all()

    async def _with_edit(
        self, ctx: RunContext[Any], request: ApprovalRequest, decided: Decided
    ) -> tuple[ApprovalRequest, Decided]:
        """Put edited arguments through the same checks as the model's: schema, validators, hooks and the policy."""
        key, override = request.call.key, dict(decided.decision.override_args or {})
        part = next(part for part in response_of(ctx).tool_calls if part.tool_call_id == key.call_id)
        asked = self._seen[key]
        try:
            assert ctx.tool_manager is not None
            changed = replace(part, args=override)
            valid = await ctx.tool_manager.validate_tool_call(changed, approved=True, wrap_validation_errors=False)
            if valid.deferral is not None:
                # A hook deferred the edited call before the gate has seen it: `_seen` still has the model's call.
                raise ValueError("the tool asks again")
            call, ruling = self._seen[key]
            call, view = await self._with_preview(ctx, call)
        except (ModelRetry, ToolFailed, ValueError) as error:
            words = first_problem(error) if isinstance(error, ValidationError) else str(error)
            note = f"the arguments were edited before approval and do not fit the tool: {words}"
            return request, Decided(ApprovalDecision(False, note), "error")
        finally:
            self._seen[key] = asked  # the question stays a question, even if the edited call would not have to ask
        if ruling.verdict is Verdict.DENY:
            return request, Decided(ApprovalDecision(False, ruling.reason), "policy")
        edit = request.edit or Edit(request.call.args, request.call.digest, USER, 0.0)
        # The validated form is remembered, announced and bound.
        decision = replace(decided.decision, override_args=dict(call.args))
        edited = replace(request, call=call, edit=edit, preview=view.text, diff_of=view.diff_of)
        return edited, replace(decided, decision=decision)

    def _is_tired(self, key: CallKey) -> bool:
        """Whether `max_rounds` other responses have already asked, so that nobody is asked again."""
        return len(self._rounds | {round_of(key)}) > self.max_rounds

    def _denied(self, call: ToolCall, ruling: Ruling) -> ToolDenied:
        decided = Decided(ApprovalDecision(False, ruling.reason), "policy")
        self.decider.announce(self._request(call, ruling), decided)
        return super()._denied(call, ruling)

    def _request(self, call: ToolCall, ruling: Ruling, pending: PendingCall | None = None) -> ApprovalRequest:
        approvers = (ASKER,) if ruling.approvers is None else ruling.approvers
        request = (pending or PendingCall(call, ruling)).request(ruling, approvers)
        return replace(request, preview=request.shown_preview)


def has_output_call(ctx: RunContext[Any]) -> bool:
    """Whether the response also calls an output tool: the framework then drops deferred calls."""
    tools = ctx.tool_manager
    definitions = [tools.get_tool_def(call.tool_name) for call in response_of(ctx).tool_calls] if tools else []
    return any(tool_def is not None and tool_def.kind == "output" for tool_def in definitions)
