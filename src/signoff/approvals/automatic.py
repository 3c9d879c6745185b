"""What settles a request without a person: a mode, a remembered decision, or that nobody could decide it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from signoff.approvals.approvers import can_be_met
from signoff.approvals.grants import may_be_remembered, scopes
from signoff.approvals.model import ApprovalRequest, Batch, Choice, Remember, RequestKind, RequestState, Settlement
from signoff.approvals.ports import DeskTx

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Modes:
    """How the desk answers without a person."""

    mode: str = "interactive"
    on_no_approver: str = "reject"


def settled_without_people(tx: DeskTx, batch: Batch, modes: Modes, widest: Remember) -> list[ApprovalRequest]:
    """Those requests of a new batch that nobody needs to be asked about, as they are settled."""
    settled = [r for r in (_one(tx, request, batch, modes, widest) for request in batch.requests) if r is not None]
    return [*settled, *_released(batch, settled, batch.opened)]


def settled_for_nobody(batch: Batch, now: float) -> list[ApprovalRequest]:
    """Those open requests that nobody can decide any more, as they are settled: nobody approves by deleting a role."""
    settled = [_by_nobody(request, Modes(), now) for request in batch.pending if not can_be_met(request, batch)]
    return [*settled, *_released(batch, settled, now)] if settled else []


def _released(batch: Batch, settled: Sequence[ApprovalRequest], now: float) -> list[ApprovalRequest]:
    """What was only held for the others has nothing left to wait for."""
    left = [r for r in batch.pending if r.id not in {s.id for s in settled}]
    return [_alone(r, now) for r in left] if all(r.held for r in left) else []


def _alone(request: ApprovalRequest, now: float) -> ApprovalRequest:
    end = Settlement(Choice.ACCEPT, None, now, "it needs no approval by itself")
    return replace(request, state=RequestState.APPROVED, settlement=end)


def _one(tx: DeskTx, request: ApprovalRequest, batch: Batch, modes: Modes, widest: Remember) -> ApprovalRequest | None:
    fits_call = request.kind is RequestKind.CALL
    yes, no = (Choice.ACCEPT, Choice.REJECT) if fits_call else (Choice.RERUN, Choice.SKIP)
    if modes.mode == "auto_deny" and not request.held:
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
    if request.held:
        return _alone(request, now)
    choice = Choice.REJECT if request.kind is RequestKind.CALL else Choice.SKIP
    # A server's rule that nobody can meet must not make a call looser than the operator has it.
    if modes.on_no_approver == "approve" and request.kind is RequestKind.CALL and not request.by_server:
        choice = Choice.ACCEPT
    log.warning("nobody may decide %s: %s automatically", request.call.tool, choice.state)
    end = Settlement(choice, None, now, "nobody may decide this request")
    return replace(request, state=choice.state, settlement=end)


def _granted(tx: DeskTx, request: ApprovalRequest, batch: Batch, widest: Remember) -> ApprovalRequest | None:
    if not may_be_remembered(request):
        return None
    found = [one for one in tx.grants_under(scopes(request, batch, widest)) if one.stands(batch.opened)]
    if not found:
        return None
    # A remembered no wins over a remembered yes.
    one = min(found, key=lambda grant: grant.choice is Choice.ACCEPT)
    tx.use_grant(one.id)
    note = f"remembered: grant {one.id} of {one.by.name}"
    return replace(request, state=one.choice.state, settlement=Settlement(one.choice, None, batch.opened, note))
