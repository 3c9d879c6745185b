"""Escalation: if nobody has settled a request in time, further people may decide it too.

Nobody loses a right, and quorum and four eyes still hold. An escalation happens once and is on the record. A decision
by somebody who may decide only because of it cannot be remembered: the next call asks the approvers first again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from signoff.approvals.approvers import both, may_decide
from signoff.approvals.model import Actor, ApprovalRequest, Batch, Escalation, Place, Ruling

if TYPE_CHECKING:
    from signoff.approvals.ports import DeskTx
    from signoff.approvals.settling import Settler


def combined_escalation(rulings: Sequence[Ruling]) -> Escalation | None:
    """Combine the escalations of rulings that all apply to one call, so that none of them becomes looser.

    After the escalation, as before it, a person must be named by every ruling that names approvers.
    """
    escalations = [ruling.escalate for ruling in rulings if ruling.escalate]
    if not escalations:
        return None
    before = reduce(both, [ruling.approvers for ruling in rulings])
    if before is None:
        to = reduce(both, [escalation.to for escalation in escalations]) or ()
    else:
        after = reduce(both, [_afterwards(ruling) for ruling in rulings]) or ()
        to = tuple(spec for spec in after if spec not in before)
    return Escalation(max(escalation.after for escalation in escalations), to) if to else None


def _afterwards(ruling: Ruling) -> tuple[str, ...] | None:
    if ruling.approvers is None or ruling.escalate is None:
        return ruling.approvers
    return (*ruling.approvers, *ruling.escalate.to)


def with_escalation(
    request: ApprovalRequest, escalation: Escalation | None, place: Place, opened: float, deadline: float
) -> ApprovalRequest:
    """Return the request with its escalation. There is none in direct messages, where nobody else is present.

    An escalation at or after the deadline is left out. A request that was escalated to the same people stays so.
    """
    to: tuple[str, ...] = ()
    if escalation and not place.is_direct and not request.held and opened + escalation.after < deadline:
        to = tuple(spec for spec in escalation.to if spec not in request.approvers)
    if escalation is None or not to:
        return replace(request, escalate_to=(), escalate_at=None)
    if request.escalated and request.escalate_to == to:
        return request
    return replace(request, escalate_to=to, escalate_at=opened + escalation.after)


def narrowed(
    new: ApprovalRequest, old: ApprovalRequest, todays: tuple[str, ...], not_before: float | None = None
) -> ApprovalRequest:
    """Return the request with an escalation only to people whom today's rules name, before or after an escalation.

    `not_before`: the time in the future at which today's rules escalate.
    """
    if not old.escalate_to:
        return new
    after = both((*old.approvers, *old.escalate_to), todays) or ()
    to = tuple(spec for spec in after if spec not in new.approvers)
    if not to:
        return replace(new, escalate_to=(), escalate_at=None)
    at = old.escalate_at if not_before is None else max(old.escalate_at or not_before, not_before)
    return replace(new, escalate_to=to, escalate_at=at)


def escalate(tx: DeskTx, settler: Settler, batch: Batch, now: float) -> Batch:
    """Escalate the open requests of this batch that are due, and record each."""
    changed: dict[str, ApprovalRequest] = {}
    for request in batch.open_questions:
        if request.escalate_at is not None and request.escalate_at <= now:
            changed[request.id] = replace(request, escalate_at=None)
            tx.rewrite(changed[request.id])
            data = {"to": ", ".join(request.escalate_to)}
            settler.record(tx, "escalated", batch, request, None, data, now)
    tx.set_untold(batch.id, True)
    return replace(batch, requests=tuple(changed.get(r.id, r) for r in batch.requests), untold=True)


def only_by_escalation(actor: Actor, request: ApprovalRequest, batch: Batch) -> bool:
    """Whether this person may decide only because the request was escalated."""
    return request.escalated and not may_decide(actor, replace(request, escalate_to=()), batch)
