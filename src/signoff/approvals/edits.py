"""Edits a call before it is accepted: new arguments are judged again, and votes for the old ones become void.

The edit is bound to the arguments that the editor saw. It does not count as a vote: the editor accepts afterwards.
"""

from __future__ import annotations

from dataclasses import field, replace

from signoff.approvals.approvers import can_be_met, effective
from signoff.approvals.clicks import open_request
from signoff.approvals.desk import Desk
from signoff.approvals.errors import Outdated, Refused, UnknownRequest
from signoff.approvals.escalation import with_escalation
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    Edit,
    JsonObject,
    Outcome,
    RequestKind,
    Terms,
    Verdict,
)
from signoff.approvals.ports import DeskTx, Revised, Reviser
from signoff.dataclass import dataclass


@dataclass(frozen=True)
class Editor:
    desk: Desk
    reviser: Reviser
    terms: Terms = field(default_factory=Terms)

    async def request(self, request_id: str, actor: Actor, channel: str, card: str | None) -> ApprovalRequest:
        """Return the current request if this person may edit it. Raises the same errors as a click."""
        batch = await self.desk.store.run(lambda tx: self._batch(tx, request_id, actor, channel, card))
        return _of(batch, request_id)

    async def edit(
        self, request_id: str, args: JsonObject, based_on: str, actor: Actor, channel: str, card: str | None
    ) -> Outcome:
        """Replace the arguments that have the digest `based_on`. Raises Refused with a text for the editor."""
        batch = await self.desk.store.run(lambda tx: self._batch(tx, request_id, actor, channel, card))
        seen = _of(batch, request_id)
        edit = _edit_of(seen, actor, self.desk.clock.now())
        new = await self._judged(batch, seen, await self.reviser.revise(batch, seen, args), edit)

        def work(tx: DeskTx) -> Batch:
            # Check everything again: somebody may have decided while the arguments were validated.
            current = self._batch(tx, request_id, actor, channel, card)
            request = _of(current, request_id)
            if request.call.digest != based_on or request.edit != seen.edit:
                raise Outdated(current)
            if new.call.digest == based_on:
                raise Refused("Nothing was changed: the card already shows these arguments.")
            return self._write(tx, current, request, new, actor)

        return Outcome(await self.desk.store.run(work), ())

    def _batch(self, tx: DeskTx, request_id: str, actor: Actor, channel: str, card: str | None) -> Batch:
        batch, request = open_request(tx, request_id, actor, channel, card, self.desk.clock.now())
        if request.kind is RequestKind.ANSWER:
            raise Refused("This call needs an answer. Its arguments cannot be edited.")
        if request.kind is not RequestKind.CALL:
            raise Refused("A call that may have run cannot be edited.")
        if request.held:
            raise Refused("This call needs no approval, so it cannot be edited.")
        return batch

    async def _judged(self, batch: Batch, old: ApprovalRequest, revised: Revised, edit: Edit) -> ApprovalRequest:
        """Return the request with the new arguments and the terms that apply to them. Raises Refused."""
        if revised.ruling.verdict is Verdict.DENY:
            raise Refused(f"Not changed: with these arguments the call is not allowed ({revised.ruling.reason}).")
        # The tool's metadata was about the old arguments.
        new = replace(old, call=revised.call, preview=revised.preview, diff_of=revised.diff_of, metadata={}, edit=edit)
        if revised.ruling.verdict is Verdict.ASK:
            ruling = self.terms.fill(revised.ruling)
            new = replace(
                new,
                why=ruling.reason,
                approvers=effective(ruling.approvers or (), batch.place),
                quorum=ruling.quorum,
                four_eyes=ruling.four_eyes,
                message=ruling.message,
            )
            new = with_escalation(new, ruling.escalate, batch.place, batch.opened, batch.deadline)
        (new,) = (await self.desk.look_for_approvers(replace(batch, requests=(new,)))).requests
        if not can_be_met(new, batch):
            missing = f"; missing: {', '.join(new.missing)}" if new.missing else ""
            raise Refused(f"Not changed: with these arguments nobody could decide the call ({new.why}{missing}).")
        return new

    def _write(self, tx: DeskTx, batch: Batch, old: ApprovalRequest, new: ApprovalRequest, actor: Actor) -> Batch:
        now = self.desk.clock.now()
        new = replace(new, votes=(), void=(), edit=_edit_of(old, actor, now))
        tx.rewrite(new)
        tx.set_revision(batch.id, batch.revision + 1)
        votes = [vote.by.id for vote in old.votes]
        data = {"who": actor.name, "before": old.call.digest, "votes_void": votes}
        self.desk.settler.record(tx, "edited", batch, new, actor, data, now)
        requests = tuple(new if r.id == new.id else r for r in batch.requests)
        return replace(batch, requests=requests, revision=batch.revision + 1)


def _edit_of(request: ApprovalRequest, actor: Actor, now: float) -> Edit:
    before, voided = request.edit, tuple(vote.by for vote in request.votes)
    if before is None:
        return Edit(request.call.args, request.call.digest, actor, now, voided)
    return Edit(before.original, before.original_digest, actor, now, voided, tuple(sorted(before.editors)))


def _of(batch: Batch, request_id: str) -> ApprovalRequest:
    request = next((r for r in batch.requests if r.id == request_id), None)
    if request is None:
        raise UnknownRequest("Unknown request.")
    return request
