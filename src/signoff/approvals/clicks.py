"""One person's click: finds its batch, checks that the person may decide, and settles or votes.

All of it happens inside the desk's transaction, so two clicks never decide the same request.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from signoff.approvals.approvers import objection
from signoff.approvals.automatic import released
from signoff.approvals.copies import located_copy
from signoff.approvals.coverage import EXACT, Coverage
from signoff.approvals.errors import AlreadySettled, AlreadyVoted, NotAllowed, Outdated, Refused, UnknownRequest
from signoff.approvals.escalation import only_by_escalation
from signoff.approvals.inquiries import BadAnswer
from signoff.approvals.model import (
    PAGE,
    Actor,
    ApprovalRequest,
    Batch,
    Choice,
    JsonObject,
    Outcome,
    Remember,
    RequestState,
    Settlement,
    Vote,
)
from signoff.approvals.ports import DeskTx
from signoff.approvals.settling import Settler
from signoff.approvals.todays_rules import TodaysRules
from signoff.approvals.votes import count, may_remember
from signoff.dataclass import dataclass

log = logging.getLogger(__name__)

NOT_LISTED = "the operator does not list you for direct messages any more"
CLOCK_SLACK = 2.0
"""Seconds that the clock may be behind the time at which a batch was opened."""


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
    answer: JsonObject | None = None
    """The answer, if that is the choice: name of each field -> its value."""


def locate(tx: DeskTx, target: str, actor: Actor, channel: str, card: str | None) -> Batch:
    """Return the batch of a click or a modal. Raises UnknownRequest if it belongs to another place or message."""
    batch = tx.batch_about(target)
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


def open_request(
    tx: DeskTx, request_id: str, actor: Actor, channel: str, card: str | None, now: float
) -> tuple[Batch, ApprovalRequest]:
    """Return an open request that this person may decide, with its batch. Raises the same errors as a click."""
    batch = locate(tx, request_id, actor, channel, card)
    request = next((r for r in batch.requests if r.id == request_id), None)
    if request is None:
        raise UnknownRequest("Unknown request.")
    if request.state is not RequestState.PENDING or now >= batch.deadline:
        raise AlreadySettled(batch)
    if (why := objection(actor, request, batch)) is not None:
        raise NotAllowed(batch, why)
    return batch, request


@dataclass(frozen=True, slots=True)
class ClickTaker:
    settler: Settler
    direct_users: frozenset[str] | None
    """The people who may use direct messages today. None: everybody."""
    todays: TodaysRules | None
    """Judges requests of an earlier process again. None: their own terms are enough."""

    def take(self, tx: DeskTx, click: Click, seen: Mapping[str, Actor | None], now: float) -> Outcome:
        """Settle what the click chose, or count it as a vote, inside the desk's transaction.

        `seen`: person -> as they are now. Raises Unchecked if an earlier voter is not there, and Unjudged if a request
        has to be judged by today's rules first.
        """
        batch = locate(tx, click.target, click.actor, click.channel, click.card_message)
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
        chosen = allowed = self._allowed(click.actor, batch, chosen, approves)
        if self.todays is not None and self.todays.concern(batch):
            batch, chosen = self._by_todays_rules(self.todays, tx, batch, chosen, approves, now)
            allowed = self._allowed(click.actor, batch, chosen, approves)
        # A remembered decision, accept or reject, must be about the call as the card showed it. No edit changes a
        # question.
        binding = (approves and click.choice is not Choice.ANSWER) or click.remember is not Remember.NONE
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
        if changed := {r.id: r for r in voted}:
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
        self,
        rules: TodaysRules,
        tx: DeskTx,
        batch: Batch,
        requests: Sequence[ApprovalRequest],
        accepts: bool,
        now: float,
    ) -> tuple[Batch, list[ApprovalRequest]]:
        """Tighten the terms of requests that were opened under earlier rules."""
        todays = [r if r.held else rules.apply(r, batch, accepts=accepts, now=now) for r in requests]
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
            answer = _checked(click, request)
            counted = count(Vote(click.actor, now, click.remember), request, batch, seen)
            for void in counted.void:
                self.settler.record(tx, "vote_void", batch, request, void.by, {"who": void.by.name}, now)
            earlier = tuple(vote for vote in request.void if vote.by.id != click.actor.id)
            votes, void = counted.votes, (*earlier, *counted.void)
            if counted.complete:
                end = Settlement(
                    click.choice, click.actor, now, click.note, counted.remember, click.coverage, answer=answer
                )
                settled.append(replace(request, votes=votes, void=void, state=click.choice.state, settlement=end))
            elif counted.void or click.actor.id not in {vote.by.id for vote in request.votes}:
                self.settler.record(tx, "vote", batch, request, click.actor, {"who": click.actor.name}, now)
                voted.append(replace(request, votes=votes, void=void))
                tx.rewrite(voted[-1])
        if not settled and not voted:
            raise AlreadyVoted(batch)
        return settled, voted

    def _check_remembering(self, click: Click, batch: Batch, requests: Sequence[ApprovalRequest]) -> None:
        if click.remember is Remember.NONE and not click.coverage.is_wide:
            return
        if click.remember.reach > self.settler.grants.widest.reach:
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
        if self.settler.grants.widest is not Remember.ALWAYS or not may_remember(click.actor, batch):
            raise Refused("This needs the Manage Server permission, and the operator's. Nothing was decided.")
        if click.target == batch.id or any(request.quorum > 1 for request in requests):
            raise Refused("Several people have to accept, so only exactly this call can be remembered.")


def _checked(click: Click, request: ApprovalRequest) -> JsonObject | None:
    """Return the answer to an inquiry, if this click gives one. Raises Refused if it does not fit the form."""
    if request.inquiry is None:
        return None
    try:
        return request.inquiry.check(click.answer or {})
    except BadAnswer as error:
        raise Refused(str(error)) from error


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
