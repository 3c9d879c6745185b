"""Applies today's rules to requests that were opened under earlier ones, so that only today's approvers decide.

The operator may have changed `signoff.toml` between two runs of the bot, and admins change their server's rules at any
time. A request that was opened before keeps its own terms and gets today's on top: it never becomes easier to accept.
"""

from __future__ import annotations

from dataclasses import field, replace

from signoff.approvals.approvers import both, effective
from signoff.approvals.errors import Refused
from signoff.approvals.escalation import narrowed
from signoff.approvals.model import ApprovalRequest, Batch, Ruling, Terms, Verdict
from signoff.approvals.ports import Reviser
from signoff.dataclass import dataclass


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
    _changed: dict[str, int] = field(default_factory=dict[str, int])
    """Server -> how often its rules were changed in this process."""
    _rulings: dict[tuple[str, str], Ruling | str] = field(default_factory=dict[tuple[str, str], "Ruling | str"])
    """(request id, digest) -> today's ruling, or why there is none."""

    def server_rules_changed(self, server: str) -> None:
        self._changed[server] = self._changed.get(server, 0) + 1
        self._rulings.clear()

    def concern(self, batch: Batch) -> bool:
        # A batch may be opened after a rule was changed and still be judged before: its previews take time.
        return batch.place.server in self._changed or batch.opened < self.since

    async def judge(self, batch: Batch, request: ApprovalRequest) -> None:
        """Judge the call as it stands, and keep the ruling for `apply`."""
        before = self._changed.get(batch.place.server)
        ruling: Ruling | str
        try:
            fill = self.terms.fill if request.inquiry is None else self.terms.fill_answer
            ruling = fill((await self.reviser.revise(batch, request, request.call.args)).ruling)
        except Refused as refused:
            ruling = str(refused)
        if self._changed.get(batch.place.server) == before:  # otherwise this is already out of date
            self._rulings[_key(request)] = ruling

    def apply(self, request: ApprovalRequest, batch: Batch, *, accepts: bool, now: float) -> ApprovalRequest:
        """Return the request with its own terms and today's. Raises Unjudged, or Refused if today's rules forbid it."""
        ruling = self._rulings.get(_key(request))
        if ruling is None:
            raise Unjudged(batch, request)
        if isinstance(ruling, str):
            del self._rulings[_key(request)]  # the cause may pass: the next click tries again
            if not accepts:
                return request
            raise Refused(f"This call could not be checked against today's configuration ({ruling}). Try again.")
        if ruling.verdict is Verdict.DENY:
            if not accepts:
                return request
            raise Refused(f"Today's configuration does not allow this call ({ruling.reason}). Nothing was decided.")
        # People answer an inquiry even if its call needs no approval.
        is_free = ruling.verdict is Verdict.ALLOW and request.inquiry is None
        return request if is_free else _tightened(request, ruling, batch, now)


def _tightened(request: ApprovalRequest, ruling: Ruling, batch: Batch, now: float) -> ApprovalRequest:
    todays = effective(ruling.approvers or (), batch.place)
    tightened = replace(
        request,
        approvers=both(request.approvers, todays) or (),
        quorum=max(request.quorum, ruling.quorum),
        four_eyes=request.four_eyes or ruling.four_eyes,
    )
    if ruling.escalate is None:
        return narrowed(tightened, request, todays)
    due = batch.opened + ruling.escalate.after
    return narrowed(tightened, request, (*todays, *ruling.escalate.to), not_before=due if due > now else None)


def _key(request: ApprovalRequest) -> tuple[str, str]:
    return request.id, request.call.digest
