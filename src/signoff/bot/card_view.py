"""ApprovalView: a Card as a Components V2 message, with buttons that work after a restart.

The view has no wording of its own and decides nothing: the desk checks at the click who may press a button.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import discord
from discord import ui

from signoff.approvals.large_values import off_loop_if_large
from signoff.approvals.model import Batch
from signoff.bot import quoting
from signoff.bot.buttons import rows
from signoff.bot.linked_cards import link_line
from signoff.bot.split import size
from signoff.cards.actions import Offers
from signoff.cards.build import fit_card
from signoff.cards.model import Card, CardCall, Quote, Shape, Tone
from signoff.dataclass import dataclass
from signoff.errors import CardFailed

MAX_TEXT = 4000
MAX_COMPONENTS = 40
MAX_FILES = 10
ON_LOOP = 8_000
"""A card with more characters than this is built in a thread: it may have a thousand secrets to mask."""

_COLOURS = {
    Tone.OPEN: 0x5865F2,
    Tone.IN_DOUBT: 0xF0B232,
    Tone.APPROVED: 0x248046,
    Tone.REJECTED: 0xDA373C,
    Tone.EXPIRED: 0x80848E,
    Tone.CANCELLED: 0x80848E,
    Tone.MIXED: 0xF0B232,
}


class Texts(NamedTuple):
    """The texts of a card with all their markup, in the order of the message."""

    head: str
    calls: Sequence[str]
    words: str
    tail: str
    size: int
    """The size of all of them, as Discord counts it."""


class ApprovalView(ui.LayoutView):
    """The card itself. The deadline is in the database, so the view has no timeout."""

    def __init__(self, card: Card, above: str = "", texts: Texts | None = None) -> None:
        super().__init__(timeout=None)
        texts = texts or write(card)
        if above:
            self.add_item(ui.TextDisplay(above))
        self.add_item(ui.Container(*_items(card, texts), accent_colour=_COLOURS[card.tone]))
        self.text_size = texts.size + size(above)

    def overflow(self) -> str:
        """The Discord limit that this view breaks, or "". discord.py itself checks the number of components."""
        return f"{self.text_size} characters of text" if self.text_size > MAX_TEXT else ""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A card that fits, ready to send. Each attempt needs new files, because discord.py consumes them."""

    card: Card
    view: ApprovalView

    def files(self) -> list[discord.File]:
        return [discord.File(io.BytesIO(file.data), filename=file.name, spoiler=False) for file in self.card.files]


def render(
    batch: Batch,
    now: float,
    *,
    can_attach: bool = True,
    page: int = 0,
    offers: Offers | None = None,
    shown_in: str | None = None,
) -> Rendered:
    """Render a page of the card within Discord's limits. Nothing is cut here: text that does not fit is in a file.

    `shown_in`: the channel of the message. A copy in another channel than the conversation's links to the conversation.
    """
    above = _above(batch, shown_in)
    return _laid_out(*_fit(batch, now, above, can_attach=can_attach, page=page, offers=offers), above)


async def render_off_loop(
    batch: Batch,
    now: float,
    *,
    can_attach: bool = True,
    page: int = 0,
    offers: Offers | None = None,
    shown_in: str | None = None,
) -> Rendered:
    """Do the same as `render`. A large card is built in a thread, but a view belongs to the event loop."""
    above = _above(batch, shown_in)
    work = partial(_fit, batch, now, above, can_attach=can_attach, page=page, offers=offers)
    return _laid_out(*await off_loop_if_large(batch, work, ON_LOOP), above)


def _above(batch: Batch, shown_in: str | None) -> str:
    return link_line(batch) if shown_in not in (None, batch.place.channel) else ""


def _fit(
    batch: Batch, now: float, above: str, *, can_attach: bool = True, page: int = 0, offers: Offers | None = None
) -> tuple[Card, Texts]:
    """Return the card that fits, and its texts. They are written to measure the card, and once is enough."""
    written: dict[int, tuple[Card, Texts]] = {}

    def measure_once(card: Card) -> int:
        texts = write(card)
        written[id(card)] = card, texts
        return texts.size

    limit = MAX_TEXT - size(above)
    fitted = fit_card(batch, now=now, limit=limit, size=measure_once, can_attach=can_attach, page=page, offers=offers)
    return written[id(fitted)]


def _laid_out(card: Card, texts: Texts, above: str) -> Rendered:
    try:
        view = ApprovalView(card, above, texts)
        problem = view.overflow()
    except ValueError as error:
        raise CardFailed(f"the card does not fit into one Discord message ({error})") from error
    if len(card.files) > MAX_FILES:
        problem = f"{len(card.files)} files"
    if problem:
        raise CardFailed(f"the card does not fit into one Discord message ({problem})")
    return Rendered(card, view)


def measure(card: Card) -> int:
    """Measure the card as Discord counts it: the text with all its markup."""
    return write(card).size


def write(card: Card) -> Texts:
    head, calls, words, tail = _head(card), [_call(call) for call in card.calls], _words(card), _tail(card)
    return Texts(head, calls, words, tail, size("".join([head, *calls, words, tail])))


def _items(card: Card, texts: Texts) -> Iterator[ui.Item[Any]]:
    yield ui.TextDisplay(texts.head)
    for number, (call, text) in enumerate(zip(card.calls, texts.calls, strict=True)):
        if number:
            yield ui.Separator()
        yield ui.TextDisplay(text)
        yield from rows(call.actions)
    if card.model_text:
        yield ui.TextDisplay(texts.words)
    for file in card.files:
        yield ui.File(f"attachment://{file.name}")
    if len(card.calls) > 1:
        yield ui.Separator()
    yield ui.TextDisplay(texts.tail)
    yield from rows(card.actions)


def _head(card: Card) -> str:
    """Return the outcome of a settled card; of an open one its title, which is small unless it is the headline."""
    if card.status:
        return f"### {quoting.line(card.status)}"
    return f"### {quoting.trusted(card.title)}" if card.headline else f"-# {quoting.trusted(card.title)}"


def _words(card: Card) -> str:
    return "\n".join(_quotes([card.model_text])) if card.model_text else ""


def _tail(card: Card) -> str:
    title = f"{quoting.trusted(card.title)} · " if card.status else ""
    return "\n".join([*map(quoting.line, card.about), f"-# {title}{quoting.line(card.footer)}"])


def _call(call: CardCall) -> str:
    parts = [_tool(call), *_quotes(call.quotes)]
    parts += [f"**Warning:** {quoting.trusted(warning)}" for warning in call.warnings]
    parts += [quoting.line(fact) for fact in call.facts]
    if call.attached:
        parts.append(f"-# {quoting.line(call.attached)}")
    if call.why:
        parts.append(f"-# {quoting.line(call.why)}")
    return "\n".join(parts)


def _tool(call: CardCall) -> str:
    number = f"**{call.number}.** " if call.number else ""
    says = quoting.escape(call.says)
    if call.says_who:
        says = f"{quoting.trusted(call.says_who)}: {quoting.code(call.says)}"
    outcome = f" · **{quoting.line(call.outcome)}**" if call.outcome else ""
    return f"{number}**{quoting.code(call.tool)}**{outcome}" + (f" · {says}" if says else "")


def _quotes(quotes: Sequence[Quote]) -> Iterator[str]:
    """Yield the lines of the quotes. Neighbours in one line keep their order."""
    for shape, group in groupby(quotes, key=lambda quote: quote.shape):
        match shape:
            case Shape.BLOCK:
                for quote in group:
                    yield from _block(quote)
            case Shape.SENTENCE:
                yield from (f"> {quoting.escape(quote.text)}" for quote in group)
            case Shape.REMARK:
                yield from (f"> {_label(quote)}" + _after(quote.text) for quote in group)
            case Shape.INLINE:
                yield " · ".join(map(_inline, group))
            case Shape.DEFAULT:
                yield "-# defaults: " + " · ".join(map(_inline, group))


def _after(text: str) -> str:
    return f": {quoting.escape(text)}" if text else ""


def _inline(quote: Quote) -> str:
    text = f" {quoting.code(quote.text)}" if quote.text else ""
    note = f" ({quoting.trusted(quote.note)})" if quote.note else ""
    return f"**{quoting.escape(quote.label)}**{text}{note}"


def _label(quote: Quote) -> str:
    note = f" ({quoting.trusted(quote.note)})" if quote.note else ""
    return f"**{quoting.trusted(quote.label)}**{note}"


def _block(quote: Quote) -> Iterator[str]:
    text, said = quoting.block(quote.text, "diff" if quote.diff else "")
    label = " ".join(quote.label.split())
    note = f" · {quoting.trusted(quote.note)}" if quote.note else ""
    if not quote.continued:
        # An argument's name is one word and reads best as code; our own labels have several words.
        yield (f"**{quoting.escape(label)}**" if " " in label else quoting.code(label)) + note
    yield quoting.BLANK_LINE if quote.is_blank_line else text
    for below in (quote.after, said):
        if below:
            yield f"-# {quoting.trusted(below)}"
