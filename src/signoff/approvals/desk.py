"""The desk settles every decision (by a click, a mode, a grant or the clock) exactly once, in one transaction.

It wakes a waiting run only after the decision is durable. If no run in this process waits for a batch, because the
batch was opened before a restart, the desk puts the settled batch into the queue `unattended`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from signoff.approvals.approvers import named, objection, parts, with_missing
from signoff.approvals.automatic import Modes, Standing, released, settled_without_people, stands_for
from signoff.approvals.copies import located_copy
from signoff.approvals.coverage import EXACT, Coverage
from signoff.approvals.errors import AlreadySettled, AlreadyVoted, NotAllowed, Outdated, Refused, UnknownRequest
from signoff.approvals.escalation import escalate, only_by_escalation
from signoff.approvals.events import announce
from signoff.approvals.grants import Grant, GrantTerms
from signoff.approvals.missing_approvers import find_missing, note_missing
from signoff.approvals.model import (
    DIRECT,
    PAGE,
    Actor,
    ApprovalRequest,
    Batch,
    CardCopy,
    Choice,
    JsonObject,
    Outcome,
    Remember,
    RequestState,
    Settlement,
    Vote,
)
from signoff.approvals.ports import Clock, DeskTx, Directory, RequestStore, Subscriber
from signoff.approvals.server_rules import must_manage
from signoff.approvals.settling import Ended, Settler
from signoff.approvals.todays_rules import TodaysRules, Unjudged
from signoff.approvals.votes import Unchecked, count, may_remember

log = logging.getLogger(__name__)

NOT_LISTED = "the operator does not list you for direct messages any more"
CLOCK_SLACK = 2.0
"""Seconds that the clock may be behind the time at which a batch was opened."""
EARLY = 500
"""How many ids of deleted messages are kept. A card may be deleted before its message id is in the store."""


@dataclass(frozen=True, slots=True)
class Click:
    """A person's choice about a request or a whole batch, and which card they saw."""

    target: str
    choice: Choice
    actor: Actor
    channel: str
    card_message: str | None = None
    """The message that was clicked. A click may arrive before the message id is stored."""
    note: str = ""
    remember: Remember = Remember.NONE
    revision: int = 0
    """The revision of the batch that the clicked card showed; 0: no edits."""
    page: int | None = None
    """The page that was shown. Accepting the whole batch accepts only the calls of that page."""
    coverage: Coverage = EXACT
    """How much a remembered decision covers."""


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
    _futures: dict[str, asyncio.Future[Batch]] = field(default_factory=dict[str, "asyncio.Future[Batch]"])

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
        self, tx: DeskTx, batch: Batch, cancelled: str = "", givers: Mapping[str, Actor | None] | None = None
    ) -> Batch:
        """Write a new batch inside the caller's transaction, and settle the requests that modes and grants can settle.

        `cancelled`: a reason to cancel the whole batch at once, before any grant or mode applies.
        `givers`: person -> as they are now, for people whose grants may apply. Raises Unchecked if one is not there.
        """
        # Put questions first, so that every version of the program draws the same questions on a page.
        batch = replace(batch, requests=(*batch.questions, *batch.held))
        tx.insert_batch(batch)
        for request in batch.requests:
            data = {"turn": batch.turn, "kind": request.kind, "why": request.why, "missing": list(request.missing)}
            self.settler.record(tx, "asked", batch, request, batch.asker, data, batch.opened)
        if cancelled:
            return self.settler.end(tx, batch, RequestState.CANCELLED, batch.opened, cancelled)[0]
        settled = settled_without_people(tx, batch, self.modes, self.grants.widest, self._standing(givers))
        return self.settler.settle(tx, batch, settled, batch.opened)[0]

    def _standing(self, givers: Mapping[str, Actor | None] | None) -> Standing:
        """Return the check whether the giver of a grant may still decide. Without a directory, everybody may."""
        if self.directory is None:
            return lambda grant, request, batch: True
        return partial(stands_for, givers or {})

    def watch(self, batch: Batch) -> asyncio.Future[Batch]:
        """Return a future that resolves once the settling decision is committed. Call this after committing `open`."""
        self._announce(batch, [r for r in batch.requests if r.settlement])
        future: asyncio.Future[Batch] = asyncio.get_running_loop().create_future()
        self._futures[batch.id] = future
        self._wake(batch)
        return future

    # Deciding

    async def decide(self, click: Click) -> Outcome:
        """Settle a request, or every open request of a batch, as this person chose; or count their vote."""
        seen: dict[str, Actor | None] = {}
        outcome = await self._taken(click, seen)
        self._announce(outcome.batch, outcome.settled)
        if outcome.settled:
            self._wake(outcome.batch)
        if outcome.late:
            raise AlreadySettled(outcome.batch)
        return outcome

    async def _taken(self, click: Click, seen: dict[str, Actor | None]) -> Outcome:
        """Run the transaction. If it needs to know earlier voters or today's rules, find that out and run it again."""
        while True:
            try:
                return await self.store.run(lambda tx: self._take(tx, click, seen, self.clock.now()))
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
        return await self.store.run(lambda tx: self.locate(tx, target, actor, channel, card))

    async def find(self, target: str) -> Batch | None:
        """Return the batch of a request or batch id, wherever it is. The caller checks nothing yet."""
        return await self.store.run(lambda tx: tx.batch(target) or tx.batch_of_request(target))

    async def open_by_server(self) -> Mapping[str, Sequence[Batch]]:
        """Server -> its batches with a pending request. Direct messages count as one server."""
        return await self.store.run(lambda tx: {server: tx.open_of(server) for server in tx.open_approvers()})

    def locate(self, tx: DeskTx, target: str, actor: Actor, channel: str, card: str | None) -> Batch:
        """Return the batch of a click or a modal. Raises UnknownRequest if it belongs to another place or message."""
        batch = tx.batch(target) or tx.batch_of_request(target)
        if batch is not None and batch.place.channel != channel:
            batch, card = located_copy(tx, batch, channel, card), None
        if batch is None or batch.place.server != actor.server:
            raise UnknownRequest("Unknown request.")
        if card and batch.card_message not in (None, card):
            raise UnknownRequest("Unknown request.")
        if card and batch.card_message is None:
            tx.set_card(batch.id, card)
            batch = replace(batch, card_message=card)
        return batch

    def _take(self, tx: DeskTx, click: Click, seen: Mapping[str, Actor | None], now: float) -> Outcome:
        batch = self.locate(tx, click.target, click.actor, click.channel, click.card_message)
        located = [r for r in batch.pending if click.target == r.id or (click.target == batch.id and not r.held)]
        if not located:
            # An older version may have left held calls open although every question was settled.
            batch, settled = self.settler.settle(tx, batch, [], now)
            return Outcome(batch, tuple(settled), late=True)
        # A click from before the card was opened means that the system clock was set back while the bot was down.
        if now >= batch.deadline or now < batch.opened - CLOCK_SLACK:
            batch, expired = self.settler.end(tx, batch, RequestState.EXPIRED, now)
            return Outcome(batch, tuple(expired), late=True)
        chosen = [r for r in located if r.kind is click.choice.fits]
        approves = click.choice.state is RequestState.APPROVED
        if approves and click.page is not None and click.target == batch.id:
            chosen = [r for r in chosen if _is_on_page(r, batch, click.page)]
        if not chosen:
            raise UnknownRequest("Unknown request.")
        # First by the card's own terms: nobody else makes the desk judge a call again.
        chosen = self._allowed(click.actor, batch, chosen, approves)
        batch, chosen = self._by_todays_rules(tx, batch, chosen, approves, now)
        allowed = self._allowed(click.actor, batch, chosen, approves)
        # A remembered decision, accept or reject, must be about the call as the card showed it.
        binding = approves or click.remember is not Remember.NONE
        if binding and click.revision != batch.revision:
            raise Outdated(batch)
        self._check_remembering(click, batch, allowed)
        if click.target != batch.id and chosen[0].held:
            settled, voted = [_held_settled(click, chosen[0], now)], []
        elif approves:
            settled, voted = self._vote(tx, click, batch, allowed, seen, now)
        else:
            end = Settlement(click.choice, click.actor, now, click.note, click.remember, click.coverage)
            settled, voted = [replace(r, state=click.choice.state, settlement=end) for r in allowed], []
        batch, settled = self.settler.settle(tx, batch, settled, now)
        changed = {r.id: r for r in voted}
        batch = replace(batch, requests=tuple(changed.get(r.id, r) for r in batch.requests))
        return Outcome(batch, tuple(settled), tuple(voted))

    def _allowed(
        self, actor: Actor, batch: Batch, requests: Sequence[ApprovalRequest], accepts: bool
    ) -> list[ApprovalRequest]:
        """Return the requests that this person may decide. Raises NotAllowed if there are none."""
        if batch.place.is_direct and self.direct_users is not None and actor.id not in self.direct_users:
            raise NotAllowed(batch, NOT_LISTED)
        objections = [objection(actor, request, batch, accepts=accepts) for request in requests]
        allowed = [request for request, why in zip(requests, objections, strict=True) if why is None]
        if not allowed:
            raise NotAllowed(batch, next((why for why in objections if why), ""))
        return allowed

    def _by_todays_rules(
        self, tx: DeskTx, batch: Batch, requests: Sequence[ApprovalRequest], accepts: bool, now: float
    ) -> tuple[Batch, list[ApprovalRequest]]:
        """Tighten the terms of requests that were opened under earlier rules."""
        if self.todays is None or not self.todays.concern(batch):
            return batch, list(requests)
        todays = [r if r.held else self.todays.apply(r, batch, accepts=accepts, now=now) for r in requests]
        changed = {new.id: new for old, new in zip(requests, todays, strict=True) if new != old}
        for request in changed.values():
            tx.rewrite(request)
            log.info("today's rules ask more of request %s: %s", request.id, ", ".join(request.approvers) or "nobody")
        return replace(batch, requests=tuple(changed.get(r.id, r) for r in batch.requests)), todays

    def _vote(
        self,
        tx: DeskTx,
        click: Click,
        batch: Batch,
        requests: Sequence[ApprovalRequest],
        seen: Mapping[str, Actor | None],
        now: float,
    ) -> tuple[list[ApprovalRequest], list[ApprovalRequest]]:
        settled: list[ApprovalRequest] = []
        voted: list[ApprovalRequest] = []
        for request in requests:
            counted = count(Vote(click.actor, now, click.remember), request, batch, seen)
            for void in counted.void:
                self.settler.record(tx, "vote_void", batch, request, void.by, {"who": void.by.name}, now)
            earlier = tuple(vote for vote in request.void if vote.by.id != click.actor.id)
            after = replace(request, votes=counted.votes, void=(*earlier, *counted.void))
            if counted.complete:
                end = Settlement(click.choice, click.actor, now, click.note, counted.remember, click.coverage)
                settled.append(replace(after, state=click.choice.state, settlement=end))
            elif counted.void or click.actor.id not in {vote.by.id for vote in request.votes}:
                self.settler.record(tx, "vote", batch, request, click.actor, {"who": click.actor.name}, now)
                tx.rewrite(after)
                voted.append(after)
        if not settled and not voted:
            raise AlreadyVoted(batch)
        return settled, voted

    def _check_remembering(self, click: Click, batch: Batch, requests: Sequence[ApprovalRequest]) -> None:
        if click.remember.reach > self.grants.widest.reach:
            raise Refused("The operator does not allow decisions to be remembered that widely. Nothing was decided.")
        if click.remember is Remember.ALWAYS and not may_remember(click.actor, batch):
            raise Refused('"Always" needs the Manage Server permission. Nothing was decided.')
        if click.remember is not Remember.NONE and any(only_by_escalation(click.actor, r, batch) for r in requests):
            raise Refused(
                "You may decide this call because it was escalated, so your decision can't be remembered. "
                "Nothing was decided."
            )
        if not click.coverage.is_wide:
            return
        if self.grants.widest is not Remember.ALWAYS or not may_remember(click.actor, batch):
            raise Refused("This needs the Manage Server permission, and the operator's. Nothing was decided.")
        if click.target == batch.id or any(request.quorum > 1 for request in requests):
            raise Refused("Several people have to accept, so only exactly this call can be remembered.")

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

    def cancel_in(self, tx: DeskTx, batch: Batch, now: float, reason: str) -> Ended:
        """Cancel inside the caller's transaction. After the commit, the caller passes the result to `cancelled`."""
        return self.settler.end(tx, batch, RequestState.CANCELLED, now, reason)

    def cancelled(self, ended: Sequence[Ended]) -> None:
        self._tell(ended)

    async def card_posted(self, batch_id: str, card: str) -> Batch | None:
        """Store which message shows a batch, and cancel the batch if that message was already deleted.

        Returns the current batch.
        """

        def note(tx: DeskTx) -> Batch | None:
            tx.set_card(batch_id, card)
            return tx.batch(batch_id)

        batch = await self.store.run(note)
        reason = self._deleted_early.pop(card, "")
        return (await self.cancel(batch_id, reason) if reason else None) or batch

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
            batch = tx.batch(batch_id) if drawn is not None else None
            if batch and drawn is not None and not set(batch.copies) <= set(drawn):
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

    def _wake(self, batch: Batch) -> None:
        if not batch.settled:
            return
        future = self._futures.pop(batch.id, None)
        if future is None:
            self.unattended.put_nowait(batch)
        elif not future.done():
            future.set_result(batch)

    def _announce(self, batch: Batch, settled: Sequence[ApprovalRequest]) -> None:
        announce(self.subscribers, batch, settled, self.mask)


def _is_on_page(request: ApprovalRequest, batch: Batch, page: int) -> bool:
    """Whether the clicked card showed this request. Cards of older versions counted held calls when they made pages."""
    return request in batch.page(page) and request in batch.requests[page * PAGE : (page + 1) * PAGE]


def _held_settled(click: Click, request: ApprovalRequest, now: float) -> ApprovalRequest:
    """Settle a held call that a person decided on its own.

    A reject is that person's decision. An accept, which only older cards offer, counts as nobody's.
    """
    if click.choice is Choice.ACCEPT:
        return released(request, now)
    return replace(request, state=click.choice.state, settlement=Settlement(click.choice, click.actor, now, click.note))
