"""The wording that every front end shares: how a call ended, votes, held calls, and private responses to a click.

Every line is trusted text in which people, roles and times are data. This module knows batches and the desk's errors,
but no medium. The wording about approvers is in `approver_names`.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.approvals.errors import AlreadySettled, AlreadyVoted, NotAllowed, Outdated, Refused, UnknownRequest
from signoff.approvals.grants import GrantTerms, depends_on_asker
from signoff.approvals.model import ApprovalRequest, Batch, Choice, Remember, RequestKind, RequestState
from signoff.cards.approver_names import (
    CONDITIONS,
    NAME_BUDGET,
    NOBODY,
    decide_or_answer,
    may_decide,
    people,
    person,
)
from signoff.cards.model import Line, Moment, Tone
from signoff.text.visible import plain, visible

CANCEL_BUDGET = 80

_BY_CHOICE = {
    Choice.ACCEPT: "APPROVED by ",
    Choice.REJECT: "REJECTED by ",
    Choice.RAN: "CONFIRMED as run by ",
    Choice.RERUN: "RUN AGAIN approved by ",
    Choice.SKIP: "SKIPPED by ",
    Choice.ANSWER: "ANSWERED by ",
    Choice.DECLINE: "DECLINED by ",
}
_BY_NOBODY = {
    Choice.ACCEPT: "APPROVED automatically",
    Choice.REJECT: "REJECTED automatically",
    Choice.RAN: "CONFIRMED as run automatically",
    Choice.RERUN: "RUN AGAIN approved automatically",
    Choice.SKIP: "SKIPPED automatically",
    Choice.ANSWER: "ANSWERED automatically",
    Choice.DECLINE: "DECLINED automatically",
}
_COUNTED = {
    Choice.RAN: "confirmed as run",
    Choice.RERUN: "run again",
    Choice.SKIP: "skipped",
    Choice.ANSWER: "answered",
    Choice.DECLINE: "declined",
}
_TONES = {
    RequestState.APPROVED: Tone.APPROVED,
    RequestState.REJECTED: Tone.REJECTED,
    RequestState.EXPIRED: Tone.EXPIRED,
    RequestState.CANCELLED: Tone.CANCELLED,
    RequestState.PENDING: Tone.OPEN,
}

_REMEMBERED = {
    Remember.SESSION: ", remembered in this conversation",
    Remember.ALWAYS: ", remembered in this server",
}

HELD_TITLE = "This call needs no approval"
HELD_LEAD: Line = ("It runs once everything on the card is decided and at least one call was accepted.",)
UNKNOWN_REQUEST: Line = ("Unknown request: it belongs to another place or no longer exists. Nothing was decided.",)
NOT_SAVED: Line = ("Nothing was decided: the decision could not be saved. The request is still open; try again.",)
OUTDATED: Line = ("The call was edited after you opened this: look again. Nothing was decided.",)
LOOK_AGAIN: Line = ("The card has changed since you looked: look again. Nothing was decided.",)
SLOW: Line = ("I am slow right now. Nothing was changed; try again.",)


def votes_line(request: ApprovalRequest) -> Line:
    """Say who has accepted so far, if the call needs several votes; empty otherwise."""
    if request.quorum <= 1:
        return ()
    count = f"Accepted by {len(request.votes)} of {request.quorum}"
    return (f"{count}: ", *people(vote.by for vote in request.votes)) if request.votes else (count,)


def void_line(request: ApprovalRequest) -> Line:
    """Name the people whose votes no longer count; empty if all votes count."""
    if not request.void:
        return ()
    votes, count = ("The vote of ", "counts") if len(request.void) == 1 else ("The votes of ", "count")
    return (votes, *people(vote.by for vote in request.void), f" no longer {count}: they may no longer decide this")


def edit_lines(request: ApprovalRequest) -> list[Line]:
    edit = request.edit
    if edit is None:
        return []
    lines: list[Line] = [("Edited by ", person(edit.by), " ", Moment(edit.at))]
    return [*lines, ("Votes that this edit made void: ", *people(edit.voided))] if edit.voided else lines


def outcome(request: ApprovalRequest, *, cancel_budget: int = CANCEL_BUDGET) -> Line:
    """Say how this request ended; empty while it is open."""
    settlement = request.settlement
    match request.state:
        case RequestState.PENDING:
            return ()
        case RequestState.EXPIRED:
            return ("TIMEOUT - Request expired",)
        case RequestState.CANCELLED:
            reason = settlement.note if settlement else ""
            return ("CANCELLED - " + (plain(reason, cancel_budget, prose=True) or "no reason given"),)
        case RequestState.APPROVED | RequestState.REJECTED:
            is_asked = request.kind is RequestKind.ANSWER
            yes, no = (Choice.ANSWER, Choice.DECLINE) if is_asked else (Choice.ACCEPT, Choice.REJECT)
            usual = yes if request.state is RequestState.APPROVED else no
            choice = (settlement.choice if settlement else None) or usual
            if settlement is None or settlement.by is None:
                how = plain(settlement.note, cancel_budget, prose=True) if settlement else ""
                return (_BY_NOBODY[choice] + (f": {how}" if how else ""),)
            decided = [settlement.by]
            if choice.state is RequestState.APPROVED and len(request.votes) > 1:
                decided = [vote.by for vote in request.votes]
            far = _REMEMBERED.get(settlement.remember, "")
            return (_BY_CHOICE[choice], *people(decided), *([far] if far else []))


def status(batch: Batch) -> tuple[Tone, Line | None]:
    """Return the card's tone and its title once it is settled: one outcome for all calls, or how many ended how."""
    if not batch.settled:
        in_doubt = any(r.kind is RequestKind.MAY_HAVE_RUN for r in batch.open_questions)
        return Tone.IN_DOUBT if in_doubt else Tone.OPEN, None
    questions = batch.questions
    if not questions:
        return Tone.CANCELLED, ("CANCELLED",)
    endings, states = {outcome(r) for r in questions}, [r.state for r in questions]
    tone = _TONES[states[0]] if len(set(states)) == 1 else Tone.MIXED
    if len(endings) == 1:
        return tone, endings.pop()
    words = [_counted(r) for r in questions]
    asks_people = any(r.kind is RequestKind.ANSWER for r in questions)
    if tone is Tone.MIXED or (asks_people and len(set(words)) > 1):
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        return tone, (f"DECIDED: {counts}",)
    return tone, _together(questions)


def _counted(request: ApprovalRequest) -> str:
    """The word under which a settled request is counted."""
    choice = request.settlement.choice if request.settlement else None
    return _COUNTED.get(choice, str(request.state)) if choice else str(request.state)


def outcomes_differ(requests: Sequence[ApprovalRequest]) -> bool:
    return len(requests) > 1 and len({outcome(r) for r in requests}) > 1


def _together(requests: Sequence[ApprovalRequest]) -> Line:
    """Say how requests ended that all have one state, but not one outcome: for example, several people accepted."""
    deciders = {r.settlement.by.id: r.settlement.by for r in requests if r.settlement and r.settlement.by}
    ended = (_counted(requests[0]) if requests[0].kind is RequestKind.ANSWER else requests[0].state).upper()
    if requests[0].state is RequestState.CANCELLED or not deciders:
        return (ended,)
    return (f"{ended} by ", *people(deciders.values()))


def already_settled(batch: Batch, target: str | None = None) -> Line:
    """The private response to a click that came too late. `target` is the clicked request, or None for the whole batch.

    It is possible that no request is settled yet: after the deadline a click is too late, even if the expired requests
    are still pending in the store.
    """
    settled = [r for r in _located(batch, target) if r.settlement]
    if not settled:
        return ("Too late, nobody decided in time: the deadline passed ", Moment(batch.deadline))
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


def not_allowed(batch: Batch, target: str | None = None, why: str = "") -> Line:
    """The private response to somebody who may not decide: who may, or `why` this person may not."""
    # An approver of any question may reject a held call.
    requests = [r for r in _located(batch, target) if not r.held] or batch.questions
    decide = decide_or_answer(requests)
    if why:
        return (f"You may not {decide} this: {why}.",)
    specs = {(r.current_approvers, r.missing, r.quorum, r.four_eyes) for r in requests}
    if len(specs) != 1:
        return (f"You may not {decide} this. Who may differs by call: see the card.",)
    who = may_decide(requests[0], batch)
    if who == NOBODY:
        return (f"Nobody may {decide} this: it will expire.",)
    return (f"You may not {decide} this. These may: ", *who)


def already_voted(batch: Batch, target: str | None = None) -> Line:
    """The private response to a second accept by the same person."""
    requests = [r for r in batch.pending if r.votes and target in (None, batch.id, r.id)]
    counts = {(len(r.votes), r.quorum) for r in requests}
    if len(counts) != 1:
        return ("Your accepts are counted. Others have to accept too: see the card.",)
    votes, quorum = counts.pop()
    return (f"Your accept is counted: {votes} of {quorum}.",)


def answer(batch: Batch, target: str) -> Line:
    """The outcome of one call or of the whole card, for the person who decided it in a private message."""
    request = next((r for r in batch.requests if r.id == target), None)
    if request is None:
        if any(r.votes for r in batch.pending):
            return already_voted(batch, target)
        ending = status(batch)[1] if batch.settled else None
        return ("Done: ", *ending) if ending else ("Done: see the card.",)
    if request.settlement:
        return ("Done: ", *outcome(request))
    return already_voted(batch, target) if request.votes else ("Changed. The card waits for somebody to accept it.",)


def remember_lines(batch: Batch, request: ApprovalRequest, terms: GrantTerms, now: float) -> list[Line]:
    """Say exactly what a remembered decision covers. The caller quotes the tool and its arguments."""
    asked: Line = (", if ", person(batch.asker), " asks") if depends_on_asker(request) else ()
    said = " and with what the tool says about them" if request.summary or request.shown_preview else ""
    until: Line = (f", at most {terms.uses} times; it ends ", Moment(now + terms.seconds))
    always = "in this direct conversation" if batch.place.is_direct else "in every conversation of this server"
    lines: list[Line] = [
        (f"This remembers exactly this tool with exactly these arguments{said}", *asked),
        ("**Remember here**: in this conversation", *until),
    ]
    if terms.widest is Remember.ALWAYS:
        takes = "" if batch.place.is_direct else "; it takes Manage Server"
        lines.append((f"**Always**: {always}", *until, takes))
    return [*lines, ("A call with other approvers asks again",)]


def reminder(batch: Batch) -> Line:
    """Name the questions that are still open, and their deadline."""
    tools = [plain(r.shown_tool, NAME_BUDGET) for r in batch.open_questions]
    named = ", ".join(list(dict.fromkeys(tools))[:CONDITIONS])
    calls = f"{named}" if len(tools) == 1 else f"{len(tools)} calls ({named})"
    return (f"Still open: {calls}, until ", Moment(batch.deadline))


def held_lines(batch: Batch, named_at_most: int) -> list[Line]:
    """Name the held calls of a card: those that run with the questions, those not run, and those that were rejected."""
    held = batch.held
    if not held:
        return []
    rejected = [r for r in held if r.settlement and r.settlement.by]
    others = [r for r in held if r not in rejected]
    not_run = [r for r in others if r.state not in (RequestState.PENDING, RequestState.APPROVED)]
    waiting = [r for r in others if r not in not_run]

    def tools(requests: Sequence[ApprovalRequest]) -> str:
        return list_tools([r.shown_tool for r in requests], named_at_most)

    lines: list[Line] = []
    if waiting:
        lines.append((f"With these, needing no approval: {tools(waiting)}",))
    if not_run:
        lines.append((f"Not run, because nothing was approved: {tools(not_run)}",))
    if rejected:
        by = {r.settlement.by.id: r.settlement.by for r in rejected if r.settlement and r.settlement.by}
        lines.append(("Rejected by ", *people(by.values()), f", needing no approval: {tools(rejected)}"))
    return lines


def list_tools(tools: Sequence[str], named_at_most: int) -> str:
    """List tool names as trusted text."""
    names = ", ".join(plain(tool, NAME_BUDGET) for tool in tools[:named_at_most])
    more = len(tools) - named_at_most
    return names + (f" and {more} more" if more > 0 else "")


def _located(batch: Batch, target: str | None) -> Sequence[ApprovalRequest]:
    """Return the requests that a click on this target is about: all questions, or one request."""
    return batch.questions if target in (None, batch.id) else [r for r in batch.requests if r.id == target]


def explain_refusal(error: Exception, target: str, budget: int | None = None) -> Line | None:
    """Return the line for an error of the desk; None for any other error.

    `budget` bounds the text of a refusal, which others may have written.
    """
    match error:
        case AlreadySettled():
            return already_settled(error.batch, target)
        case AlreadyVoted():
            return already_voted(error.batch, target)
        case Outdated():
            return OUTDATED
        case NotAllowed():
            return not_allowed(error.batch, target, error.why)
        case Refused():
            # The text may repeat what a tool said about the arguments.
            return (visible(str(error)).text[:budget],)
        case UnknownRequest():
            return UNKNOWN_REQUEST
        case _:
            return None
