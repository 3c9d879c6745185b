"""Turns the calls that a run deferred into one batch: one request per call, one deadline, one card.

A resumed run needs no `DeferredToolResults`: a history that ends in open calls is run again, and the gate settles each
call from the journal and the desk. See docs/decisions/001.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai import DeferredToolRequests

from signoff.approvals.approvers import effective
from signoff.approvals.escalation import with_escalation
from signoff.approvals.model import Batch, Ruling, Terms, Verdict
from signoff.approvals.notify import ways_of_card, without_copies
from signoff.errors import TurnFailed
from signoff.gate.gate import Gate
from signoff.gate.pending_call import PendingCall
from signoff.turns.model import Turn


def build_batch(
    requests: DeferredToolRequests,
    gate: Gate,
    turn: Turn,
    words: str,
    *,
    now: float,
    terms: Terms,
) -> Batch:
    """Build a batch with a request for every deferred call, in the model's order, and for calls inside them."""
    deferred = [gate.pending(call.tool_call_id) for call in requests.approvals]
    if requests.calls or not all(deferred):
        raise TurnFailed("A tool call was deferred past the gate. Nothing further was run. Please tell the operator.")
    asked = _each_limit_once([call for several in deferred for call in several])
    ran = tuple(tool for key, tool in gate.ran.items() if key.position == gate.responses)
    return batch_of_calls(asked, turn, words, ran, now=now, terms=terms)


def _each_limit_once(pending: Sequence[PendingCall]) -> list[PendingCall]:
    """Leave out repeated requests for an overage: several agents inside tools may reach the same limit."""
    limits: set[tuple[str, str]] = set()
    kept: list[PendingCall] = []
    for one in pending:
        if one.call.is_overage:
            limit = one.call.args["budget"], one.call.args["unit"]
            if limit in limits:
                continue
            limits.add(limit)
        kept.append(one)
    return kept


def _on_terms(call: PendingCall, terms: Terms) -> Ruling:
    """Return the terms on which people decide about the call, or answer it."""
    if call.inquiry is None:
        return terms.fill(call.ruling)
    ruling = terms.fill_answer(call.ruling)
    needs_approval = ruling.verdict is Verdict.ASK or call.ruling.notify is not None
    return ruling if needs_approval else replace(ruling, notify=without_copies(ruling.notify))


def batch_of_calls(
    pending: Sequence[PendingCall], turn: Turn, words: str, ran: tuple[str, ...], *, now: float, terms: Terms
) -> Batch:
    """Build a batch with a request for each of these calls. `ran`: tools of the same response that had run before."""
    rulings = [_on_terms(call, terms) for call in pending]
    asked = tuple(
        call.request(ruling, effective(ruling.approvers or (), turn.place))
        for call, ruling in zip(pending, rulings, strict=True)
    )
    # A card has one deadline, so the shortest timeout of the calls that ask applies.
    asking = [ruling for ruling in rulings if not ruling.held] or rulings
    seconds = min(ruling.timeout for ruling in asking if ruling.timeout)
    reminder = max((ruling.reminder for ruling in asking if ruling.reminder), default=seconds)
    asked = tuple(
        with_escalation(request, ruling.escalate, turn.place, now, now + seconds)
        for request, ruling in zip(asked, rulings, strict=True)
    )
    notify = () if turn.place.is_direct else ways_of_card(ruling.notify for ruling in asking)
    return Batch(
        id=secrets.token_hex(8),
        turn=turn.id,
        place=turn.place,
        asker=turn.asker,
        requests=asked,
        opened=now,
        deadline=now + seconds,
        model_text=words,
        already_ran=ran,
        remind_at=now + seconds - reminder if reminder < seconds else None,
        ping=any(ruling.ping for ruling in asking),
        notify=notify,
        untold=bool(notify),
    )
