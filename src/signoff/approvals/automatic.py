"""Requests that are settled without a person: by a mode, by a grant, because nobody may decide, or as held calls."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from signoff.approvals.approvers import can_be_met
from signoff.approvals.grants import covers, may_be_remembered, scopes
from signoff.approvals.model import ApprovalRequest, Batch, Choice, Remember, RequestKind, RequestState, Settlement
from signoff.approvals.ports import DeskTx

log = logging.getLogger(__name__)

NO_APPROVAL_NEEDED = "it needs no approval by itself"
NOTHING_APPROVED = "nothing of its batch was approved"


@dataclass(frozen=True, slots=True)
class Modes:
    """How the desk decides without a person."""

    mode: str = "interactive"
    on_no_approver: str = "reject"


def settled_without_people(tx: DeskTx, batch: Batch, modes: Modes, widest: Remember) -> list[ApprovalRequest]:
    """Return the questions of a new batch that need no person, each with its settlement."""
    return [r for r in (_one(tx, question, batch, modes, widest) for question in batch.questions) if r is not None]


def settled_for_nobody(batch: Batch, now: float) -> list[ApprovalRequest]:
    """Return the open questions that nobody can decide any more, rejected: deleting a role must not approve a call."""
    return [_by_nobody(question, Modes(), now) for question in batch.open_questions if not can_be_met(question, batch)]


def settled_with_questions(batch: Batch, now: float) -> list[ApprovalRequest]:
    """Return the open held calls of a batch, each with its settlement; none while a question is open.

    They are approved if a question was approved, or if there was none. Otherwise they end as the questions ended.
    """
    if batch.open_questions:
        return []
    states = {question.state for question in batch.questions}
    if not states or RequestState.APPROVED in states:
        return [released(request, now) for request in batch.pending]
    state = next(s for s in (RequestState.REJECTED, RequestState.EXPIRED, RequestState.CANCELLED) if s in states)
    choice = Choice.REJECT if state is RequestState.REJECTED else None
    end = Settlement(choice, None, now, NOTHING_APPROVED)
    return [replace(request, state=state, settlement=end) for request in batch.pending]


def released(request: ApprovalRequest, now: float) -> ApprovalRequest:
    """Return a held call, approved by nobody, so that its tool may still ask by itself."""
    end = Settlement(Choice.ACCEPT, None, now, NO_APPROVAL_NEEDED)
    return replace(request, state=RequestState.APPROVED, settlement=end)


def _one(tx: DeskTx, request: ApprovalRequest, batch: Batch, modes: Modes, widest: Remember) -> ApprovalRequest | None:
    fits_call = request.kind is RequestKind.CALL
    yes, no = (Choice.ACCEPT, Choice.REJECT) if fits_call else (Choice.RERUN, Choice.SKIP)
    if modes.mode == "auto_deny":
        choice, note = no, "mode auto_deny"
    elif granted := _granted(tx, request, batch, widest):
        return granted
    elif modes.mode == "auto_approve" and fits_call:
        choice, note = yes, "mode auto_approve"
    elif not can_be_met(request, batch):
        return _by_nobody(request, modes, batch.opened)
    else:
        return None
    return replace(request, state=choice.state, settlement=Settlement(choice, None, batch.opened, note))


def _by_nobody(request: ApprovalRequest, modes: Modes, now: float) -> ApprovalRequest:
    choice = Choice.REJECT if request.kind is RequestKind.CALL else Choice.SKIP
    # A server rule that nobody can meet must not make a call looser than the operator rules do.
    if modes.on_no_approver == "approve" and request.kind is RequestKind.CALL and not request.by_server:
        choice = Choice.ACCEPT
    log.warning("nobody may decide %s: %s automatically", request.call.tool, choice.state)
    end = Settlement(choice, None, now, "nobody may decide this request")
    return replace(request, state=choice.state, settlement=end)


def _granted(tx: DeskTx, request: ApprovalRequest, batch: Batch, widest: Remember) -> ApprovalRequest | None:
    if not may_be_remembered(request):
        return None
    exact = tx.grants_under(scopes(request, batch, widest))
    named = [g for g in tx.grants_naming(batch.place.server, request.call.tool) if covers(g, request, batch, widest)]
    standing = [grant for grant in (*exact, *named) if grant.stands(batch.opened)]
    if not standing:
        return None
    # A remembered reject wins over a remembered accept.
    one = min(standing, key=lambda grant: grant.choice is Choice.ACCEPT)
    tx.use_grant(one.id)
    note = f"remembered: grant {one.id} of {one.by.name}"
    return replace(request, state=one.choice.state, settlement=Settlement(one.choice, None, batch.opened, note))
