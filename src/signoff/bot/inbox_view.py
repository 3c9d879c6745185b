"""The inbox as a message: one entry for each open card, with its calls on one line each, and pages of a few entries.

A call can be accepted here only if its entry shows all of it. Any other entry says that it is not whole: it can be
rejected here, and "Open…" leads to the whole card. Pure: this module reads no store and sends nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import discord
from discord import ui

from signoff.approvals.large_values import is_large
from signoff.approvals.model import Batch, RequestKind
from signoff.bot import quoting
from signoff.bot.buttons import parse, rows
from signoff.bot.card_view import render
from signoff.bot.linked_cards import link
from signoff.bot.split import size
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.frame import TITLE, deadline_verb
from signoff.cards.layout import argument_label
from signoff.cards.model import Action, Card, CardCall, Line, Moment, Quote, Shape, Style, Verb
from signoff.dataclass import dataclass
from signoff.errors import CardFailed
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import clip, longest_head, plain

log = logging.getLogger(__name__)

ON_PAGE = 5
"""Cards on one page. A message takes 40 components, and an entry takes up to seven."""
LAST_PAGE = 99
"""The last page that a button's id can name."""
ENTRY = 700
"""Characters of one entry. A message takes 4,000, and the lines above the entries need some of them."""
SENTENCE = 340
"""Characters for the sentence above the list. A longer one is not shown there."""
VALUE = 80
"""Characters of a value on one line. A longer one gets a block or, if the entry is too long then, is folded."""
FOLDED = 60
"""Characters of a value in an entry that is not whole."""
LINES = 380
"""Characters for the lines with the calls in an entry that is not whole."""
CALLS = 3
"""Calls of one card that are listed in an entry that is not whole."""
NAMES = 6
TOOL = 64
TARGET = "inboxpage"
"""Takes the place of a request in the ids of the inbox's own buttons."""

EMPTY = "No open card waits for your decision."
SLOW_SERVERS = "-# Some servers could not be asked who you are there. Try again in a moment."
NOT_WHOLE = "-# Not all of it is shown here. Open… shows the whole card, with all its buttons."
TOO_LONG = "too long for this list"

_DECIDING = (
    *(Verb.ACCEPT, Verb.REJECT, Verb.RAN, Verb.RERUN, Verb.SKIP),
    *(Verb.FILL, Verb.ANSWER, Verb.DECLINE),
)
_RUNNING = (Verb.ACCEPT, Verb.RERUN, Verb.FILL, Verb.ANSWER)
"""The buttons that run or answer a call. They are offered only below a call that is shown whole."""
_BLANKS = lazy_pattern("^ | $|  ")
"""Blanks that cannot be counted in a value on one line."""


@dataclass(frozen=True, slots=True)
class Found:
    """The open cards that a person may decide, and whether every server could be asked."""

    batches: Sequence[Batch]
    complete: bool = True

    @property
    def pages(self) -> int:
        return min(max(1, -(-len(self.batches) // ON_PAGE)), LAST_PAGE + 1)

    def page(self, number: int) -> tuple[int, Sequence[Batch]]:
        """Return the nearest page that exists, and its cards."""
        number = min(max(number, 0), self.pages - 1)
        return number, self.batches[number * ON_PAGE : (number + 1) * ON_PAGE]


class InboxView(ui.LayoutView):
    """A page of the list. `said`: a sentence on what has just happened."""

    def __init__(self, inbox: Found, now: float, offers: Offers, page: int = 0, said: Line = ()) -> None:
        super().__init__(timeout=None)
        self.page, self.shown = inbox.page(page)
        sentence = quoting.line(said)
        above = [sentence] if 0 < size(sentence) <= SENTENCE else []
        self.add_item(ui.TextDisplay[Any]("\n".join([*above, *_headline(inbox, self.page)])))
        for batch in self.shown:
            text, actions = entry(batch, now, offers)
            self.add_item(ui.Separator[Any]())
            self.add_item(ui.TextDisplay[Any](text))
            for row in rows(actions):
                self.add_item(row)
        for row in rows(_turning(self.page, inbox.pages)):
            self.add_item(row)

    @property
    def requests(self) -> frozenset[str]:
        """The requests on this page."""
        return frozenset(request.id for batch in self.shown for request in batch.requests)


def page_of(message: discord.Message | None) -> int | None:
    """Return the page of the inbox that this message shows or leads back to; None if it is no part of an inbox."""
    stack: list[Any] = list(message.components) if message and message.flags.ephemeral else []
    while stack:
        component = stack.pop()
        stack += getattr(component, "children", ())
        locator = parse(getattr(component, "custom_id", None))
        if locator is not None and locator.verb is Verb.INBOX:
            return locator.revision
    return None


def back(page: int) -> Action:
    """Return the button of an opened card that leads back to the list."""
    return Action(Verb.INBOX, TARGET, "Inbox", Style.PLAIN, page, page)


def _turning(page: int, pages: int) -> list[Action]:
    """Return the inbox's own buttons. The revision in their ids is the page that is shown."""
    turns = [(page - 1, "Previous"), (page, "Refresh"), (page + 1, "Next")]
    return [Action(Verb.INBOX, TARGET, label, Style.PLAIN, page, to) for to, label in turns if 0 <= to < pages]


def _headline(inbox: Found, page: int) -> Iterator[str]:
    cards = len(inbox.batches)
    line = f"**{cards} open card{'s' if cards > 1 else ''}** for you, nearest deadline first" if cards else EMPTY
    yield f"{line} · page {page + 1} of {inbox.pages}" if inbox.pages > 1 else line
    if not inbox.complete:
        yield SLOW_SERVERS


def entry(batch: Batch, now: float, offers: Offers) -> tuple[str, list[Action]]:
    """Return the text and the buttons of one card in the list."""
    opening = Action(Verb.OPEN, batch.id, "Open…", Style.PLAIN, batch.revision)
    if is_large(batch):  # laying it out would delay everybody
        return _fitting(batch, "", [*_named(batch)], now), [*_rejecting(batch), opening]
    try:
        card = render(batch, now, offers=offers).card
    except CardFailed as error:
        log.info("the card of %s is not listed whole: %s", batch.id, error)
        return _fitting(batch, "", [*_named(batch)], now), _rejecting(batch)
    title = f"**{quoting.trusted(card.title)}**" if card.headline or card.title != TITLE else ""
    lines = _whole(card)
    if lines is not None:
        text = _joined(title, lines, _tail(batch, now))
        if size(text) <= ENTRY:
            return text, [*_deciding(card), opening]
    buttons = [action for action in _deciding(card) if action.verb not in _RUNNING]
    return _fitting(batch, title, _folded(card), now), [*buttons, opening]


def _deciding(card: Card) -> list[Action]:
    """Return the buttons that decide the whole card or, if only one call is open, this call."""
    actions = [action for action in card.actions if action.verb in _DECIDING]
    if not actions:
        own = [[a for a in call.actions if a.verb in _DECIDING] for call in card.calls if call.actions]
        actions = own[0] if len(own) == 1 and card.pages == 1 else []
    return actions


def _rejecting(batch: Batch) -> list[Action]:
    """Return the button that rejects a card that is not laid out here."""
    if any(request.kind is not RequestKind.CALL for request in batch.open_questions):
        return []
    label = "Reject" if len(batch.open_questions) == 1 else "Reject all"
    return [Action(Verb.REJECT, batch.id, label, Style.BAD, batch.revision)]


def _tail(batch: Batch, now: float) -> str:
    until: Line = (" · the deadline has passed",)
    if now < batch.deadline:
        until = (f" · {deadline_verb(batch)} ", Moment(batch.deadline))
    return quoting.line(("Asked by ", wording.person(batch.asker), *until)) + f"\n{link(batch)}"


def _joined(title: str, lines: Sequence[str], tail: str) -> str:
    return "\n".join([*([title] if title else []), *lines, tail])


def _fitting(batch: Batch, title: str, lines: Sequence[str], now: float) -> str:
    """Return an entry that is not whole. Lines that do not fit are left out, the last ones first."""
    tail = f"{NOT_WHOLE}\n{_tail(batch, now)}"
    kept = list(lines)
    while kept and size(_joined(title, kept, tail)) > ENTRY:
        kept.pop()
    return _joined(title, kept, tail)


def _whole(card: Card) -> list[str] | None:
    """Return the calls of a card with everything that the card says about them; None if the card is not whole."""
    if card.files or card.pages > 1:
        return None
    lines: list[str] = []
    for call in card.calls:
        long = [quote for quote in call.quotes if not _fits_one_line(quote)]
        lines.append(" · ".join([_tool(call), *(_value(quote) for quote in call.quotes if quote not in long)]))
        lines += [part for quote in long for part in _block(quote)]
        lines += [f"**Warning:** {quoting.trusted(warning)}" for warning in call.warnings]
        lines += _remarks(card, call)
    if card.model_text:
        lines += [_value(card.model_text)] if _fits_one_line(card.model_text) else _block(card.model_text)
    return [*lines, *map(quoting.line, card.about[:-1])]


def _folded(card: Card) -> list[str]:
    """Return one line for each call, with the beginning of each value."""
    lines: list[str] = []
    for call in card.calls[:CALLS]:
        quotes: dict[str, Quote] = {}
        for quote in call.quotes:
            quotes.setdefault(quote.label, quote)
        lines.append(_one_line([_tool(call), *map(_value, quotes.values())], LINES // min(len(card.calls), CALLS)))
        lines += [f"**Warning:** {quoting.trusted(clip(warning, 2 * VALUE)[0])}" for warning in call.warnings[:1]]
        lines += _remarks(card, call)
    if len(card.calls) > CALLS:
        lines.append(f"and {len(card.calls) - CALLS} more")
    return [*lines, *map(quoting.line, card.about[:-1])]


def _remarks(card: Card, call: CardCall) -> list[str]:
    """Return what the card says about a call besides its values. A file that only the card has is not named."""
    lines = [quoting.line(fact) for fact in call.facts]
    lines += [f"-# {quoting.line(call.why)}"] if card.headline and call.why else []
    return [*lines, *([f"**{quoting.line(call.outcome)}**"] if call.outcome else [])]


def _named(batch: Batch) -> Iterator[str]:
    """Name the calls and their arguments, without any value."""
    for request in batch.open_questions[:CALLS]:
        names = [quoting.code(argument_label(name)[0]) for name in list(request.call.args)[:NAMES]]
        parts = [f"**{quoting.code(plain(request.shown_tool, TOOL))}**", TOO_LONG, *names]
        yield _one_line(parts, LINES // min(len(batch.open_questions), CALLS))


def _one_line(parts: Sequence[str], budget: int) -> str:
    """Join the parts, and say how many of them are left out because they do not fit. The first one always stays."""
    kept = list(parts)
    while len(kept) > 1 and size(" · ".join(kept)) > budget:
        kept.pop()
    left_out = len(parts) - len(kept)
    return " · ".join([*kept, f"{left_out} more"] if left_out else kept)


def _tool(call: CardCall) -> str:
    number = f"**{call.number}.** " if call.number else ""
    return f"{number}**{quoting.code(call.tool)}**"


def _is_short(quote: Quote) -> bool:
    return "\n" not in quote.text and len(quote.text) <= VALUE


def _fits_one_line(quote: Quote) -> bool:
    """Whether `_value` shows the whole value exactly."""
    return _is_short(quote) and not quote.diff and not _BLANKS.search(quote.text)


def _value(quote: Quote) -> str:
    """Write a value on one line: whole if it is short, else its beginning."""
    text, note = quote.text, quote.note
    if quote.diff:
        lines = len(text.splitlines())
        text, note = "", f"a diff of {lines} line{'s' if lines > 1 else ''}"
    elif not _is_short(quote):
        first = text.split("\n", 1)[0]
        text, note = first[: longest_head(first, FOLDED, quoting.code)] + "…", "only its beginning"
    shown = f" {quoting.code(text)}" if text else ""
    return f"{_label(quote)}{shown}" + (f" ({quoting.trusted(note)})" if note else "")


def _label(quote: Quote) -> str:
    """Write a label. A name that the card shows in a block may imitate the card's own words, so it is code here."""
    label = " ".join(quote.label.split())
    return quoting.code(label) if quote.shape is Shape.BLOCK and " " not in label else f"**{quoting.escape(label)}**"


def _block(quote: Quote) -> list[str]:
    text, note = quoting.block(quote.text, "diff" if quote.diff else "")
    return [_label(quote), text, *(f"-# {quoting.trusted(one)}" for one in (quote.note, note) if one)]
