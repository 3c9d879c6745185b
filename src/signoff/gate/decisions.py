"""Reads from a request what was decided about its call, as the gate needs it."""

from __future__ import annotations

from signoff.approvals.model import ApprovalRequest, JsonObject, RequestState
from signoff.gate import wording
from signoff.gate.pending_call import Preview


def may_still_run(request: ApprovalRequest) -> bool:
    return request.state in (RequestState.PENDING, RequestState.APPROVED)


def said_yes(request: ApprovalRequest | None) -> bool:
    """Whether the tool may treat the call as approved. Never for a held call: nobody was asked about it."""
    return bool(request and request.state is RequestState.APPROVED and not request.held)


def is_answered(request: ApprovalRequest, words: JsonObject, view: Preview) -> bool:
    """Whether asking again is pointless: nothing has changed, and the approver has already read the tool's words.

    Other words do not help if no person approved: automatic approvals could then repeat without end.
    """
    by_person = request.settlement is not None and request.settlement.by is not None
    repeated = request.why == wording.ASKED and words == request.metadata
    nothing_new = repeated or not by_person
    return nothing_new and view.operands == request.call.operands
