"""A Card as a panel: trusted lines unchanged, quoted parts behind a gutter, deadlines as the time that is left.

This module has no wording of its own and offers no actions. Rich's markup is never parsed: everything is a `Text`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from signoff.approvals.model import ApprovalRequest, Batch
from signoff.cards.actions import Offers
from signoff.cards.model import Card, CardCall, Code, Inline, Line, Moment, Person, Quote, RoleRef, Shape, Tone
from signoff.cards.wording import remember_lines
from signoff.terminal.sanitize import Block
from signoff.text.visible import one_line

COLOURS = {
    Tone.OPEN: "blue",
    Tone.IN_DOUBT: "yellow",
    Tone.APPROVED: "green",
    Tone.REJECTED: "red",
    Tone.EXPIRED: "bright_black",
    Tone.CANCELLED: "bright_black",
    Tone.MIXED: "yellow",
}
DAY = 86400
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")


def draw_card(card: Card, now: float) -> RenderableType:
    parts: list[RenderableType] = [write(card.status, now, f"bold {COLOURS[card.tone]}")] if card.status else []
    for call in card.calls:
        parts += [Rule(style="dim"), *_call(call, now)] if parts else _call(call, now)
    if card.model_text:
        parts += [Rule(style="dim"), *_quotes([card.model_text])]
    parts += [Rule(style="dim"), *(write(line, now) for line in card.about)]
    parts.append(write(card.footer, now, "dim"))
    title = Text(card.title, "bold")
    return Panel(Group(*parts), title=title, title_align="left", border_style=COLOURS[card.tone], box=box.ROUNDED)


def draw_ending(card: Card, now: float) -> RenderableType:
    """Show how a card ended: one line, or one line for each call if they differ."""
    status = write(card.status or (), now, f"bold {COLOURS[card.tone]}")
    apart = [Text.assemble((call.tool, "bold"), ": ", write(call.outcome, now)) for call in card.calls if call.outcome]
    if not apart:
        status = Text.assemble(status, ": ", Text(", ".join(call.tool for call in card.calls), "bold"))
    # No argument can match: its label would be in quotation marks, because this name has a space.
    reasons = [quote for call in card.calls for quote in call.quotes if quote.label.startswith("Reason given")]
    return Group(status, *apart, *map(draw_quote, reasons))


def write(line: Line, now: float, style: str = "") -> Text:
    return Text.assemble(*(_inline(part, now) for part in line), style=style)


def left(seconds: float) -> str:
    """Format a duration as 4:59 or 1:02:03."""
    whole = max(0, int(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def draw_quote(quote: Quote) -> Group:
    return Group(*_quotes([quote]))


def _call(call: CardCall, now: float) -> Iterator[RenderableType]:
    outcome = Text.assemble(" · ", write(call.outcome, now, "bold")) if call.outcome else Text()
    yield Text.assemble((f"{call.number}. " if call.number else "", "bold"), (call.tool, "bold"), outcome)
    if call.says:
        if call.says_who:
            yield Text(f"{call.says_who}:", "dim")
        yield Block(call.says)
    yield from _quotes(call.quotes)
    yield from (Text.assemble(("Warning: ", "bold yellow"), warning) for warning in call.warnings)
    yield from (write(fact, now) for fact in call.facts)
    if call.attached:
        yield write(call.attached, now, "dim")
    if call.why:
        yield write(call.why, now, "dim")


def _quotes(quotes: Sequence[Quote]) -> Iterator[RenderableType]:
    """Yield the quotes, each behind a gutter. Short values stand beside their labels, one in each line."""
    for shape, group in groupby(quotes, key=lambda quote: quote.shape):
        if shape in (Shape.INLINE, Shape.DEFAULT):
            table = Table.grid(padding=(0, 1))
            for quote in group:
                table.add_row(_label(quote, "defaults: " if shape is Shape.DEFAULT else ""), _text(quote))
            yield table
        else:
            for quote in group:
                if not quote.continued:
                    yield _label(quote)
                if quote.text or shape is not Shape.REMARK:
                    yield _text(quote)
                if quote.after:
                    yield Text(quote.after, "dim")


def _label(quote: Quote, before: str = "") -> Text:
    label = Text(before, "dim").append(" ".join(quote.label.split()), "bold cyan not dim")
    return label.append(f"  {quote.note}", "not bold dim") if quote.note else label


def _text(quote: Quote) -> RenderableType:
    if quote.text:
        return Block(quote.text, quote.diff)
    if quote.is_blank_line:
        return Text("(a blank line)", "italic")
    return Text("" if quote.note and quote.shape is Shape.INLINE else "(empty)", "italic")


def _inline(part: Inline, now: float) -> Text:
    match part:
        case str():
            return _trusted(part)
        case Person(name=name):
            return Text(name, "bold")
        case RoleRef(id=identifier):
            return Text(f"role {identifier}", "bold")
        case Moment(at=at):
            return Text(_moment(at, now), "bold")
        case Code(text=text):
            return Text(f"`{one_line(text)}`")


def _trusted(text: str) -> Text:
    """Write our own text, in which `**` marks bold."""
    written = Text()
    end = 0
    for bold in _BOLD.finditer(text):
        written.append(text[end : bold.start()]).append(bold[1], "bold")
        end = bold.end()
    return written.append(text[end:])


def _moment(at: float, now: float) -> str:
    if abs(at - now) >= DAY:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    return f"in {left(at - now)}" if at >= now else f"{left(now - at)} ago"


def covered_lines(batch: Batch, request: ApprovalRequest, offers: Offers, now: float) -> list[RenderableType]:
    lines = [write(line, now) for line in remember_lines(batch, request, offers.grants, now)]
    return [*lines, *covered_call(request, offers)]


def covered_call(request: ApprovalRequest, offers: Offers) -> Sequence[RenderableType]:
    """Show the tool and the arguments, masked as on the card."""
    try:
        text = offers.quoted(request)
    except (ValueError, TypeError, RecursionError):
        text = "(the arguments on the card)"
    return [Text(one_line(request.shown_tool), "bold"), Block(text)]
