"""Build the card of a batch with pure functions, so that a card rebuilt from the database looks the same.

Divide the budget among the calls, decide what is attached and which buttons there are, and fit the card to a front
end's limit. `contents` reads the calls, `frame` writes the parts around them. This module knows no medium: it neither
fences nor escapes text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from signoff.approvals.model import ApprovalRequest, Batch, RequestKind, RequestState
from signoff.cards.actions import Offers, card_actions, held_actions, turning
from signoff.cards.approver_names import differ_by_call, escalation_line, may_decide, missing_line
from signoff.cards.budget import BUDGET, OPEN_MORE, Sizes, left_out_overhead, reserve
from signoff.cards.contents import CallContents, Page, read_calls, read_page
from signoff.cards.coverage_wording import grant_line
from signoff.cards.frame import (
    add_endings,
    describing_sentence,
    hints_line,
    quote_model_text,
    write_about,
    write_footer,
    write_title,
)
from signoff.cards.inquiry_contents import asks_line
from signoff.cards.layout import COLUMNS, Quoted, cost, quote_values, share
from signoff.cards.masking import mask_batch
from signoff.cards.model import Card, CardCall, CardFile, Line
from signoff.cards.progress import progress_lines, title_with_progress
from signoff.cards.warnings import fit_warnings
from signoff.cards.wording import HELD_LEAD, HELD_TITLE, edit_lines, outcomes_differ, status, void_line, votes_line
from signoff.dataclass import dataclass
from signoff.errors import CardFailed
from signoff.text.visible import clip, visible

_SPARE = reserve(1) + left_out_overhead(1) + OPEN_MORE
"""The open card of one call certainly fits if this much is left beside the settled one."""


def build_card(
    batch: Batch,
    *,
    now: float,
    budget: int = BUDGET,
    can_attach: bool = True,
    page: int = 0,
    offers: Offers | None = None,
    columns: int = COLUMNS,
) -> Card:
    """Build a page of the card for this batch in its current state.

    `budget` counts the characters of the quoted parts of the page, with their labels and notes; `Sizes` bounds the
    rest. `columns`: characters in a line, for folding. Raises CardFailed if there is no call to show, or if the calls
    are too long or not JSON.
    """
    offers = offers or Offers()
    batch, calls = _as_shown(batch, offers)
    return _compose(batch, read_page(batch, calls, page, can_attach, offers, columns), now, budget)


def fit_card(
    batch: Batch,
    *,
    now: float,
    limit: int,
    size: Callable[[Card], int],
    can_attach: bool = True,
    budget: int = 20_000,
    page: int = 0,
    offers: Offers | None = None,
) -> Card:
    """Build the page with as much quoted text, up to `budget`, as stays within the front end's `limit`.

    `size` renders a card and measures it, markup included. The budget is chosen for the open card, with a reserve for
    the text that decisions add. The settled card is folded harder, but it needs no more than the open one.
    """
    offers = offers or Offers()
    batch, contents = _as_shown(batch, offers)
    if batch.settled and len(batch.requests) == 1:
        only = read_page(batch, contents, page, can_attach, offers)
        if small := _small_settled(batch, only, now, min(budget, limit), limit, size):
            return small
    asked = _as_asked(batch)
    generous = read_page(asked, contents, page, can_attach, offers)
    own = generous.folded(settled=True) if batch.settled else generous
    calls = len(generous.calls)
    room = limit - reserve(calls)
    is_new = asked is batch and (now >= batch.deadline) == (batch.opened >= batch.deadline)
    for tight in (False, True):
        shape, final = (generous.tightened(), own.tightened()) if tight else (generous, own)
        fitted = _fit(asked, shape, batch.opened, min(budget, limit), room, size)
        is_close = fitted.size > room - left_out_overhead(calls)
        if is_close and not tight and size(_compose(asked, shape, batch.opened, 0)) > room:
            continue
        if not is_new:
            # The reserve does not count markup. If it is too small, show less text rather than no card.
            fitted = _fit(batch, final, now, fitted.budget, limit, size)
        if fitted.size <= limit:
            break
    return fitted.card


def build_held_call(
    batch: Batch, request: ApprovalRequest, *, now: float, budget: int = BUDGET, page: int, offers: Offers
) -> Card:
    """Build a card for one held call alone: its arguments and a Reject button. No file is attached.

    `page`: the page that the batch's own card shows. It stays there after the Reject button is pressed.
    """
    card = build_card(_alone(batch, request), now=now, budget=budget, can_attach=False, offers=offers)
    return _as_held(card, batch, request, page)


def fit_held_call(
    batch: Batch,
    request: ApprovalRequest,
    *,
    now: float,
    limit: int,
    size: Callable[[Card], int],
    page: int,
    offers: Offers,
) -> Card:
    """Build the same card with as much quoted text as stays within the front end's `limit`."""
    alone = _alone(batch, request)
    card = fit_card(alone, now=now, limit=limit, size=size, can_attach=False, offers=offers)
    return _as_held(card, batch, request, page)


def _alone(batch: Batch, request: ApprovalRequest) -> Batch:
    return replace(batch, requests=(replace(request, held=False),), model_text="", already_ran=())


def _as_held(card: Card, batch: Batch, request: ApprovalRequest, page: int) -> Card:
    actions = tuple(held_actions(batch, request, page))
    return replace(card, title=HELD_TITLE, headline=True, about=(HELD_LEAD,), actions=actions)


def _as_shown(batch: Batch, offers: Offers) -> tuple[Batch, list[CallContents]]:
    """Mask the secrets of the batch, and read its calls.

    All later steps see only the masked batch, so they cannot leak a secret. The calls are read before they are masked,
    too: CardFailed is raised if they are too long or not JSON.
    """
    calls = read_calls(batch, masked=offers.masker is not None)
    if offers.masker is None:
        return batch, calls
    try:
        shown = mask_batch(batch, offers.masker)
    except (ValueError, RecursionError) as error:
        raise CardFailed("The arguments cannot be shown with their secrets masked.") from error
    return shown, calls if shown is batch else read_calls(shown, masked=True)


def _as_asked(batch: Batch) -> Batch:
    """Return the batch as if nobody had decided anything: the batch itself if nobody has."""
    if all(
        r.state is RequestState.PENDING and not (r.settlement or r.votes or r.void or r.run) for r in batch.requests
    ):
        return batch
    anew = (
        replace(r, state=RequestState.PENDING, settlement=None, votes=(), void=(), run=None) for r in batch.requests
    )
    return replace(batch, requests=tuple(anew))


@dataclass(frozen=True, slots=True)
class _Fitted:
    card: Card
    budget: int
    size: int


def _fit(batch: Batch, page: Page, now: float, budget: int, limit: int, size: Callable[[Card], int]) -> _Fitted:
    """Build this card with a budget, at most `budget`, with which it stays within `limit`; with 0 if there is none."""
    while True:
        card = _compose(batch, page, now, budget)
        taken = size(card)
        if taken <= limit or budget <= 0:
            return _Fitted(card, budget, taken)
        used = sum(cost(call.quotes) for call in card.calls) + (len(card.model_text.text) if card.model_text else 0)
        budget = max(min(budget, used) - (taken - limit), 0)


def _small_settled(
    batch: Batch, page: Page, now: float, budget: int, limit: int, size: Callable[[Card], int]
) -> Card | None:
    """Build the settled card of one call if the open one certainly fits: then that one need not be built as well.

    Return None if the open card may be too large, or folded in another way. An open card is folded less.
    """
    (request,) = batch.requests
    room = limit - _SPARE
    quoted = sum([value.wants for value in page.values[0]]) + len(batch.model_text)
    if quoted > room or request.escalate_to or not page.is_whole:
        return None
    card = _compose(batch, page, now, budget)
    return card if size(card) <= room else None


def _compose(batch: Batch, page: Page, now: float, budget: int) -> Card:
    wants = [sum(value.wants for value in values) for values in page.values]
    *given, for_text = share([*wants, len(visible(batch.model_text).text) if batch.model_text else 0], max(budget, 0))
    model_text, text_is_whole = quote_model_text(batch, page, for_text)

    questions = batch.questions
    here = page.of(questions)
    is_alone, differ = len(questions) == 1, differ_by_call(questions)
    calls: list[CardCall] = []
    files: list[CardFile] = []
    shown: set[str] = set()
    for index, request in enumerate(here):
        parts = quote_values(page.values[index], given[index])
        # Every file holds the model's text, so the first call's file is attached if that text is cut.
        whole = text_is_whole or index > 0
        number = 0 if is_alone else page.first + index
        call, file = _call(batch, request, page.calls[index], parts, page, number, whole=whole, differ=differ)
        calls.append(call)
        files += [file] if file else []
        if page.can_attach or file is None:
            shown.add(call.request)
    tone, closing = title_with_progress(batch, *status(batch))
    settled = closing is not None
    actions, own = ([], {}) if settled or now >= batch.deadline else card_actions(batch, page.number, shown)
    ended = add_endings(questions, page, calls, apart=not settled or outcomes_differ(questions))
    if own:
        ended = [replace(call, actions=tuple(own[call.request])) if call.request in own else call for call in ended]
    return Card(
        title=write_title(questions),
        tone=tone,
        about=tuple(write_about(batch, len(questions), page, now, all_shown=len(shown) == len(calls))),
        calls=tuple(ended),
        model_text=model_text,
        files=tuple(files) if page.can_attach else (),
        status=closing,
        footer=write_footer(here),
        actions=tuple(actions if actions or page.pages == 1 else turning(batch, page.number)),
        page=page.number,
        pages=page.pages,
        headline=RequestKind.MAY_HAVE_RUN in [r.kind for r in questions],
    )


def _call(
    batch: Batch,
    request: ApprovalRequest,
    contents: CallContents,
    parts: Quoted,
    page: Page,
    number: int,
    *,
    whole: bool,
    differ: bool,
) -> tuple[CardCall, CardFile | None]:
    """Build one call, and the file for it if the card does not show the whole call.

    `differ`: not the same people may decide all calls of the card.
    """
    sizes = page.sizes
    tool, tool_cut = clip(request.shown_tool, sizes.tool)
    warnings, more = fit_warnings(contents.warnings, sizes.warnings)
    file, left_out = None, ""
    if tool_cut or more or not whole or not parts.complete:
        file = contents.file
        left_out = _left_out(file if page.can_attach else None, parts, len(contents.values), sizes)
        warnings = warnings if page.can_attach else (left_out, *warnings)
    says, says_who = describing_sentence(request.description, sizes.says)
    attached: Line = (left_out,) if file and page.can_attach else ()
    facts = tuple(_facts(request, batch, sizes))
    who = may_decide(request, batch, named_at_most=sizes.approvers, brief=True) if differ else ()
    why = _why(request, who, sizes)
    call = CardCall(
        tool, request.id, why, parts.quotes, number, says, says_who, warnings, attached=attached, facts=facts
    )
    return call, file


def _why(request: ApprovalRequest, who: Line, sizes: Sizes) -> Line:
    """Say why the call asks and, if that differs by call, who may decide. For an inquiry, `asks_line` says why."""
    if request.inquiry:
        return ("May answer: ", *who) if who and request.state is RequestState.PENDING else ()
    # The reason is our own text, so nobody can forge the mark of a cut. It does not run, so a cut needs no file.
    reason, _ = clip(f"Why: {request.why or 'it needs approval'}", sizes.why)
    return (reason, "; may decide: ", *who) if who else (reason,)


def _facts(request: ApprovalRequest, batch: Batch, sizes: Sizes) -> list[Line]:
    facts: list[Line] = []
    if request.message:
        facts.append((clip(f"Note: {request.message}", sizes.message)[0],))
    # The outcome of an approved call names the voters.
    votes = (votes_line(request), void_line(request)) if request.state is not RequestState.APPROVED else ()
    about = (missing_line(request), escalation_line(request, batch), *edit_lines(request), *votes)
    end = request.settlement
    remembered = [grant_line(request, end, end.grant, sizes.covered)] if end and end.grant else []
    asks = asks_line(request.inquiry, is_open=request.state is RequestState.PENDING) if request.inquiry else ()
    lines = (asks, hints_line(request.description), *about, *remembered, *progress_lines(request))
    return [*facts, *(line for line in lines if line)]


def _left_out(file: CardFile | None, parts: Quoted, values: int, sizes: Sizes) -> str:
    if file is None:
        only = f": {parts.missing} of {values} values are left out" if parts.missing else ""
        return f"Not all of this call is shown{only}"
    lines = file.data.count(b"\n")
    counts = f"{lines} lines, sha256 {file.sha256[: sizes.hash]}"
    only = f"; {parts.missing} of {values} values only there" if parts.missing else ""
    return f"Whole call: {file.name}, {counts}{only}"
