"""From a batch to its card: a pure function, so that a card rebuilt from the database looks the same.

Decides what is shown, what is attached and which buttons there are. Hidden characters are made visible and odd letters
reported here, once, for every front end. Knows no medium: it neither fences nor escapes markup, and sends nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from signoff.approvals.model import ApprovalRequest, Batch, RequestKind, RequestState
from signoff.cards.files import file_name, request_file, short_id
from signoff.cards.findings import Finding, argument_place, findings_in, fit_findings
from signoff.cards.masking import mask_batch, masks_of, note_of
from signoff.cards.model import Action, Card, CardCall, CardFile, Inline, Line, Moment, Quote, Tone, Verb
from signoff.cards.offers import Offers, card_actions, turning
from signoff.cards.quotes import beginning, quote_values, share
from signoff.cards.room import DIGEST_ROOM, OUTCOME_ROOM, ROOM, Sizes, reserve
from signoff.cards.values import SHORT, Quoted, Value, argument, cost, strings_in
from signoff.cards.visible import clip, plain, visible
from signoff.cards.words import (
    NAME_ROOM,
    differ_by_call,
    edit_lines,
    gone_line,
    may_decide,
    may_decide_line,
    outcome,
    person,
    status,
    votes_line,
)
from signoff.errors import CardFailed

TITLE = "Tool Approval Required"
TOOLS_WORDS = "Tool's words"
MODELS_WORDS = "Model's words"
PREVIEW = "Tool's preview"
ORIGINAL, EDITED, REMOVED, ADDED = " (original, does not run)", " (edited)", " (original, removed)", " (added)"
"""An argument's name is one word or in quotation marks, so none can end like this."""
REMEMBER = "Remember covers this tool with exactly these arguments, and nothing else"

MOST = 500_000
"""More characters than this, in all calls together, are not put to people: nobody could review them."""


@dataclass(frozen=True)
class _Draft:
    """What is known of one call before room is divided. Settling the call changes none of it."""

    batch: Batch
    request: ApprovalRequest
    values: tuple[Value, ...]
    masked: bool = False

    @cached_property
    def found(self) -> tuple[Finding, ...]:
        args = self.request.call.args
        found = masks_of(self.request) if self.masked else []
        found += findings_in("tool name", [self.request.call.tool])
        for name in sorted(args):
            found += findings_in("argument name", [name])
            found += findings_in(argument_place(name), strings_in(args[name]))
        found += findings_in("tool's words", [self.request.summary])
        return (*found, *findings_in("tool's preview", [self.request.preview]))

    @cached_property
    def file(self) -> CardFile:
        return request_file(self.batch, self.request, self.found, masked=self.masked)


@dataclass(frozen=True)
class _Page:
    """One page of a card before room is divided."""

    drafts: Sequence[_Draft]
    number: int
    can_attach: bool
    offers: Offers
    sizes: Sizes


def build_card(
    batch: Batch,
    *,
    now: float,
    room: int = ROOM,
    can_attach: bool = True,
    page: int = 0,
    offers: Offers | None = None,
) -> Card:
    """A page of the card for this batch as it stands.

    `room` is for quoted parts, with their labels and notes, of all calls of the page together; all else is bounded by
    `overhead`. Raises CardFailed if there is nothing to show, or it is not JSON.
    """
    offers = offers or Offers()
    batch = _as_shown(batch, offers)
    return _compose(batch, _page(batch, page, can_attach, offers), now, room)


def fit_card(
    batch: Batch,
    *,
    now: float,
    limit: int,
    size: Callable[[Card], int],
    can_attach: bool = True,
    room: int = 20_000,
    page: int = 0,
    offers: Offers | None = None,
) -> Card:
    """The page with the most quoted text, up to `room`, that stays within `limit` by the front end's own count.

    `size` renders a card and measures it, markup included. The room is found for the open card, with a reserve for
    what decisions add, so the settled card shows the same text and the same files.
    """
    offers = offers or Offers()
    batch = _as_shown(batch, offers)
    roomy = _page(batch, page, can_attach, offers)
    tight = replace(roomy, sizes=replace(roomy.sizes, tight=True))
    asked = replace(batch, requests=tuple(_as_asked(r) for r in batch.requests))
    kept = reserve(len(roomy.drafts))
    for shape in (roomy, tight):
        if shape is roomy and size(_compose(asked, shape, batch.opened, 0)) > limit - kept:
            continue
        found = _fitting(asked, shape, batch.opened, min(room, limit), limit - kept, size)
        # The reserve knows nothing of markup. Should it not be enough, a card with less text is better than none.
        found = _fitting(batch, shape, now, found, limit, size)
        card = _compose(batch, shape, now, found)
        if size(card) <= limit:
            break
    return card


def _as_shown(batch: Batch, offers: Offers) -> Batch:
    """With its secrets masked. From here on nothing else is known of them, so nothing can leak."""
    if offers.masker is None:
        return batch
    _drafts(batch)  # refuses what is too long or no JSON
    try:
        return mask_batch(batch, offers.masker)
    except (ValueError, RecursionError) as error:
        raise CardFailed("The arguments cannot be shown with their secrets masked.") from error


def _as_asked(request: ApprovalRequest) -> ApprovalRequest:
    return replace(request, state=RequestState.PENDING, settlement=None, votes=())


def _fitting(batch: Batch, page: _Page, now: float, room: int, limit: int, size: Callable[[Card], int]) -> int:
    """The room, at most `room`, with which this card stays within `limit`; 0 if none does."""
    while room > 0:
        card = _compose(batch, page, now, room)
        excess = size(card) - limit
        if excess <= 0:
            return room
        used = sum(cost(call.quotes) for call in card.calls) + (len(card.words.text) if card.words else 0)
        room = min(room, used) - excess
    return 0


def _compose(batch: Batch, page: _Page, now: float, room: int) -> Card:
    wants = [sum(value.wants for value in draft.values) for draft in page.drafts]
    *given, for_words = share([*wants, len(visible(batch.words).text)], max(room, 0))
    quoted = [quote_values(draft.values, part) for draft, part in zip(page.drafts, given, strict=True)]
    words, words_whole = _models_words(batch, page, for_words)

    calls: list[CardCall] = []
    files: list[CardFile] = []
    shown: set[str] = set()
    current = {r.id: r for r in batch.requests}
    for index, (draft, parts) in enumerate(zip(page.drafts, quoted, strict=True)):
        # The first file also answers for the model's words, which every file holds.
        whole = words_whole or index > 0
        call, file = _call(batch, current[draft.request.id], draft, parts, page, whole=whole)
        calls.append(call)
        files += [file] if file else []
        shown |= {call.request} if page.can_attach or file is None else set()
    tone, closing = status(batch)
    actions, own = (
        ([], {}) if batch.settled or now >= batch.deadline else card_actions(batch, page.number, page.offers, shown)
    )
    ended = _with_endings(batch, page, calls, apart=tone in (Tone.MIXED, Tone.OPEN))
    return Card(
        title=_title(batch),
        tone=tone,
        lead=tuple(_lead(batch, page, now, all_shown=len(shown) == len(calls), actions=actions)),
        calls=tuple(replace(call, actions=tuple(own.get(call.request, ()))) for call in ended),
        words=words,
        files=tuple(files) if page.can_attach else (),
        status=closing,
        footer=_footer(batch, page),
        actions=tuple(actions or turning(batch, page.number)),
        page=page.number,
        pages=batch.pages,
    )


def _page(batch: Batch, number: int, can_attach: bool, offers: Offers) -> _Page:
    number = min(max(number, 0), batch.pages - 1)
    here = {r.id for r in batch.page(number)}
    masked = offers.masker is not None
    drafts = [replace(draft, masked=masked) for draft in _drafts(batch) if draft.request.id in here]
    return _Page(drafts, number, can_attach, offers, Sizes(len(drafts)))


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
        values = _arguments(request)
    except (TypeError, ValueError, RecursionError) as error:
        tool = plain(request.call.tool, 64)
        raise CardFailed(f"The arguments of {tool} cannot be shown: they are not plain JSON.") from error
    words = [Value(TOOLS_WORDS, request.summary)] if request.summary else []
    preview = [Value(PREVIEW, request.preview)] if request.preview else []
    return _Draft(batch, request, (*words, *values, *preview))


def _arguments(request: ApprovalRequest) -> list[Value]:
    """Short ones first, so that a long one cannot push them away; then by name, whatever order the store keeps.

    What a person edited stands beside what it was before; what is the same stands once.
    """
    now = request.call.args
    before = request.edit.original if request.edit else now
    groups: list[list[Value]] = []
    for name in sorted({*now, *before}):
        same = name in now and name in before and _written(now[name]) == _written(before[name])
        if same:
            groups.append([argument(name, now[name])])
            continue
        old = [_labelled(argument(name, before[name]), ORIGINAL if name in now else REMOVED)] if name in before else []
        new = [_labelled(argument(name, now[name]), EDITED if name in before else ADDED)] if name in now else []
        groups.append([*old, *new])
    groups.sort(key=lambda group: any("\n" in value.text or len(value.text) > SHORT for value in group))
    return [value for group in groups for value in group]


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _labelled(value: Value, ending: str) -> Value:
    return replace(value, label=value.label + ending)


def _call(
    batch: Batch, request: ApprovalRequest, draft: _Draft, parts: Quoted, page: _Page, *, whole: bool
) -> tuple[CardCall, CardFile | None]:
    """One call, and the file it needs if anything of it is not on the card."""
    sizes = page.sizes
    tool, tool_cut = clip(request.call.tool, sizes.tool)
    # Words of ours, so that nobody can forge the sign of a cut; they do not run, so they need no file.
    reason, _ = clip(f"Why: {request.why or 'it needs approval'}", sizes.why)
    warnings, more = fit_findings(draft.found, sizes.warnings)
    file = None
    if tool_cut or more or not whole or not parts.complete:
        file = draft.file
        warnings = (_left_out(file if page.can_attach else None, parts, len(draft.values), sizes), *warnings)
    why: Line = (reason,)
    if differ_by_call(batch):
        why = (reason, "; may decide: ", *may_decide(request, batch, named_at_most=sizes.deciders))
    quotes = tuple(replace(quote, diff=quote.label == PREVIEW and _is_diff(quote.text)) for quote in parts.quotes)
    return CardCall(tool, request.id, why, quotes, warnings, facts=tuple(_facts(request, sizes))), file


def _is_diff(text: str) -> bool:
    return text.startswith(("--- ", "@@ ")) or "\n@@ " in text


def _facts(request: ApprovalRequest, sizes: Sizes) -> list[Line]:
    facts: list[Line] = []
    if request.message:
        facts.append((clip(f"Note: {request.message}", sizes.message)[0],))
    # Once approved, the outcome names those who voted.
    votes = votes_line(request) if request.state is not RequestState.APPROVED else ()
    return [*facts, *(line for line in (gone_line(request), *edit_lines(request), votes) if line)]


def _left_out(file: CardFile | None, parts: Quoted, values: int, sizes: Sizes) -> str:
    if file is None:
        only = f": {parts.missing} of {values} values are left out" if parts.missing else ""
        return f"Not all of this call is shown{only}"
    text = file.data.decode("utf-8")
    counts = f"{text.count(chr(10))} lines, {len(text)} characters, sha256 {file.sha256[: sizes.hash]}"
    only = f"; {parts.missing} of {values} values only there" if parts.missing else ""
    return f"Whole call: {file.name}, {counts}{only}"


def _models_words(batch: Batch, page: _Page, room: int) -> tuple[Quote | None, bool]:
    if not batch.words:
        return None, True
    value = Value(MODELS_WORDS, batch.words)
    text, whole = beginning(value, room)
    notes = ["not checked"]
    if not whole:
        notes.append(f"{len(batch.words)} characters in all, the others in {file_name(batch, page.drafts[0].request)}")
    if findings_in("", [batch.words]):
        notes.append("odd characters")
    if page.offers.masker and (masks := note_of(batch.words)):
        notes.append(masks)
    return Quote(MODELS_WORDS, text, "; ".join(notes)), whole


def _title(batch: Batch) -> str:
    if any(r.kind is RequestKind.MAY_HAVE_RUN for r in batch.requests):
        return "This call may have run" if len(batch.requests) == 1 else "These calls may have run"
    return TITLE


def _lead(batch: Batch, page: _Page, now: float, *, all_shown: bool, actions: Sequence[Action]) -> list[Line]:
    lead: list[Line] = [("Asked by ", person(batch.asker)), may_decide_line(batch)]
    if batch.already_ran:
        named = page.sizes.already_ran
        names = ", ".join(plain(tool, NAME_ROOM) for tool in batch.already_ran[:named])
        more = len(batch.already_ran) - named
        lead.append((f"Already ran: {names}{f' and {more} more' if more > 0 else ''}",))
    again = any(r.kind is RequestKind.MAY_HAVE_RUN for r in batch.requests)
    if not batch.settled:
        verb = "Skipped" if again else "Rejected"
        open_until: Line = (f"{verb} automatically ", Moment(batch.deadline))
        lead.append(open_until if now < batch.deadline else ("The deadline has passed",))
        if not all_shown:
            label = "Run it again" if again else "Accept"
            lead.append((f"{label} is not offered: not all of this fits here, and no file can be attached",))
        if _offers_remember(batch, page, actions):
            lead.append((REMEMBER,))
    if batch.pages > 1:
        first = batch.requests.index(batch.page(page.number)[0]) + 1
        lead.append((f"Calls {first} to {first + len(page.drafts) - 1} of {len(batch.requests)}",))
    return lead


def _offers_remember(batch: Batch, page: _Page, actions: Sequence[Action]) -> bool:
    if len(batch.requests) == 1:
        return any(action.verb is Verb.REMEMBER for action in actions)
    return any(r.state is RequestState.PENDING and page.offers.may_remember(r) for r in batch.page(page.number))


def _with_endings(batch: Batch, page: _Page, calls: Sequence[CardCall], *, apart: bool) -> list[CardCall]:
    """Add each call's outcome where they may differ, and the reasons that people gave."""
    notes = {r.id: _given_reason(r) for r in batch.requests}
    sizes = page.sizes
    if not apart and len(set(notes.values())) == 1:
        label = "Reason given" if len(notes) == 1 else "Reason given for all calls"
        note = next(iter(notes.values()))
        added = (_reason(label, note, sizes.reason),) if note else ()
        return [*calls[:-1], replace(calls[-1], quotes=(*calls[-1].quotes, *added))]
    ended: list[CardCall] = []
    for request, call in zip(batch.page(page.number), calls, strict=True):
        own = outcome(request, cancel_room=OUTCOME_ROOM - 24)
        if note := notes[request.id]:
            call = replace(call, quotes=(*call.quotes, _reason("Reason given", note, sizes.own_reason)))
        ended.append(replace(call, outcome=own or None))
    return ended


def _given_reason(request: ApprovalRequest) -> str:
    """What a person said. Where nobody decided, the outcome itself has the words."""
    end = request.settlement
    return end.note if end and end.by and request.state is not RequestState.CANCELLED else ""


def _reason(label: str, note: str, room: int) -> Quote:
    text, whole = beginning(Value(label, note), room)
    return Quote(label, text, "" if whole else f"{len(note)} characters in all")


def _footer(batch: Batch, page: _Page) -> Line:
    digests = [plain(r.call.digest[:DIGEST_ROOM], DIGEST_ROOM) or "none" for r in batch.page(page.number)]
    footer: list[Inline] = [f"Request {short_id(batch.id)}", f" · digest {', '.join(digests)}"]
    return tuple(footer)
