"""Turns DeferredToolRequests into DeferredToolResults, for programs that run and resume the agent themselves.

Every pending call gets a result, so that the resumed run never fails because one is missing. Runs no agent and no tool.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart

from signoff.approvals.approvers import ASKER
from signoff.approvals.digest import bind
from signoff.approvals.model import (
    ApprovalDecision,
    ApprovalRequest,
    CallKey,
    JsonObject,
    RequestKind,
    Ruling,
    ToolCall,
    Verdict,
)
from signoff.gate import wording
from signoff.gate.asking_people import inquiry_without_tool
from signoff.gate.inline import LOCAL, Decided
from signoff.gate.pending_call import PendingCall
from signoff.library.decider import Decider, OnNoApprover, Subscriber
from signoff.library.memory import ApprovalMemory
from signoff.library.ui import AnyApprovalUI, ApprovalMode, SyncApprovalUI

Questions = Generator[ApprovalRequest, Decided, DeferredToolResults]
Question = Generator[ApprovalRequest, Decided, tuple[ApprovalRequest, Decided]]
Metadata = Mapping[str, Any] | None
MakeRequest = Callable[[ToolCallPart, JsonObject, Metadata], ApprovalRequest]
DEFERRED = Ruling(Verdict.ASK, "the tool asks for approval")
INQUIRES = Ruling(Verdict.ASK, wording.INQUIRES)


def build_approval_requests(deferred: DeferredToolRequests) -> list[ApprovalRequest]:
    """Return one request, with its own id, for every call that waits for approval, in the order of the calls.

    The arguments are the model's, before validation; `run_with_approval` shows validated ones. Raises ValueError for
    arguments that cannot be shown to a person.
    """
    return [_read(call, deferred.metadata.get(call.tool_call_id), _approval) for call in deferred.approvals]


async def collect_approvals(
    deferred: DeferredToolRequests,
    *,
    ui: AnyApprovalUI | None = None,
    mode: ApprovalMode = "interactive",
    memory: ApprovalMemory | None = None,
    on_no_approver: OnNoApprover = "reject",
    on_event: Subscriber | Sequence[Subscriber] = (),
) -> DeferredToolResults:
    """Get a decision on every pending call, one after the other. A sync UI is called in a thread.

    The calls that somebody else has to run (`deferred.calls`) come last, as inquiries: the UI gives their results.
    """
    decider = Decider(ui, mode, memory, on_no_approver, on_event)
    questions = _questions(deferred, decider)
    try:
        request = next(questions)
        while True:
            request = questions.send(await decider.ask(request))
    except StopIteration as end:
        return end.value


def collect_approvals_sync(
    deferred: DeferredToolRequests,
    *,
    ui: SyncApprovalUI | None = None,
    mode: ApprovalMode = "interactive",
    memory: ApprovalMemory | None = None,
    on_no_approver: OnNoApprover = "reject",
    on_event: Subscriber | Sequence[Subscriber] = (),
) -> DeferredToolResults:
    """Do the same as `collect_approvals`, for programs without an event loop."""
    decider = Decider(ui, mode, memory, on_no_approver, on_event)
    questions = _questions(deferred, decider)
    try:
        request = next(questions)
        while True:
            request = questions.send(decider.ask_sync(request))
    except StopIteration as end:
        return end.value


def _questions(deferred: DeferredToolRequests, decider: Decider) -> Questions:
    """Yield each request that a person must decide and receive the decision. Sync and async differ only in asking."""
    approvals: dict[str, ToolApproved | ToolDenied] = {}
    results: dict[str, Any] = {}
    for call in deferred.approvals:
        request, decided = yield from _decided(call, deferred, decider, _approval)
        override = decided.decision.override_args
        approvals[call.tool_call_id] = (
            ToolApproved(override_args=None if override is None else dict(override))
            if decided.approved
            else ToolDenied(wording.told(decided.settle(request)))
        )
    for call in deferred.calls:
        request, decided = yield from _decided(call, deferred, decider, _inquiry)
        assert request.inquiry
        results[call.tool_call_id] = (
            request.inquiry.result(decided.decision.answer or {})
            if decided.approved
            else ToolFailed(wording.told(decided.settle(request)))
        )
    # build_results refuses unknown ids; without it, an entry of `calls` could pass as the result of a protected call.
    return deferred.build_results(approvals=approvals, calls=results)


def _decided(call: ToolCallPart, deferred: DeferredToolRequests, decider: Decider, make: MakeRequest) -> Question:
    """Yield the request about one call if a person must decide it. Return it with the decision."""
    ids = [other.tool_call_id for other in (*deferred.approvals, *deferred.calls)]
    try:
        # Results are matched by id, so approving one of several calls with the same id would approve all of them.
        if ids.count(call.tool_call_id) > 1:
            raise ValueError("several calls have the same id")
        request = _read(call, deferred.metadata.get(call.tool_call_id), make)
    except ValueError as error:
        request, decided = make(call, {}, None), Decided(ApprovalDecision(False, str(error)), "unreadable")
        decider.announce(request, decided)
        return request, decided
    decided = decider.known(request)
    if decided is None:
        decided = yield request
    decided = decided.fitting(request)
    decider.settle(request, decided)
    return request, decided


def _read(call: ToolCallPart, metadata: Metadata, make: MakeRequest) -> ApprovalRequest:
    try:
        return make(call, call.args_as_dict(raise_if_invalid=True), metadata)
    except (ValueError, TypeError, AssertionError, RecursionError) as error:
        raise ValueError(f"the arguments of {call.tool_name} cannot be shown to a person: {error}") from error


def _approval(call: ToolCallPart, args: JsonObject, metadata: Metadata) -> ApprovalRequest:
    request = PendingCall(_bound(call, args), DEFERRED, metadata=dict(metadata or {})).request(DEFERRED, (ASKER,))
    return replace(request, preview=request.shown_preview)


def _inquiry(call: ToolCallPart, args: JsonObject, metadata: Metadata) -> ApprovalRequest:
    inquiry = inquiry_without_tool(call.tool_name, args, metadata)
    pending = PendingCall(_bound(call, args), INQUIRES, RequestKind.ANSWER, inquiry=inquiry)
    return pending.request(INQUIRES, (ASKER,))


def _bound(call: ToolCallPart, args: JsonObject) -> ToolCall:
    return bind(ToolCall(CallKey("", 0, call.tool_call_id), call.tool_name, args, ""), LOCAL)
