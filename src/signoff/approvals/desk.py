"""The desk: every decision, from a click, a mode or the clock, is settled here, once, in one transaction.

First the transaction, then the future: whoever waits is woken only after the decision is durable. A batch that
nobody in this process waits for, because it was opened before a restart, wakes the `unattended` callback instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from signoff.approvals.approvers import may_decide
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    Choice,
    Outcome,
    RequestKind,
    RequestState,
    Settlement,
)
from signoff.approvals.ports import Clock, DeskTx, RequestStore, Subscriber
from signoff.errors import AlreadySettled, NotAllowed, UnknownRequest

log = logging.getLogger(__name__)

Unattended = Callable[[Batch], None]


@dataclass(frozen=True, slots=True)
class Modes:
    """How the desk answers without a person."""

    mode: str = "interactive"
    on_no_approver: str = "reject"


@dataclass
class Desk:
    store: RequestStore
    clock: Clock
    modes: Modes = field(default_factory=Modes)
    unattended: Unattended = lambda batch: None
    subscribers: list[Subscriber] = field(default_factory=list[Subscriber])
    _futures: dict[str, asyncio.Future[Batch]] = field(default_factory=dict[str, "asyncio.Future[Batch]"])

    def open(self, tx: DeskTx, batch: Batch) -> Batch:
        """Write a new batch inside the caller's transaction. Modes settle it right there, with nobody asked."""
        tx.insert_batch(batch)
        tx.audit(
            "opened",
            batch.place.server,
            batch.id,
            batch.asker.id,
            {"turn": batch.turn, "digests": [r.call.digest for r in batch.requests], "deadline": batch.deadline},
            batch.opened,
        )
        automatic = [self._without_people(r, batch.opened) for r in batch.requests]
        settled = [r for r in automatic if r is not None]
        return self._write(tx, batch, settled) if settled else batch

    def watch(self, batch: Batch) -> asyncio.Future[Batch]:
        """To be called once `open` is committed: a future that the settling decision resolves, after its own commit."""
        self._announce(batch, [r for r in batch.requests if r.settlement])
        future: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
        self._futures[batch.id] = future
        self._wake(batch)
        return future

    async def decide(
        self, target: str, choice: Choice, actor: Actor, channel: str, card: str | None = None, note: str = ""
    ) -> Outcome:
        """Settle a request, or every open request of a batch, as this person says.

        `card` is the message that was clicked: the click may be here before its posting was noted.
        """
        now = self.clock.now()

        def work(tx: DeskTx) -> tuple[Batch, Sequence[ApprovalRequest], bool]:
            batch = tx.batch(target) or tx.batch_of_request(target)
            if batch is None or batch.place.channel != channel or batch.place.server != actor.server:
                raise UnknownRequest("Unknown request.")
            if card and batch.card not in (None, card):
                raise UnknownRequest("Unknown request.")
            if card and batch.card is None:
                tx.set_card(batch.id, card)
                batch = replace(batch, card=card)
            located = [r for r in batch.pending if target in (batch.id, r.id)]
            if not located:
                return batch, (), False
            if now >= batch.deadline:
                expired = [_ended(r, RequestState.EXPIRED, now) for r in batch.pending]
                return self._write(tx, batch, expired), expired, False
            chosen = [r for r in located if r.kind is choice.fits]
            if not chosen:
                raise UnknownRequest("Unknown request.")
            if not all(may_decide(actor, r, batch) for r in chosen):
                raise NotAllowed(batch)
            settlement = Settlement(choice, actor, now, note)
            settled = [replace(r, state=choice.state, settlement=settlement) for r in chosen]
            return self._write(tx, batch, settled), settled, True

        batch, settled, in_time = await self.store.run(work)
        self._announce(batch, settled)
        if settled:
            self._wake(batch)
        if not in_time:
            raise AlreadySettled(batch)
        return Outcome(batch, tuple(settled))

    async def expire_due(self) -> Sequence[Batch]:
        """Settle everything whose deadline has passed. The clock's way through the same door."""
        now = self.clock.now()

        def work(tx: DeskTx) -> list[tuple[Batch, list[ApprovalRequest]]]:
            found: list[tuple[Batch, list[ApprovalRequest]]] = []
            for batch in tx.due(now):
                ended = [_ended(r, RequestState.EXPIRED, now) for r in batch.pending]
                found.append((self._write(tx, batch, ended), ended))
            return found

        expired = await self.store.run(work)
        for batch, ended in expired:
            self._announce(batch, ended)
            self._wake(batch)
        return [batch for batch, _ in expired]

    async def cancel(self, batch_id: str, reason: str) -> Batch | None:
        """End what is still open because it cannot be asked any more. None if nothing was open."""
        now = self.clock.now()

        def work(tx: DeskTx) -> tuple[Batch, list[ApprovalRequest]] | None:
            batch = tx.batch(batch_id)
            if batch is None or batch.settled:
                return None
            ended = [_ended(r, RequestState.CANCELLED, now, reason) for r in batch.pending]
            return self._write(tx, batch, ended), ended

        done = await self.store.run(work)
        if done is None:
            return None
        self._announce(*done)
        self._wake(done[0])
        return done[0]

    async def card_lost(self, card: str, reason: str) -> Batch | None:
        """The message that showed a card is gone: nobody can answer it any more."""
        batch = await self.store.run(lambda tx: tx.batch_of_card(card))
        return await self.cancel(batch.id, reason) if batch else None

    async def place_lost(self, channel: str, reason: str) -> Sequence[Batch]:
        """The channel or thread of cards is gone, whichever process posted them."""
        found = await self.store.run(lambda tx: tx.open_in(channel))
        ended = [await self.cancel(batch.id, reason) for batch in found]
        return [batch for batch in ended if batch]

    async def mark_card_final(self, batch_id: str) -> None:
        await self.store.run(lambda tx: tx.set_card_final(batch_id))

    def _without_people(self, request: ApprovalRequest, now: float) -> ApprovalRequest | None:
        """The request as a mode settles it, or None if people are to be asked."""
        fits_call = request.kind is RequestKind.CALL
        yes, no = (Choice.ACCEPT, Choice.REJECT) if fits_call else (Choice.RERUN, Choice.SKIP)
        if self.modes.mode == "auto_deny":
            choice, note = no, "mode auto_deny"
        elif self.modes.mode == "auto_approve" and fits_call:
            choice, note = yes, "mode auto_approve"
        elif not request.approvers:
            approve = self.modes.on_no_approver == "approve" and fits_call
            choice, note = (yes if approve else no), "nobody may decide this request"
            log.warning("nobody may decide %s: %s automatically", request.call.tool, choice.state)
        else:
            return None
        return replace(request, state=choice.state, settlement=Settlement(choice, None, now, note))

    def _write(self, tx: DeskTx, batch: Batch, settled: Sequence[ApprovalRequest]) -> Batch:
        """Compare-and-set each request, record it, and return the batch as it now stands."""
        won: dict[str, ApprovalRequest] = {}
        for request in settled:
            settlement = request.settlement
            if settlement is None or not tx.settle(request):
                continue
            won[request.id] = request
            actor = settlement.by.id if settlement.by else "signoff"
            data = {
                "batch": batch.id,
                "tool": request.call.tool,
                "digest": request.call.digest,
                "note": settlement.note,
            }
            tx.audit(request.state, batch.place.server, request.id, actor, data, settlement.at)
        return replace(batch, requests=tuple(won.get(r.id, r) for r in batch.requests))

    def _wake(self, batch: Batch) -> None:
        if not batch.settled:
            return
        future = self._futures.pop(batch.id, None)
        if future is None:
            self.unattended(batch)
        elif not future.done():
            future.set_result(batch)

    def _announce(self, batch: Batch, settled: Sequence[ApprovalRequest]) -> None:
        for request in settled:
            settlement = request.settlement
            event = {
                "event": "tool_approval",
                "tool": request.call.tool,
                "arguments": dict(request.call.args),
                "approved": request.state is RequestState.APPROVED,
                "state": str(request.state),
                "by": settlement.by.id if settlement and settlement.by else None,
                "how": (settlement.note if settlement else "") or str(request.state),
                "request": request.id,
                "server": batch.place.server,
                "conversation": batch.place.conversation,
            }
            for subscriber in self.subscribers:
                try:
                    subscriber(event)
                except Exception:
                    log.exception("a tool_approval subscriber failed; the decision stands")


def _ended(request: ApprovalRequest, state: RequestState, at: float, reason: str = "") -> ApprovalRequest:
    return replace(request, state=state, settlement=Settlement(None, None, at, reason))
