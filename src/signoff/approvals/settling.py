"""Writes settled requests: their state, their record and their grants, inside the transaction that decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from signoff.approvals.automatic import settled_with_questions
from signoff.approvals.digest import canonical
from signoff.approvals.events import masked_answer, masked_note
from signoff.approvals.grants import Grant, GrantTerms, grant, may_be_remembered, note_of
from signoff.approvals.model import Actor, ApprovalRequest, Batch, JsonObject, Remember, RequestState, Settlement
from signoff.approvals.ports import DeskTx
from signoff.dataclass import dataclass

Ended = tuple[Batch, Sequence[ApprovalRequest]]
"""A batch after a change, and the requests that the change settled."""


@dataclass(frozen=True, slots=True)
class Settler:
    mask: Callable[[JsonObject], JsonObject]
    """Masks arguments for the record."""
    grants: GrantTerms

    def settle(self, tx: DeskTx, batch: Batch, settled: Sequence[ApprovalRequest], now: float) -> Ended:
        """Settle these requests, and the held calls together with the last question.

        Returns the batch and all requests that were settled.
        """
        batch, written = self._write(tx, batch, settled)
        batch, held = self._write(tx, batch, settled_with_questions(batch, now))
        return batch, [*written, *held]

    def _write(self, tx: DeskTx, batch: Batch, settled: Sequence[ApprovalRequest]) -> Ended:
        """Settle each request that is still open, record it, and store its grant. Returns the batch and these."""
        won: dict[str, ApprovalRequest] = {}
        # What people filled in without sending it is nobody's business any more.
        for request in (replace(request, drafts={}) if request.drafts else request for request in settled):
            end = request.settlement
            made = self._grant(request, batch)
            if end and made:
                request = replace(request, settlement=replace(end, grant=note_of(made)))
            if end is None or not tx.settle(request):
                continue
            won[request.id] = request
            who = end.by.name if end.by else ""
            note = masked_note(end.note, self.mask)
            data = {"choice": end.choice or "", "who": who, "note": note, "remember": end.remember}
            self.record(tx, request.ended_as, batch, request, end.by, data, end.at)
            if made:
                tx.insert_grant(made)
                self.record(tx, "granted", batch, request, end.by, _granted(made, end.remember), end.at)
        if won:
            batch = replace(batch, requests=tuple(won.get(r.id, r) for r in batch.requests))
        return batch, list(won.values())

    def _grant(self, request: ApprovalRequest, batch: Batch) -> Grant | None:
        """Return the grant that the decision about this request makes; None if it is not remembered."""
        end = request.settlement
        if not end or not end.choice or not end.by or end.remember is Remember.NONE or not may_be_remembered(request):
            return None
        return grant(request, batch, end.remember, end.by, end.choice, end.at, self.grants, end.coverage)

    def end(self, tx: DeskTx, batch: Batch, state: RequestState, now: float, reason: str = "") -> Ended:
        """Settle all open requests as expired or cancelled."""
        end = Settlement(None, None, now, reason)
        open_requests = batch.open_questions if batch.questions else batch.pending
        ended = [replace(request, state=state, settlement=end) for request in open_requests]
        return self.settle(tx, batch, ended, now)

    def record(
        self,
        tx: DeskTx,
        kind: str,
        batch: Batch,
        request: ApprovalRequest,
        by: Actor | None,
        data: JsonObject,
        at: float,
    ) -> None:
        """Write a row about a request. Its text is what the call asks, or the answer if there is one."""
        details = {"batch": batch.id, "digest": request.call.digest, **data}
        answer = masked_answer(request, self.mask)
        text = canonical(self.mask(_asked(request)) if answer is None else answer)
        actor = by.id if by else "signoff"
        tx.audit(kind, batch.place.server, request.id, actor, details, at, tool=request.call.tool, text=text)


def _asked(request: ApprovalRequest) -> JsonObject:
    """Return the call's arguments, with the question of an inquiry if they do not tell it."""
    args, inquiry = request.call.args, request.inquiry
    if inquiry is None or inquiry.tells_all:
        return args
    return {"arguments": args, "question": inquiry.words, "fields": [field.shown for field in inquiry.fields]}


def _granted(made: Grant, scope: Remember) -> JsonObject:
    """Return what the record says about a new grant. `named`: only if arguments are free."""
    named = {} if made.named is None else {"named": list(made.named)}
    return {"grant": made.id, "scope": scope, **named}
