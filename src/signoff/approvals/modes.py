"""What settles a request without a person: a mode, a remembered decision, or that nobody could decide it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from signoff.approvals.approvers import can_be_met
from signoff.approvals.grants import may_be_remembered, scopes
from signoff.approvals.model import ApprovalRequest, Batch, Choice, RequestKind, RequestState, Settlement
from signoff.approvals.ports import DeskTx

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Modes:
    """How the desk answers without a person."""

    mode: str = "interactive"
    on_no_approver: str = "reject"


def settled_without_people(tx: DeskTx, batch: Batch, modes: Modes) -> list[ApprovalRequest]:
    """Those requests of a new batch that nobody needs to be asked about, as they are settled."""
    settled = [r for r in (_one(tx, request, batch, modes) for request in batch.requests) if r is not None]
    left = {r.id for r in batch.requests} - {r.id for r in settled}
    if settled and all(r.held for r in batch.requests if r.id in left):
        # What was only held for the others has nothing left to wait for.
        alone = Settlement(Choice.ACCEPT, None, batch.opened, "it needs no approval by itself")
        held = (r for r in batch.requests if r.id in left)
        settled += [replace(r, state=RequestState.APPROVED, settlement=alone) for r in held]
    return settled


def _one(tx: DeskTx, request: ApprovalRequest, batch: Batch, modes: Modes) -> ApprovalRequest | None:
    fits_call = request.kind is RequestKind.CALL
    yes, no = (Choice.ACCEPT, Choice.REJECT) if fits_call else (Choice.RERUN, Choice.SKIP)
    if modes.mode == "auto_deny" and not request.held:
        choice, note = no, "mode auto_deny"
    elif granted := _granted(tx, request, batch):
        return granted
    elif modes.mode == "auto_approve" and fits_call:
        choice, note = yes, "mode auto_approve"
    elif not can_be_met(request, batch):
        approve = modes.on_no_approver == "approve" and fits_call
        choice, note = (yes if approve else no), "nobody may decide this request"
        log.warning("nobody may decide %s: %s automatically", request.call.tool, choice.state)
    else:
        return None
    return replace(request, state=choice.state, settlement=Settlement(choice, None, batch.opened, note))


def _granted(tx: DeskTx, request: ApprovalRequest, batch: Batch) -> ApprovalRequest | None:
    if not may_be_remembered(request):
        return None
    found = [one for one in tx.grants_under(scopes(request, batch.place)) if one.stands(batch.opened)]
    if not found:
        return None
    # A remembered no wins over a remembered yes.
    one = min(found, key=lambda grant: grant.choice is Choice.ACCEPT)
    tx.use_grant(one.id)
    note = f"remembered: grant {one.id} of {one.by.name}"
    return replace(request, state=one.choice.state, settlement=Settlement(one.choice, None, batch.opened, note))
