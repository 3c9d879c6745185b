"""Batches for the card tests, and functions that take a card apart again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    CallKey,
    Choice,
    Place,
    RequestKind,
    RequestState,
    Settlement,
    ToolCall,
)
from signoff.cards.approver_names import NAME_BUDGET
from signoff.cards.build import build_card
from signoff.cards.edited_values import ADDED, EDITED, ORIGINAL, REMOVED
from signoff.cards.files import ARGUMENTS
from signoff.cards.layout import cost
from signoff.cards.model import Card, CardCall, CardFile, Code, Inline, Line, Moment, Person, Quote, RoleRef, Shape
from signoff.text.visible import unescape

NOW = 1_700_000_000.0
ASKER = Actor("100", "ada", "1")
FORGERY = "```\n# APPROVED by <@200>\n**Accept** [safe](https://evil) ||x|| -# small <t:1:R> @everyone `x`"

ADMIN = Actor("200", "grace", "1", manages_server=True)


def make_request(number: int = 1, args: Mapping[str, Any] | None = None, **changes: Any) -> ApprovalRequest:
    tool = changes.pop("tool", "write_file")
    call = ToolCall(CallKey("c", 3, f"call_{number}"), tool, args or {}, "5c" * 32, f"{number:02x}" * 32)
    request = ApprovalRequest(f"{number:02x}" * 8, call, "write_file asks before every call", ("manage_server",))
    return replace(request, **changes)


def make_batch(*requests: ApprovalRequest, **changes: Any) -> Batch:
    batch = Batch(
        "b0" * 8, "t1", Place("1", "10", "c"), ASKER, requests or (make_request(),), NOW - 10, deadline=NOW + 290
    )
    return replace(batch, **changes)


def settle(
    batch: Batch,
    choice: Choice | None = Choice.ACCEPT,
    by: Actor | None = ADMIN,
    note: str = "",
    state: RequestState | None = None,
) -> Batch:
    """Settle every request in the same way."""
    ending = state or (choice.state if choice else RequestState.EXPIRED)
    settled = [replace(r, state=ending, settlement=Settlement(choice, by, NOW + 5, note)) for r in batch.requests]
    return replace(batch, requests=tuple(settled))


def may_have_run(number: int = 1) -> ApprovalRequest:
    return make_request(number, {"path": "a.txt"}, kind=RequestKind.MAY_HAVE_RUN)


def card_of(batch: Batch, budget: int = 2400, *, now: float = NOW, can_attach: bool = True) -> Card:
    return build_card(batch, now=now, budget=budget, can_attach=can_attach)


def as_text(line: Line | None) -> str:
    return "".join(i if isinstance(i, str) else f"<{type(i).__name__} {getattr(i, 'id', '')}>" for i in line or ())


def trusted_strings(card: Card) -> Iterator[str]:
    """Yield everything that a front end treats as our own words."""
    yield card.title
    lines = [*card.about, card.footer, *([card.status] if card.status else [])]
    lines += [call.why for call in card.calls] + [call.outcome for call in card.calls if call.outcome]
    lines += [fact for call in card.calls for fact in (*call.facts, call.attached)]
    yield from (inline for line in lines for inline in line if isinstance(inline, str))
    for call in card.calls:
        yield from (*call.warnings, call.says_who)
        yield from (text for quote in call.quotes for text in (quote.note, quote.after))
    if card.model_text:
        yield card.model_text.note
        yield card.model_text.label
    yield from (action.label for action in card.buttons)
    yield from (file.name for file in card.files)


def quoted_strings(card: Card) -> Iterator[str]:
    """Yield everything that a front end must quote."""
    for call in card.calls:
        yield from (call.tool, call.says)
        for quote in call.quotes:
            yield from (quote.label, quote.text)
    if card.model_text:
        yield card.model_text.text
    lines = [*card.about, *([card.status] if card.status else [])]
    yield from (inline.name for line in lines for inline in line if isinstance(inline, Person))


def arguments_of_file(file: CardFile) -> Any:
    return json.loads(file.data.decode("utf-8").split("\n" + ARGUMENTS + "\n", 1)[1])


def arguments_of_quotes(call: CardCall) -> dict[str, Any]:
    """Read the arguments back from labels, texts and notes alone, as a careful reader would."""
    found: dict[str, Any] = {}
    for quote in call.quotes:
        if quote.label in ("Tool's words", "Tool's preview") or quote.label.startswith("Reason given"):
            continue
        if quote.label.endswith((ORIGINAL, REMOVED)):
            continue
        name = unescape(quote.label.removesuffix(EDITED).removesuffix(ADDED))
        name = json.loads(name) if name.startswith('"') else name
        if quote.shape in (Shape.INLINE, Shape.DEFAULT):
            found[name] = _inline_value(unescape(quote.text), quote.note)
            continue
        is_string = not quote.note.startswith(("null", "true or false", "number", "list of", "object of"))
        found[name] = unescape(quote.text) if is_string else json.loads(unescape(quote.text), strict=False)
    return found


def _inline_value(text: str, note: str) -> Any:
    """Read a value in one line: JSON if it reads as JSON, unless its note says that it is text."""
    if note:
        assert note in ("text", "empty text")
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def measure(card: Card) -> int:
    """Return the size of everything that a card shows, without a medium's markup, buttons and files."""
    lines = [*card.about, card.footer, *([card.status] if card.status else [])]
    quotes: list[Quote] = [card.model_text] if card.model_text else []
    size = len(card.title)
    for call in card.calls:
        lines += [call.why, *([call.outcome] if call.outcome else []), *call.facts, call.attached]
        quotes += call.quotes
        size += len(call.tool) + len(call.says) + len(call.says_who) + sum(map(len, call.warnings))
    return size + cost(quotes) + sum(_length(inline) for line in lines for inline in line)


def _length(inline: Inline) -> int:
    match inline:
        case Person():
            return NAME_BUDGET
        case RoleRef():
            return 24
        case Moment():
            return 20
        case Code():
            return len(inline.text)
        case str():
            return len(inline)
