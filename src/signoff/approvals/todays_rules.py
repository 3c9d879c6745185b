"""Applies today's rules to requests that were opened under earlier ones, so that only today's approvers decide.

The operator may have changed `signoff.toml` between two runs of the bot, and admins change their server's rules at any
time. A request that was opened before keeps its own terms and gets today's on top: it never becomes easier to accept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from signoff.approvals.approvers import both, effective
from signoff.approvals.errors import Refused
from signoff.approvals.escalation import narrowed
from signoff.approvals.model import ApprovalRequest, Batch, Place, Ruling, Terms, Verdict
from signoff.approvals.ports import Reviser


class Unjudged(Exception):
    """This request must be judged by today's rules first."""

    def __init__(self, batch: Batch, request: ApprovalRequest) -> None:
        super().__init__("not judged by today's rules")
        self.batch = batch
        self.request = request


@dataclass
class TodaysRules:
    reviser: Reviser
    terms: Terms
    since: float
    """When this process started. Every request that was opened before may have been judged by other rules."""
    _changed: dict[str, float] = field(default_factory=dict[str, float])
    """Server -> when its rules were changed last, in this process."""
    _rulings: dict[tuple[str, str], Ruling | str] = field(default_factory=dict[tuple[str, str], "Ruling | str"])
    """(request id, digest) -> today's ruling, or why there is none."""

    def server_rules_changed(self, server: str, now: float) -> None:
        self._changed[server] = now
        self._rulings.clear()

    def concern(self, batch: Batch) -> bool:
        return batch.opened < self._changed.get(batch.place.server, self.since)

    async def judge(self, batch: Batch, request: ApprovalRequest) -> None:
        """Judge the call as it stands, and keep the ruling for `apply`."""
        try:
            ruling = self.terms.fill((await self.reviser.revise(batch, request, request.call.args)).ruling)
        except Refused as refused:
            self._rulings[_key(request)] = str(refused)
        else:
            self._rulings[_key(request)] = ruling

    def apply(self, request: ApprovalRequest, batch: Batch, *, accepts: bool) -> ApprovalRequest:
        """Return the request with its own terms and today's. Raises Unjudged, or Refused if today's rules forbid it."""
        ruling = self._rulings.get(_key(request))
        if ruling is None:
            raise Unjudged(batch, request)
        if isinstance(ruling, str) or ruling.verdict is Verdict.DENY:
            if not accepts:
                return request
            why = ruling if isinstance(ruling, str) else ruling.reason
            raise Refused(f"Today's configuration does not allow this call ({why}). Nothing was decided.")
        return request if ruling.verdict is Verdict.ALLOW else _tightened(request, ruling, batch.place)


def _tightened(request: ApprovalRequest, ruling: Ruling, place: Place) -> ApprovalRequest:
    todays = effective(ruling.approvers or (), place)
    tightened = replace(
        request,
        approvers=both(request.approvers, todays) or (),
        quorum=max(request.quorum, ruling.quorum),
        four_eyes=request.four_eyes or ruling.four_eyes,
    )
    return narrowed(tightened, request, (*todays, *(ruling.escalate.to if ruling.escalate else ())))


def _key(request: ApprovalRequest) -> tuple[str, str]:
    return request.id, request.call.digest
