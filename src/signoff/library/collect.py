"""DeferredToolRequests in, DeferredToolResults out: for programs that drive the agent's runs themselves.

Every pending call gets an answer, so that the resume never fails for a missing one. It runs no agent and no tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.exceptions import ToolFailed

from signoff.approvals.model import ApprovalDecision, ApprovalRequest
from signoff.gate.wording import NOT_AVAILABLE
from signoff.library.decider import Answer, ApprovalMode, Asker, OnNoApprover, Subscriber
from signoff.library.memory import ApprovalMemory
from signoff.library.requests import read_request
from signoff.library.ui import AnyApprovalUI, ApprovalUI

Questions = Generator[ApprovalRequest, Answer, DeferredToolResults]


async def collect_approvals(
    deferred: DeferredToolRequests,
    *,
    ui: AnyApprovalUI | None = None,
    mode: ApprovalMode = "interactive",
    memory: ApprovalMemory | None = None,
    on_no_approver: OnNoApprover = "reject",
    on_event: Subscriber | Sequence[Subscriber] = (),
) -> DeferredToolResults:
    """Decide about every pending call, one after the other. A sync UI is called in a thread."""
    asker = Asker(ui, mode, memory, on_no_approver, on_event)
    questions = _questions(deferred, asker)
    try:
        request = next(questions)
        while True:
            request = questions.send(await asker.ask(request))
    except StopIteration as end:
        return end.value


def collect_approvals_sync(
    deferred: DeferredToolRequests,
    *,
    ui: ApprovalUI | None = None,
    mode: ApprovalMode = "interactive",
    memory: ApprovalMemory | None = None,
    on_no_approver: OnNoApprover = "reject",
    on_event: Subscriber | Sequence[Subscriber] = (),
) -> DeferredToolResults:
    """The same for programs without an event loop."""
    asker = Asker(ui, mode, memory, on_no_approver, on_event)
    questions = _questions(deferred, asker)
    try:
        request = next(questions)
        while True:
            request = questions.send(asker.ask_sync(request))
    except StopIteration as end:
        return end.value


def _questions(deferred: DeferredToolRequests, asker: Asker) -> Questions:
    """Yields what a person has to be asked and takes the answers, so that sync and async differ in the asking only."""
    approvals: dict[str, ToolApproved | ToolDenied] = {}
    ids = Counter(call.tool_call_id for call in [*deferred.approvals, *deferred.calls])
    for call in deferred.approvals:
        try:
            # Results are matched by id: a yes to one of several calls with the same id would be a yes to all of them.
            if ids[call.tool_call_id] > 1:
                raise ValueError("several calls have the same id")
            request = read_request(call, deferred.metadata.get(call.tool_call_id))
        except ValueError as error:
            refused = Answer(ApprovalDecision(False, str(error)), "unreadable")
            asker.announce(call.tool_name, {}, refused)
            approvals[call.tool_call_id] = ToolDenied(refused.refusal)
            continue
        answer = asker.known(request)
        if answer is None:
            answer = yield request
        asker.settle(request, answer)
        override = answer.decision.override_args
        approvals[call.tool_call_id] = (
            ToolApproved(override_args=None if override is None else dict(override))
            if answer.approved
            else ToolDenied(answer.refusal)
        )
    # build_results refuses ids that were not asked for; `calls` would otherwise be taken as a protected call's result.
    unavailable = {call.tool_call_id: ToolFailed(NOT_AVAILABLE) for call in deferred.calls}
    return deferred.build_results(approvals=approvals, calls=unavailable)
