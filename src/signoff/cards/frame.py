"""The parts around the arguments: title, what a tool says, lines about the card, how calls ended, the footer.

They are trusted text, bounded by `budget.Sizes`, and two kinds of quote: the model's text and the reasons that people
gave. This module knows the page's calls by number and id. It knows neither their values nor fitting nor any medium.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from signoff.approvals.model import ApprovalRequest, Batch, RequestKind, RequestState
from signoff.approvals.tool_description import ToolDescription
from signoff.cards.approver_names import may_decide_line, person
from signoff.cards.budget import DIGEST_BUDGET, ID_BUDGET, OUTCOME_BUDGET
from signoff.cards.contents import Page
from signoff.cards.files import file_name
from signoff.cards.inquiry_contents import answer_quotes
from signoff.cards.layout import LINES, MOST, Value, beginning
from signoff.cards.masking import note_on_masks
from signoff.cards.model import CardCall, Line, Moment, Quote, Shape
from signoff.cards.progress import held_progress
from signoff.cards.warnings import reads_as_sentence, warnings_in
from signoff.cards.wording import held_lines, list_tools, outcome
from signoff.text.visible import clip, plain

TITLE = "Tool Approval Required"
ANSWER_TITLE = "Answer Needed"
MIXED_TITLE = "Approval and Answer Needed"
MODEL_TEXT = "Model's words"
MODEL_LINES = 10
"""The most lines of the model's text, as a phone shows them, if the rest can be in a file."""
BY_SERVER = "its MCP server says"
_EXPIRED = {RequestKind.CALL: "rejected", RequestKind.MAY_HAVE_RUN: "skipped", RequestKind.ANSWER: "declined"}
_APPROVES = {RequestKind.CALL: "Accept", RequestKind.MAY_HAVE_RUN: "Run it again", RequestKind.ANSWER: "Answer"}


def write_title(questions: Sequence[ApprovalRequest]) -> str:
    kinds = [r.kind for r in questions]
    calls, again = len(kinds), kinds.count(RequestKind.MAY_HAVE_RUN)
    if not again:
        return TITLE if RequestKind.ANSWER not in kinds else MIXED_TITLE if len(set(kinds)) > 1 else ANSWER_TITLE
    if again < calls:
        return f"{again} of these {calls} calls may have run"
    return "This call may have run" if calls == 1 else "These calls may have run"


def describing_sentence(description: ToolDescription, budget: int) -> tuple[str, str]:
    """Return one sentence of the tool about itself, cut to the budget, and who says it (empty: the tool's author).

    It is untrusted text. The operator did not write an MCP server's tools, so the card names the server as the source.
    """
    parts = [description.title, description.sentence]
    if description.title == description.sentence:
        parts = parts[:1]
    text = ": ".join(part for part in parts if part)
    if not text or not budget:
        return "", ""
    return clip(text, budget)[0], BY_SERVER if description.from_mcp and not description.trusted else ""


def hints_line(description: ToolDescription) -> Line:
    """Say which hints an MCP server gives; empty if it gives none."""
    if not description.hints:
        return ()
    hints = ", ".join(description.hints)
    return (f"Its MCP server says: {hints}" if description.trusted else f"Its MCP server claims, unchecked: {hints}",)


def write_about(batch: Batch, questions: int, page: Page, now: float, *, all_shown: bool) -> list[Line]:
    """Write the lines about the whole card, which has so many questions."""
    about: list[Line] = []
    if batch.already_ran:
        about.append((f"Already ran: {list_tools(batch.already_ran, page.sizes.named_tools)}",))
    if questions < len(batch.requests):
        about += [*held_lines(batch, page.sizes.named_tools), *held_progress(batch)]
    if not all_shown and not batch.settled:
        kinds = {r.kind for r in batch.open_questions}
        label = " or ".join(word for kind, word in _APPROVES.items() if kind in kinds)
        about.append((f"{label} is not offered: not all of this fits here, and no file can be attached",))
    if page.pages > 1:
        about.append((f"Calls {page.first} to {page.first + len(page.calls) - 1} of {questions}",))
    return [*about, ("Asked by ", person(batch.asker), *may_decide_line(batch), *_until(batch, now))]


def _until(batch: Batch, now: float) -> Line:
    """Say when the open calls are rejected, declined or skipped; empty once all are settled."""
    if batch.settled:
        return ()
    if now >= batch.deadline:
        return (" · the deadline has passed",)
    return (f" · {deadline_verb(batch)} ", Moment(batch.deadline))


def deadline_verb(batch: Batch) -> str:
    """Return what happens to the open calls at the deadline."""
    kinds = {r.kind for r in batch.open_questions}
    only_asks = kinds == {RequestKind.ANSWER}
    return "expires" if only_asks else " or ".join(word for kind, word in _EXPIRED.items() if kind in kinds)


def quote_model_text(batch: Batch, page: Page, budget: int) -> tuple[Quote | None, bool]:
    if not batch.model_text:
        return None, True
    value = Value(MODEL_TEXT, batch.model_text, shown_lines=MODEL_LINES, columns=page.columns, has_end=False)
    if not page.can_attach:
        # A call cannot be accepted beside a cut text, so this text is not folded for its height.
        value = replace(value, shown_lines=LINES, columns=MOST)
    text, whole = beginning(value, budget)
    notes = ["not checked"]
    if not whole:
        place = f"in {file_name(batch, page.calls[0].request)}" if page.can_attach else "left out"
        notes.append(f"{len(batch.model_text)} characters in all, the others {place}")
    if warnings_in("", [batch.model_text]):
        notes.append("odd characters")
    if page.offers.masker and (masks := note_on_masks(batch.model_text)):
        notes.append(masks)
    shape = Shape.REMARK if whole and reads_as_sentence(batch.model_text) else Shape.BLOCK
    return Quote(MODEL_TEXT, text, "; ".join(notes), shape=shape), whole


def add_endings(
    questions: Sequence[ApprovalRequest], page: Page, calls: Sequence[CardCall], *, apart: bool
) -> Sequence[CardCall]:
    """Add each call's outcome if outcomes may differ (`apart`), and the answers and reasons that people gave."""
    notes = {r.id: _given_reason(r) for r in questions}
    sizes, here = page.sizes, page.of(questions)
    if any(request.inquiry for request in here):
        answers = [answer_quotes(request, sizes.answer) if request.inquiry else () for request in here]
        calls = [replace(call, quotes=(*call.quotes, *own)) for call, own in zip(calls, answers, strict=True)]
    if not apart and len(set(notes.values())) == 1:
        label = "Reason given" if len(notes) == 1 else "Reason given for all calls"
        note = next(iter(notes.values()))
        if not note:
            return calls
        return [*calls[:-1], replace(calls[-1], quotes=(*calls[-1].quotes, _reason(label, note, sizes.reason)))]
    ended: list[CardCall] = []
    for request, call in zip(here, calls, strict=True):
        own = outcome(request, cancel_budget=OUTCOME_BUDGET - 24)
        if note := notes[request.id]:
            call = replace(call, quotes=(*call.quotes, _reason("Reason given", note, sizes.own_reason)))
        ended.append(replace(call, outcome=own) if own else call)
    return ended


def _given_reason(request: ApprovalRequest) -> str:
    """Return the reason that a person gave. If nobody decided, the outcome itself says why."""
    end = request.settlement
    return end.note if end and end.by and request.state is not RequestState.CANCELLED else ""


def _reason(label: str, note: str, budget: int) -> Quote:
    text, whole = beginning(Value(label, note, has_end=False), budget)
    shape = Shape.REMARK if whole and reads_as_sentence(note) else Shape.BLOCK
    return Quote(label, text, "" if whole else f"{len(note)} characters in all", shape=shape)


def write_footer(shown: Sequence[ApprovalRequest]) -> Line:
    """Write the request ids and digests as the record has them. `/signoff audit` finds a request by its id."""
    ids = [plain(r.id, ID_BUDGET) for r in shown]
    digests = [plain(r.call.digest[:DIGEST_BUDGET], DIGEST_BUDGET) or "none" for r in shown]
    return f"Request {', '.join(ids)}", f" · digest {', '.join(digests)}"
