"""The desk settles every decision (by a click, a mode, a grant or the clock) exactly once, in one transaction.

It wakes a waiting run only after the decision is durable. If no run in this process waits for a batch, because the
batch was opened before a restart, the desk puts the settled batch into the queue `unattended`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from signoff.approvals.approvers import named, parts, with_missing
from signoff.approvals.automatic import Modes, OwnMode, Standing, settled_without_people, stands_for
from signoff.approvals.clicks import Click, ClickTaker, locate
from signoff.approvals.errors import AlreadySettled, Refused
from signoff.approvals.escalation import escalate
from signoff.approvals.events import announce
from signoff.approvals.grants import Grant, GrantTerms
from signoff.approvals.missing_approvers import find_missing, note_missing
from signoff.approvals.model import (
    DIRECT,
    Actor,
    ApprovalRequest,
    Batch,
    CardCopy,
    JsonObject,
    Outcome,
    RequestState,
    Settlement,
)
from signoff.approvals.ports import Clock, DeskTx, Directory, RequestStore, Subscriber
from signoff.approvals.server_rules import must_manage
from signoff.approvals.settling import Ended, Settler
from signoff.approvals.todays_rules import TodaysRules, Unjudged
from signoff.approvals.votes import Unchecked
from signoff.dataclass import dataclass
from signoff.errors import StoreError

log = logging.getLogger(__name__)

LOST_INQUIRY = "the bot was restarted, and the MCP server no longer waits for this"
EARLY = 500
"""How many ids of deleted messages are kept. A card may be deleted before its message id is in the store."""


GoOn = Callable[[], object]
"""Continues a turn after the transaction that claimed it."""
Claim = Callable[[DeskTx, Batch], GoOn | None]
"""Claims the turn of a batch inside the transaction that settles the batch; None if somebody else will."""


@dataclass(frozen=True, slots=True)
class Woken:
    """A settled batch, and whether the transaction that settled it has claimed its turn, which goes on already."""

    batch: Batch
    claimed: bool = False


Taken = tuple[Outcome, GoOn | None]
"""What became of a click, and how to continue the turn that its transaction has claimed."""


@dataclass
class Desk:
    store: RequestStore
    clock: Clock
    modes: Modes = field(default_factory=Modes)
    grants: GrantTerms = field(default_factory=GrantTerms)
    directory: Directory | None = None
    mask: Callable[[JsonObject], JsonObject] = lambda args: args
    """Masks arguments for the record and the subscribers."""
    direct_users: frozenset[str] | None = None
    """The people who may use direct messages today. None: everybody."""
    todays: TodaysRules | None = None
    """Judges requests of an earlier process again. None: their own terms are enough."""
    subscribers: list[Subscriber] = field(default_factory=list[Subscriber])
    unattended: asyncio.Queue[Batch] = field(default_factory=asyncio.Queue["Batch"])
    """Settled batches that no run in this process waits for. The driver takes them and continues their turns."""
    _deleted_early: dict[str, str] = field(default_factory=dict[str, str])
    """Deleted message id -> reason, for messages whose card id is not recorded yet."""
    _futures: dict[str, asyncio.Future[Woken]] = field(default_factory=dict[str, "asyncio.Future[Woken]"])
    """Batch id -> the future that wakes its run."""
    _claims: dict[str, Claim] = field(default_factory=dict[str, Claim])
    """Batch id -> how to claim its turn."""
    _catching_up: asyncio.Future[None] | None = None

    @property
    def settler(self) -> Settler:
        return Settler(self.mask, self.grants)

    # Opening

    async def look_for_approvers(self, batch: Batch) -> Batch:
        """Note which approvers are missing. Call this before `open`.

        If the lookup fails, none are noted: each click is checked anyway.
        """
        missing = await find_missing(self.directory, batch.place.server, named(batch.questions))
        return replace(batch, requests=tuple(with_missing(missing, r) for r in batch.requests))

    async def look_up_givers(self, server: str, people: Collection[str]) -> dict[str, Actor | None]:
        """Return these people as they are now. A person who cannot be looked up counts as absent: their grants wait."""
        found: dict[str, Actor | None] = {}
        for person in people:
            try:
                found[person] = await self.directory.person(server, person) if self.directory else None
            except Exception as error:
                log.warning("could not look up %s, so what they had remembered is not used: %s", person, error)
                found[person] = None
        return found

    def open(
        self,
        tx: DeskTx,
        batch: Batch,
        cancelled: str = "",
        givers: Mapping[str, Actor | None] | None = None,
        own_mode: OwnMode | None = None,
    ) -> Batch:
        """Write a new batch inside the caller's transaction, and settle the requests that modes and grants can settle.

        `cancelled`: a reason to cancel the whole batch at once, before any grant or mode applies.
        `givers`: person -> as they are now, for people whose grants may apply. Raises Unchecked if one is not there.
        `own_mode`: the mode of the schedule that started the turn.
        """
        # Put questions first, so that every version of the program draws the same questions on a page.
        batch = replace(batch, requests=(*batch.questions, *batch.held))
        tx.insert_batch(batch)
        for request in batch.requests:
            data = {"turn": batch.turn, "kind": request.kind, "why": request.why, "missing": list(request.missing)}
            self.settler.record(tx, "asked", batch, request, batch.asker, data, batch.opened)
        if cancelled:
            return self.settler.end(tx, batch, RequestState.CANCELLED, batch.opened, cancelled)[0]
        modes = self.modes.of_run(own_mode)
        settled = settled_without_people(tx, batch, modes, self.grants.widest, self._standing(givers))
        return self.settler.settle(tx, batch, settled, batch.opened)[0]

    def _standing(self, givers: Mapping[str, Actor | None] | None) -> Standing:
        """Return the check whether the giver of a grant may still decide. Without a directory, everybody may."""
        if self.directory is None:
            return lambda grant, request, batch: True
        return partial(stands_for, givers or {})

    def watch(self, batch: Batch, claim: Claim | None = None) -> asyncio.Future[Woken]:
        """Return a future that resolves once the settling decision is committed. Call this after committing `open`.

        If a click settles the batch, `claim` claims its turn in the same transaction.
        """
        self._announce(batch, [r for r in batch.requests if r.settlement])
        future: asyncio.Future[Woken] = asyncio.get_running_loop().create_future()
        self._futures[batch.id] = future
        if claim:
            self._claims[batch.id] = claim
        self._wake(batch)
        return future

    # Deciding

    async def decide(self, click: Click) -> Outcome:
        """Settle a request, or every open request of a batch, as this person chose; or count their vote."""
        taken: list[Taken] = []
        try:
            outcome, go_on = await self._taken(click, taken)
        except asyncio.CancelledError:
            # The store finishes its work all the same.
            self._catching_up = asyncio.ensure_future(self._catch_up(click, taken))
            raise
        self._told(outcome, go_on)
        if outcome.late:
            raise AlreadySettled(outcome.batch)
        return outcome

    def _told(self, outcome: Outcome, go_on: GoOn | None) -> None:
        if outcome.settled:
            self._wake(outcome.batch, go_on)
            if self.subscribers:
                # A moment later, as a timer: the response to the person who clicked is sent first.
                asyncio.get_running_loop().call_later(0, self._announce, outcome.batch, outcome.settled)

    async def _catch_up(self, click: Click, taken: Sequence[Taken]) -> None:
        """Wake the run if a click that was cancelled has settled its batch after all, and nobody else has woken it."""
        try:
            batch = await self.find(click.target)  # in a later transaction than the click's
        except StoreError:
            return  # the sweeper or the next start takes the turn
        if taken and batch and batch.settled and batch.id in self._futures:
            self._told(*taken[-1])

    async def _taken(self, click: Click, taken: list[Taken]) -> Taken:
        """Run the transaction. If it needs to know earlier voters or today's rules, find that out and run it again.

        `taken` gets the result before the commit, for a caller that is cancelled.
        """
        taker, seen = ClickTaker(self.settler, self.direct_users, self.todays), dict[str, Actor | None]()

        def work(tx: DeskTx) -> Taken:
            outcome = taker.take(tx, click, seen, self.clock.now())
            claim = self._claims.get(outcome.batch.id) if outcome.settled and outcome.batch.settled else None
            taken.append((outcome, claim(tx, outcome.batch) if claim else None))
            return taken[-1]

        while True:
            try:
                return await self.store.run(work)
            except Unchecked as unchecked:
                for voter in unchecked.people:
                    seen[voter] = await self.directory.person(click.actor.server, voter) if self.directory else None
            except Unjudged as unjudged:
                assert self.todays is not None
                await self.todays.judge(unjudged.batch, unjudged.request)

    def server_rules_changed(self, server: str) -> None:
        """Judge the open requests of this server again before they are decided."""
        if self.todays:
            self.todays.server_rules_changed(server)

    async def look(self, target: str, actor: Actor, channel: str, card: str | None) -> Batch:
        """Return the current batch, to turn a page or open a form. Raises UnknownRequest."""
        return await self.store.run(lambda tx: locate(tx, target, actor, channel, card))

    async def find(self, target: str) -> Batch | None:
        """Return the batch of a request or batch id, wherever it is. The caller checks nothing yet."""
        return await self.store.run(lambda tx: tx.batch_about(target))

    async def open_by_server(self) -> Mapping[str, Sequence[Batch]]:
        """Server -> its batches with a pending request. Direct messages count as one server."""
        return await self.store.run(lambda tx: {server: tx.open_of(server) for server in tx.open_approvers()})

    # Deadlines, and cards that were deleted

    async def expire_due(self) -> Sequence[Batch]:
        """Settle every batch whose deadline has passed."""
        now = self.clock.now()

        def work(tx: DeskTx) -> list[Ended]:
            return [self.settler.end(tx, batch, RequestState.EXPIRED, now) for batch in tx.due(now)]

        return self._tell(await self.store.run(work))

    async def take_reminders(self) -> Sequence[Batch]:
        now = self.clock.now()
        return await self.store.run(lambda tx: tx.take_reminders(now))

    async def escalate_due(self) -> Sequence[Batch]:
        """Let further people decide the requests whose time of escalation has come. Each is escalated once."""
        now = self.clock.now()

        def work(tx: DeskTx) -> list[Batch]:
            return [escalate(tx, self.settler, batch, now) for batch in tx.escalations_due(now)]

        return await self.store.run(work)

    async def cancel(self, batch_id: str, reason: str) -> Batch | None:
        """Cancel the open requests of a batch. Returns None if nothing was open."""
        now = self.clock.now()

        def work(tx: DeskTx) -> list[Ended]:
            batch = tx.batch(batch_id)
            return [] if batch is None or batch.settled else [self.cancel_in(tx, batch, now, reason)]

        return next(iter(self._tell(await self.store.run(work))), None)

    async def cancel_lost_inquiries(self) -> Sequence[Batch]:
        """Cancel what MCP servers asked in an earlier process: the calls that waited for the answers are lost."""
        now = self.clock.now()
        end = Settlement(None, None, now, LOST_INQUIRY)

        def cancelled(batch: Batch) -> list[ApprovalRequest]:
            lost = [r for r in batch.pending if r.inquiry and r.inquiry.server]
            return [replace(request, state=RequestState.CANCELLED, settlement=end) for request in lost]

        def work(tx: DeskTx) -> list[Ended]:
            ended = [(batch, cancelled(batch)) for batch in tx.inquiring()]
            return [self.settler.settle(tx, batch, requests, now) for batch, requests in ended if requests]

        return self._tell(await self.store.run(work))

    def cancel_in(self, tx: DeskTx, batch: Batch, now: float, reason: str) -> Ended:
        """Cancel inside the caller's transaction. After the commit, the caller passes the result to `cancelled`."""
        return self.settler.end(tx, batch, RequestState.CANCELLED, now, reason)

    def cancelled(self, ended: Sequence[Ended]) -> None:
        self._tell(ended)

    async def card_posted(self, batch_id: str, card: str) -> Batch | None:
        """Store which message shows a batch, and cancel the batch if that message was already deleted.

        Returns the batch if it is settled by now.
        """

        def note(tx: DeskTx) -> Batch | None:
            tx.set_card(batch_id, card)
            return tx.batch(batch_id) if tx.is_settled(batch_id) else None

        settled = await self.store.run(note)
        reason = self._deleted_early.pop(card, "")
        return (await self.cancel(batch_id, reason) if reason else None) or settled

    async def copy_posted(self, batch_id: str, copy: CardCopy) -> Batch | None:
        """Store which message in an approvals channel shows a batch too. Returns the current batch."""

        def note(tx: DeskTx) -> Batch | None:
            tx.add_copy(batch_id, copy)
            return tx.batch(batch_id)

        return await self.store.run(note)

    async def copies_deleted(self, channel: str, message: str = "") -> Sequence[Batch]:
        """Forget the copies in a deleted message or channel. Their requests stay open; returns the open batches."""
        batches = await self.store.run(lambda tx: tx.drop_copies(channel, message))
        return [batch for batch in batches if not batch.settled]

    async def card_deleted(self, card: str, reason: str) -> Batch | None:
        """Cancel the batch whose card was deleted: nobody can decide it any more."""
        batch = await self.store.run(lambda tx: tx.batch_of_card(card))
        if batch is None:
            self._deleted_early[card] = reason
            for oldest in list(self._deleted_early)[:-EARLY]:
                del self._deleted_early[oldest]
        return await self.cancel(batch.id, reason) if batch else None

    async def place_deleted(self, channel: str, reason: str) -> Sequence[Batch]:
        """Cancel every open batch of a deleted channel or thread, also those of earlier processes."""
        batches = await self.store.run(lambda tx: tx.open_in(channel))
        ended = [await self.cancel(batch.id, reason) for batch in batches]
        return [batch for batch in ended if batch]

    async def recheck_approvers(self, naming: str = "") -> Sequence[Batch]:
        """Look for missing approvers of open requests; with `naming`, only for that role or person.

        Requests that nobody can decide any more are rejected. Returns the changed batches.
        """
        missing: dict[str, Collection[str]] = {}
        for server, specs in (await self.store.run(lambda tx: tx.open_approvers())).items():
            who = {part for spec in specs for part in parts(spec)}
            missing[server] = await find_missing(self.directory, server, who & {naming} if naming else who)
        now = self.clock.now()

        def work(tx: DeskTx) -> list[Ended]:
            batches = [batch for server in missing if missing[server] for batch in tx.open_of(server)]
            return [done for b in batches if (done := note_missing(tx, self.settler, b, missing[b.place.server], now))]

        return self._tell(await self.store.run(work))

    async def mark_card_final(self, batch_id: str, drawn: Collection[CardCopy] | None = None) -> bool:
        """Note that the card shows its end. With `drawn`, only if there is no copy besides those; returns whether."""

        def note(tx: DeskTx) -> bool:
            if drawn is not None and not set(tx.copies_of(batch_id)) <= set(drawn):
                return False
            tx.set_card_final(batch_id)
            return True

        return await self.store.run(note)

    # Grants

    async def standing_grants(self, server: str) -> Sequence[Grant]:
        now = self.clock.now()
        grants = await self.store.run(lambda tx: tx.grants_of(server))
        return [one for one in grants if one.stands(now)]

    async def revoke(self, grant_id: str, actor: Actor) -> Grant:
        """Revoke a grant. Admins may revoke the grants of their server; in direct messages people revoke their own."""
        if actor.server != DIRECT:
            must_manage(actor)
        now = self.clock.now()

        def work(tx: DeskTx) -> Grant:
            revoked = tx.revoke_grant(grant_id, actor.server, now)
            if revoked is None or not revoked.concerns(actor):
                raise Refused(f"There is no grant {grant_id} here.")
            tx.audit("revoked", actor.server, grant_id, actor.id, {"who": actor.name}, now, tool=revoked.tool)
            return revoked

        return await self.store.run(work)

    # Telling

    def _tell(self, ended: Sequence[Ended]) -> list[Batch]:
        for batch, settled in ended:
            self._announce(batch, settled)
            self._wake(batch)
        return [batch for batch, _ in ended]

    def _wake(self, batch: Batch, go_on: GoOn | None = None) -> None:
        if not batch.settled:
            return
        self._claims.pop(batch.id, None)
        if go_on:
            go_on()  # not by the future, which is a moment later: a stop that comes next has to find the step
        future = self._futures.pop(batch.id, None)
        if future is None:
            self.unattended.put_nowait(batch)
        elif not future.done():
            future.set_result(Woken(batch, go_on is not None))

    def _announce(self, batch: Batch, settled: Sequence[ApprovalRequest]) -> None:
        announce(self.subscribers, batch, settled, self.mask)
