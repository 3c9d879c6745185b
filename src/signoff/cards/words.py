"""The wording that every front end shares: who may decide, how it ended, and the private answers to a click.

Lines of trusted text in which people, roles and times are data. Knows batches, and nothing of any medium.
"""

from __future__ import annotations

from signoff.approvals.model import Actor, ApprovalRequest, Batch, Choice, RequestState
from signoff.cards.model import Inline, Line, Moment, Person, RoleRef, Tone
from signoff.cards.visible import clip, plain

NAME_ROOM = 32
"""Discord's own limit for names; longer ones are cut, which is harmless: the id is what counts."""
DECIDERS = 4
"""So many people and roles are named."""
CANCEL_ROOM = 80

NOBODY: Line = ("nobody may decide this: it will expire",)

_BY_CHOICE = {
    Choice.ACCEPT: "APPROVED by ",
    Choice.REJECT: "REJECTED by ",
    Choice.RAN: "CONFIRMED as run by ",
    Choice.RERUN: "RUN AGAIN approved by ",
    Choice.SKIP: "SKIPPED by ",
}
_BY_NOBODY = {
    Choice.ACCEPT: "APPROVED automatically",
    Choice.REJECT: "REJECTED automatically",
    Choice.RAN: "CONFIRMED as run automatically",
    Choice.RERUN: "RUN AGAIN approved automatically",
    Choice.SKIP: "SKIPPED automatically",
}
_TONES = {
    RequestState.APPROVED: Tone.APPROVED,
    RequestState.REJECTED: Tone.REJECTED,
    RequestState.EXPIRED: Tone.EXPIRED,
    RequestState.CANCELLED: Tone.CANCELLED,
    RequestState.PENDING: Tone.OPEN,
}

UNKNOWN_REQUEST: Line = ("Unknown request: it is not from this place, or it is gone. Nothing was decided.",)
NOT_SAVED: Line = ("Nothing was decided: the decision could not be saved. The request is still open; try again.",)


def person(actor: Actor) -> Person:
    return Person(actor.id, clip(actor.name, NAME_ROOM)[0] or actor.id)


def deciders(approvers: tuple[str, ...], batch: Batch, *, named_at_most: int = DECIDERS) -> Line:
    """Who these specifications name, NOBODY included. An entry that cannot be read names nobody."""
    named = [inline for spec in dict.fromkeys(approvers) if (inline := _decider(spec, batch)) is not None]
    if not named:
        return NOBODY
    more = len(named) - named_at_most
    listed: list[Inline] = [*named[:named_at_most], *([f"{more} more"] if more > 0 else [])]
    line: list[Inline] = [listed[0]]
    for index, inline in enumerate(listed[1:], start=2):
        line += [" or " if index == len(listed) else ", ", inline]
    return tuple(line)


def may_decide_line(batch: Batch) -> Line:
    """The whole card's deciders, or that they differ from call to call."""
    every = {r.approvers for r in batch.requests}
    if len(every) != 1:
        return ("Who may decide differs by call",)
    who = deciders(next(iter(every)), batch)
    return ("Nobody may decide this: it will expire",) if who == NOBODY else ("May decide: ", *who)


def outcome(request: ApprovalRequest, *, cancel_room: int = CANCEL_ROOM) -> Line:
    """How this request ended, in the words that the card uses; empty while it is open."""
    settlement = request.settlement
    match request.state:
        case RequestState.PENDING:
            return ()
        case RequestState.EXPIRED:
            return ("TIMEOUT - Request expired",)
        case RequestState.CANCELLED:
            reason = settlement.note if settlement else ""
            return ("CANCELLED - " + (plain(reason, cancel_room, prose=True) or "no reason given"),)
        case RequestState.APPROVED | RequestState.REJECTED:
            usual = Choice.ACCEPT if request.state is RequestState.APPROVED else Choice.REJECT
            choice = (settlement.choice if settlement else None) or usual
            if settlement is None or settlement.by is None:
                return (_BY_NOBODY[choice],)
            return (_BY_CHOICE[choice], person(settlement.by))


def status(batch: Batch) -> tuple[Tone, Line | None]:
    """The card's tone and closing line: one outcome for all, or DECIDED where the calls differ."""
    if not batch.settled:
        return Tone.OPEN, None
    endings = {outcome(r) for r in batch.requests}
    if len(endings) > 1:
        return Tone.MIXED, ("DECIDED",)
    return (_TONES[batch.requests[0].state], endings.pop()) if batch.requests else (Tone.CANCELLED, ("CANCELLED",))


def already_settled(batch: Batch, target: str | None = None) -> Line:
    """The private answer to a click that came second; `target` is what the click located, if not the whole batch."""
    settled = [r for r in batch.requests if r.settlement and target in (None, batch.id, r.id)]
    endings = {outcome(r) for r in settled}
    if len(endings) != 1:
        return ("Already decided, call by call: see the card.",)
    first = settled[0]
    at: Line = (" ", Moment(first.settlement.at)) if first.settlement else ()
    match first.state:
        case RequestState.EXPIRED:
            return ("Too late, nobody decided in time: ", *outcome(first), *at)
        case RequestState.CANCELLED:
            return ("No longer open: ", *outcome(first), *at)
        case _:
            return ("Already decided: ", *outcome(first), *at)


def not_allowed(batch: Batch, target: str | None = None) -> Line:
    """The private answer to the wrong person: who may decide what they clicked on."""
    requests = [r for r in batch.requests if target in (None, batch.id, r.id)]
    specs = {r.approvers for r in requests}
    if len(specs) != 1:
        return ("You may not decide this. Who may differs by call: see the card.",)
    who = deciders(specs.pop(), batch)
    if who == NOBODY:
        return ("Nobody may decide this: it will expire.",)
    return ("You may not decide this. These may: ", *who)


def _decider(spec: str, batch: Batch) -> Inline | None:
    if spec == "manage_server":
        return "members with Manage Server"
    if spec == "asker":
        return person(batch.asker)
    kind, _, identifier = spec.partition(":")
    if not identifier or plain(identifier, NAME_ROOM) != identifier:
        return None
    if kind == "role":
        return RoleRef(identifier)
    if kind == "user":
        return person(batch.asker) if identifier == batch.asker.id else Person(identifier, identifier)
    return None
