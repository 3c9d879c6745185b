"""From a batch to its card: a pure function, so that a card rebuilt from the database looks the same.

Decides what is shown, what is attached and which buttons there are. Hidden characters are made visible and odd letters
reported here, once, for every front end. Knows no medium: it neither fences nor escapes markup, and sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from signoff.approvals.model import ApprovalRequest, Batch, Choice, RequestKind, RequestState
from signoff.cards.files import file_name, request_file, short_id
from signoff.cards.findings import Finding, argument_place, findings_in, fit_findings
from signoff.cards.model import Action, Card, CardCall, CardFile, Inline, Line, Moment, Quote, Style, Tone
from signoff.cards.quotes import beginning, quote_values, share
from signoff.cards.room import DIGEST_ROOM, OUTCOME_ROOM, ROOM, Sizes, settled_overhead
from signoff.cards.values import Quoted, Value, arguments, cost, strings_in
from signoff.cards.visible import clip, plain, visible
from signoff.cards.words import NAME_ROOM, deciders, may_decide_line, outcome, person, status
from signoff.errors import CardFailed

TITLE = "Tool Approval Required"
TOOLS_WORDS = "Tool's words"
MODELS_WORDS = "Model's words"
_MAY_HAVE_RUN = (
    (Choice.RAN, "It ran", Style.PLAIN),
    (Choice.RERUN, "Run it again", Style.BAD),
    (Choice.SKIP, "Skip", Style.PLAIN),
)

MOST = 500_000
"""More characters than this, in all calls together, are not put to people: nobody could review them."""


@dataclass(frozen=True)
class _Draft:
    """What is known of one call before room is divided. Settling the call changes none of it."""

    batch: Batch
    request: ApprovalRequest
    values: tuple[Value, ...]

    @cached_property
    def found(self) -> tuple[Finding, ...]:
        args = self.request.call.args
        found = findings_in("tool name", [self.request.call.tool])
        for name in sorted(args):
            found += findings_in("argument name", [name])
            found += findings_in(argument_place(name), strings_in(args[name]))
        return (*found, *findings_in("tool's words", [self.request.summary]))

    @cached_property
    def file(self) -> CardFile:
        return request_file(self.batch, self.request, self.found)


def build_card(batch: Batch, *, now: float, room: int = ROOM, can_attach: bool = True) -> Card:
    """The card for this batch as it stands.

    `room` is for quoted parts, with their labels and notes, of all calls together; all else is bounded by
    `overhead`. Raises CardFailed if there is nothing to show, or it is not JSON.
    """
    return _compose(batch, _drafts(batch), now, room, can_attach)


def fit_card(
    batch: Batch, *, now: float, limit: int, size: Callable[[Card], int], can_attach: bool = True, room: int = 20_000
) -> Card:
    """The card with the most quoted text, up to `room`, that stays within `limit` by the front end's own count.

    `size` renders a card and measures it, markup included. The room is found for the open card, with a reserve for
    what a decision adds, so the settled card shows the same text and the same files.
    """
    drafts = _drafts(batch)
    pending = tuple(replace(r, state=RequestState.PENDING, settlement=None) for r in batch.requests)
    asked = replace(batch, requests=pending)
    reserve = settled_overhead(len(pending))
    room = _fitting(drafts, asked, batch.opened, min(room, limit), limit - reserve, size, can_attach)
    # The reserve knows nothing of markup. Should it not be enough, a card with less text is better than none.
    room = _fitting(drafts, batch, now, room, limit, size, can_attach)
    return _compose(batch, drafts, now, room, can_attach)


def _fitting(
    drafts: Sequence[_Draft],
    batch: Batch,
    now: float,
    room: int,
    limit: int,
    size: Callable[[Card], int],
    can_attach: bool,
) -> int:
    """The room, at most `room`, with which this card stays within `limit`; 0 if none does."""
    while room > 0:
        card = _compose(batch, drafts, now, room, can_attach)
        excess = size(card) - limit
        if excess <= 0:
            return room
        used = sum(cost(call.quotes) for call in card.calls) + (len(card.words.text) if card.words else 0)
        room = min(room, used) - excess
    return 0


def _compose(batch: Batch, drafts: Sequence[_Draft], now: float, room: int, can_attach: bool) -> Card:
    wants = [sum(value.wants for value in draft.values) for draft in drafts]
    *given, for_words = share([*wants, len(visible(batch.words).text)], max(room, 0))
    quoted = [quote_values(draft.values, part) for draft, part in zip(drafts, given, strict=True)]
    words, words_whole = _models_words(batch, for_words)

    calls: list[CardCall] = []
    files: list[CardFile] = []
    for index, (draft, parts) in enumerate(zip(drafts, quoted, strict=True)):
        # The first file also answers for the model's words, which every file holds.
        call, file = _call(batch, draft, parts, whole=words_whole or index > 0, can_attach=can_attach)
        calls.append(call)
        files += [file] if file else []
    shown = can_attach or not files
    tone, closing = status(batch)
    return Card(
        title=_title(batch),
        tone=tone,
        lead=tuple(_lead(batch, now, shown)),
        calls=_with_endings(batch, calls, apart=tone in (Tone.MIXED, Tone.OPEN)),
        words=words,
        files=tuple(files) if can_attach else (),
        status=closing,
        footer=_footer(batch),
        actions=tuple(_actions(batch, shown)) if not batch.settled and now < batch.deadline else (),
    )


def _drafts(batch: Batch) -> list[_Draft]:
    if not batch.requests:
        raise CardFailed("There is no call on this card.")
    drafts = [_draft(batch, request) for request in batch.requests]
    texts = sum(len(value.text) for draft in drafts for value in draft.values)
    names = sum(len(name) for request in batch.requests for name in request.call.args)
    if texts + names + len(batch.words) > MOST:
        raise CardFailed(f"The calls are too long to be put to anyone: over {MOST} characters.")
    return drafts


def _draft(batch: Batch, request: ApprovalRequest) -> _Draft:
    try:
        values = arguments(request.call.args)
    except (TypeError, ValueError, RecursionError) as error:
        tool = plain(request.call.tool, 64)
        raise CardFailed(f"The arguments of {tool} cannot be shown: they are not plain JSON.") from error
    words = [Value(TOOLS_WORDS, request.summary)] if request.summary else []
    return _Draft(batch, request, (*words, *values))


def _call(
    batch: Batch, draft: _Draft, parts: Quoted, *, whole: bool, can_attach: bool
) -> tuple[CardCall, CardFile | None]:
    """One call, and the file it needs if anything of it is not on the card."""
    request, sizes = draft.request, Sizes(len(batch.requests))
    tool, tool_cut = clip(request.call.tool, sizes.tool)
    # Words of ours, so that nobody can forge the sign of a cut; they do not run, so they need no file.
    reason, _ = clip(f"Why: {request.why or 'it needs approval'}", sizes.why)
    warnings, more = fit_findings(draft.found, sizes.warnings)
    file = None
    if tool_cut or more or not whole or not parts.complete:
        file = draft.file
        warnings = (_left_out(file if can_attach else None, parts, len(draft.values), sizes), *warnings)
    why: Line = (reason,)
    if len({r.approvers for r in batch.requests}) > 1:
        why = (reason, "; may decide: ", *deciders(request.approvers, batch, named_at_most=sizes.deciders))
    return CardCall(tool, request.id, why, parts.quotes, warnings), file


def _left_out(file: CardFile | None, parts: Quoted, values: int, sizes: Sizes) -> str:
    if file is None:
        only = f": {parts.missing} of {values} values are left out" if parts.missing else ""
        return f"Not all of this call is shown{only}"
    text = file.data.decode("utf-8")
    counts = f"{text.count(chr(10))} lines, {len(text)} characters, sha256 {file.sha256[: sizes.hash]}"
    only = f"; {parts.missing} of {values} values only there" if parts.missing else ""
    return f"Whole call: {file.name}, {counts}{only}"


def _models_words(batch: Batch, room: int) -> tuple[Quote | None, bool]:
    if not batch.words:
        return None, True
    value = Value(MODELS_WORDS, batch.words)
    text, whole = beginning(value, room)
    notes = ["not checked"]
    if not whole:
        notes.append(f"{len(batch.words)} characters in all, the others in {file_name(batch, batch.requests[0])}")
    if findings_in("", [batch.words]):
        notes.append("odd characters")
    return Quote(MODELS_WORDS, text, "; ".join(notes)), whole


def _title(batch: Batch) -> str:
    if any(r.kind is RequestKind.MAY_HAVE_RUN for r in batch.requests):
        return "This call may have run" if len(batch.requests) == 1 else "These calls may have run"
    return TITLE


def _lead(batch: Batch, now: float, shown: bool) -> list[Line]:
    lead: list[Line] = [("Asked by ", person(batch.asker)), may_decide_line(batch)]
    if batch.already_ran:
        named = Sizes(len(batch.requests)).already_ran
        names = ", ".join(plain(tool, NAME_ROOM) for tool in batch.already_ran[:named])
        more = len(batch.already_ran) - named
        lead.append((f"Already ran: {names}{f' and {more} more' if more > 0 else ''}",))
    again = any(r.kind is RequestKind.MAY_HAVE_RUN for r in batch.requests)
    if not batch.settled:
        verb = "Skipped" if again else "Rejected"
        open_until: Line = (f"{verb} automatically ", Moment(batch.deadline))
        lead.append(open_until if now < batch.deadline else ("The deadline has passed",))
        if not shown:
            label = "Run it again" if again else "Accept"
            lead.append((f"{label} is not offered: not all of this fits here, and no file can be attached",))
    return lead


def _with_endings(batch: Batch, calls: Sequence[CardCall], *, apart: bool) -> tuple[CardCall, ...]:
    """Add each call's outcome where they may differ, and the reasons that people gave."""
    notes = [
        r.settlement.note if r.settlement and r.state is not RequestState.CANCELLED else "" for r in batch.requests
    ]
    sizes = Sizes(len(calls))
    if not apart and len(set(notes)) == 1:
        label = "Reason given" if len(calls) == 1 else "Reason given for all calls"
        added = (_reason(label, notes[0], sizes.reason),) if notes[0] else ()
        return (*calls[:-1], replace(calls[-1], quotes=(*calls[-1].quotes, *added)))
    ended: list[CardCall] = []
    for request, call, note in zip(batch.requests, calls, notes, strict=True):
        own = outcome(request, cancel_room=OUTCOME_ROOM - 12)
        if note and sizes.few:
            call = replace(call, quotes=(*call.quotes, _reason("Reason given", note, sizes.own_reason)))
        elif note:
            own = (*own, ", reason in the audit record")
        ended.append(replace(call, outcome=own or None))
    return tuple(ended)


def _reason(label: str, note: str, room: int) -> Quote:
    text, whole = beginning(Value(label, note), room)
    return Quote(label, text, "" if whole else f"{len(note)} characters in all")


def _footer(batch: Batch) -> Line:
    digests = [plain(r.call.digest[:DIGEST_ROOM], DIGEST_ROOM) or "none" for r in batch.requests]
    footer: list[Inline] = [f"Request {short_id(batch.id)}", f" · digest {', '.join(digests)}"]
    return tuple(footer)


def _actions(batch: Batch, shown: bool) -> list[Action]:
    """Nothing is offered that would run what could not be shown."""
    actions: list[Action] = []
    if any(r.kind is RequestKind.CALL for r in batch.pending):
        accept = Action(Choice.ACCEPT, batch.id, "Accept", Style.GOOD)
        actions += [accept] if shown else []
        actions.append(Action(Choice.REJECT, batch.id, "Reject", Style.BAD))
    for request in batch.pending:
        if request.kind is RequestKind.MAY_HAVE_RUN:
            actions += [
                Action(choice, request.id, label, style)
                for choice, label, style in _MAY_HAVE_RUN
                if shown or choice is not Choice.RERUN
            ]
    return actions
