"""Requests that are settled without a person: by a mode, by a grant, because nobody may decide, or as held calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from signoff.approvals.approvers import can_be_met, may_decide
from signoff.approvals.grants import Grant, covers, may_be_remembered, note_of, scopes
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    Choice,
    Remember,
    RequestKind,
    RequestState,
    Settlement,
)
from signoff.approvals.ports import DeskTx
from signoff.approvals.votes import Unchecked, may_remember
from signoff.dataclass import dataclass

Standing = Callable[[Grant, ApprovalRequest, Batch], bool]
"""Whether the giver of a grant may still decide."""

log = logging.getLogger(__name__)

NO_APPROVAL_NEEDED = "it needs no approval by itself"
NOTHING_APPROVED = "nothing of its batch was approved"


@dataclass(frozen=True, slots=True)
class OwnMode:
    """The mode of a schedule, for the turns that it starts."""

    mode: str
    schedule: int


@dataclass(frozen=True, slots=True)
class Modes:
    """How the desk decides without a person."""

    mode: str = "interactive"
    on_no_approver: str = "reject"
    permitted: frozenset[str] = frozenset()
    """The modes that schedules may have of their own."""
    source: str = ""
    """Whose mode this is, for the record; empty: the operator's."""

    def of_run(self, own: OwnMode | None) -> Modes:
        """Return the modes for one run. The operator's auto_deny holds for every run."""
        if own is None or self.mode == "auto_deny":
            return self
        mode = own.mode if own.mode in self.permitted else "interactive"
        return replace(self, mode=mode, source=f" of schedule {own.schedule}")


def settled_without_people(
    tx: DeskTx, batch: Batch, modes: Modes, widest: Remember, standing: Standing = lambda grant, request, batch: True
) -> list[ApprovalRequest]:
    """Return the questions of a new batch that need no person, each with its settlement."""
    settled = (_one(tx, question, batch, modes, widest, standing) for question in batch.questions)
    return [request for request in settled if request is not None]


def stands_for(givers: Mapping[str, Actor | None], grant: Grant, request: ApprovalRequest, batch: Batch) -> bool:
    """Whether the giver of a grant may still decide this request, and may still have it remembered this widely.

    `givers`: person -> as they are now. Raises Unchecked if the giver is not in it.
    """
    if batch.place.is_direct:
        return True
    if grant.by.id not in givers:
        raise Unchecked(frozenset({grant.by.id}))
    giver = givers[grant.by.id]
    if giver is None or not may_decide(giver, request, batch, accepts=grant.choice is Choice.ACCEPT):
        return False
    narrow = grant.conversation and grant.named is None
    return bool(narrow) or may_remember(giver, batch)


def settled_for_nobody(batch: Batch, now: float) -> list[ApprovalRequest]:
    """Return the open questions that nobody can decide any more, rejected: deleting a role must not approve a call."""
    return [_by_nobody(question, Modes(), now) for question in batch.open_questions if not can_be_met(question, batch)]


def settled_with_questions(batch: Batch, now: float) -> list[ApprovalRequest]:
    """Return the open held calls of a batch, each with its settlement; none while a question is open.

    They are approved if a question was approved, or if there was none. Otherwise they end as the questions ended. An
    inquiry does not count here: to answer it approves nothing.
    """
    if batch.settled or batch.open_questions:
        return []
    states = {question.state for question in batch.questions if question.inquiry is None}
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


def _one(
    tx: DeskTx, request: ApprovalRequest, batch: Batch, modes: Modes, widest: Remember, standing: Standing
) -> ApprovalRequest | None:
    fits_call, no = request.kind is RequestKind.CALL, request.kind.no
    if modes.mode == "auto_deny":
        choice, note = no, f"mode auto_deny{modes.source}"
    elif granted := _granted(tx, request, batch, widest, standing):
        return granted
    elif modes.mode == "auto_approve" and fits_call and not request.call.is_overage:
        choice, note = Choice.ACCEPT, f"mode auto_approve{modes.source}"
    elif not can_be_met(request, batch):
        return _by_nobody(request, modes, batch.opened)
    else:
        return None
    return replace(request, state=choice.state, settlement=Settlement(choice, None, batch.opened, note))


def _by_nobody(request: ApprovalRequest, modes: Modes, now: float) -> ApprovalRequest:
    choice = request.kind.no
    # A server rule that nobody can meet must not make a call looser than the operator rules do. A budget that no person
    # may raise stays as it is.
    may_approve = request.kind is RequestKind.CALL and not request.by_server and not request.call.is_overage
    if modes.on_no_approver == "approve" and may_approve:
        choice = Choice.ACCEPT
    log.warning("nobody may decide %s: %s automatically", request.call.tool, choice.state)
    end = Settlement(choice, None, now, "nobody may decide this request")
    return replace(request, state=choice.state, settlement=end)


def _granted(
    tx: DeskTx, request: ApprovalRequest, batch: Batch, widest: Remember, standing: Standing
) -> ApprovalRequest | None:
    if not may_be_remembered(request):
        return None
    exact = tx.grants_under(scopes(request, batch, widest))
    named = [g for g in tx.grants_naming(batch.place.server, request.call.tool) if covers(g, request, batch, widest)]
    usable = [grant for grant in (*exact, *named) if grant.stands(batch.opened) and standing(grant, request, batch)]
    if not usable:
        return None
    # A remembered reject wins over a remembered accept.
    one = min(usable, key=lambda grant: grant.choice is Choice.ACCEPT)
    tx.use_grant(one.id)
    note = f"remembered: grant {one.id} of {one.by.name}"
    end = Settlement(one.choice, None, batch.opened, note, grant=note_of(one))
    return replace(request, state=one.choice.state, settlement=end)
