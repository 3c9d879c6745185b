"""How large a card may become: the bounds of its trusted text, and fitting a card to a medium.

Sizes count code points. Quoted parts are bounded by the `room` that the front end gives; everything else by
`overhead`, whatever the model, the tools and the people write. Knows cards, and nothing of any medium.
"""

from __future__ import annotations

from dataclasses import dataclass

from signoff.cards.model import Card, Inline, Line, Moment, Person, Quote, RoleRef
from signoff.cards.values import NOTE_ROOM
from signoff.cards.words import CANCEL_ROOM, DECIDERS, NAME_ROOM

ROOM = 2400
"""Quoted text on a card, unless the front end says otherwise."""
ROLE_ROOM = 24
MOMENT_ROOM = 20
ATTACHED_ROOM = 128
"""The line that names the attached file, its counts and its hash."""
REASON_ROOM = 240
"""The reasons that people gave for their decisions, all together; the audit record has them whole."""
LABEL_ROOM = 28
"""The longest label of ours."""
DIGEST_ROOM = 12
OUTCOME_ROOM = 54
"""How one call ended, where the calls of a card ended differently."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What each of `calls` calls may take of trusted text: the more calls, the shorter."""

    calls: int

    @property
    def few(self) -> bool:
        return self.calls <= 4

    @property
    def tool(self) -> int:
        return 64 if self.few else 40 if self.calls <= 6 else 32

    @property
    def why(self) -> int:
        return min(300, max(40, 400 // max(1, self.calls)))

    @property
    def warnings(self) -> int:
        return min(600, max(72, 700 // max(1, self.calls)))

    @property
    def deciders(self) -> int:
        return DECIDERS if self.few else 1

    @property
    def already_ran(self) -> int:
        return 8 if self.calls <= 2 else 5 if self.few else 3

    @property
    def reason(self) -> int:
        """For one reason that holds for all calls."""
        return REASON_ROOM if self.few else 96

    @property
    def own_reason(self) -> int:
        """For the reason of one call among others, where there are few."""
        return REASON_ROOM // max(1, self.calls)

    @property
    def hash(self) -> int:
        return 16 if self.few else 12


def overhead(calls: int) -> int:
    """The most that a card with so many calls can measure beyond its room: 2,404 for one call, 4,971 for ten.

    Real cards stay far below it, so a front end with a hard limit should not subtract it but use `fit_card`.
    """
    sizes = Sizes(calls)
    title, asked, deadline, not_offered, footer = 25, 9 + NAME_ROOM, 24 + MOMENT_ROOM, 90, 30
    already_ran = 30 + sizes.already_ran * (NAME_ROOM + 2)
    words = LABEL_ROOM + NOTE_ROOM
    base = title + asked + _deciders(DECIDERS) + deadline + not_offered + already_ran + words + footer
    each = sizes.tool + sizes.why + sizes.warnings + ATTACHED_ROOM + DIGEST_ROOM + 2
    differing = _deciders(sizes.deciders) if calls > 1 else 0
    return base + calls * (each + differing) + settled_overhead(calls)


def settled_overhead(calls: int) -> int:
    """What a decision can add to a card: the status, or the outcome of each call, and the reasons."""
    alike = 12 + CANCEL_ROOM + REASON_ROOM + LABEL_ROOM + NOTE_ROOM
    each = OUTCOME_ROOM + (LABEL_ROOM + 24 if Sizes(calls).few else 28)
    return max(alike, len("DECIDED") + calls * each + (REASON_ROOM if Sizes(calls).few else 0)) if calls > 1 else alike


def measure(card: Card) -> int:
    """The size of everything that a card shows, without a medium's markup, buttons and files."""
    lines = [*card.lead, card.footer, *([card.status] if card.status else [])]
    size = len(card.title) + sum(map(_line, lines)) + (_quote(card.words) if card.words else 0)
    for call in card.calls:
        size += len(call.tool) + _line(call.why) + sum(map(len, call.warnings)) + sum(map(_quote, call.quotes))
        size += _line(call.outcome) if call.outcome else 0
    return size


def _deciders(count: int) -> int:
    return 26 + count * (NAME_ROOM + 4)


def _quote(quote: Quote) -> int:
    return len(quote.label) + len(quote.text) + len(quote.note)


def _line(line: Line) -> int:
    return sum(map(_inline, line))


def _inline(inline: Inline) -> int:
    match inline:
        case Person():
            return NAME_ROOM
        case RoleRef():
            return ROLE_ROOM
        case Moment():
            return MOMENT_ROOM
        case str():
            return len(inline)
