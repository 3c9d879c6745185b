"""How large a card may become: the bounds of its trusted text, and fitting a card to a medium.

Sizes count code points. Quoted parts are bounded by the `room` that the front end gives; everything else by
`overhead`, whatever the model, the tools and the people write. Knows cards, and nothing of any medium.
"""

from __future__ import annotations

from dataclasses import dataclass

from signoff.cards.model import Card, Inline, Line, Moment, Person, Quote, RoleRef
from signoff.cards.values import NOTE_ROOM
from signoff.cards.words import CANCEL_ROOM, CONDITIONS, DECIDERS, NAME_ROOM, VOTERS

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
PEOPLE_ROOM = VOTERS * (NAME_ROOM + 5) + 10
OUTCOME_ROOM = 60
"""The words about how one call ended, beside the people who decided it."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What each of `calls` calls on a page may take of trusted text: the more calls, the shorter."""

    calls: int
    tight: bool = False
    """Little of everything: for pages on which the trusted words alone would not fit."""

    @property
    def tool(self) -> int:
        return 24 if self.tight else 64

    @property
    def why(self) -> int:
        return 40 if self.tight else min(300, 400 // max(1, self.calls))

    @property
    def message(self) -> int:
        """For the rule's own words."""
        return 40 if self.tight else min(300, 480 // max(1, self.calls))

    @property
    def warnings(self) -> int:
        return 72 if self.tight else min(600, 700 // max(1, self.calls))

    @property
    def deciders(self) -> int:
        return 1 if self.tight else DECIDERS

    @property
    def already_ran(self) -> int:
        return 2 if self.tight else 8 if self.calls <= 2 else 5

    @property
    def reason(self) -> int:
        """For one reason that holds for all calls."""
        return REASON_ROOM

    @property
    def own_reason(self) -> int:
        """For the reason of one call among others."""
        return REASON_ROOM // max(1, self.calls)

    @property
    def hash(self) -> int:
        return 12 if self.tight else 16


def overhead(calls: int) -> int:
    """The most that a page with so many calls can measure beyond its room.

    Real cards stay far below it, so a front end with a hard limit should not subtract it but use `fit_card`.
    """
    sizes = Sizes(calls)
    title, asked, deadline, not_offered, footer = 25, 9 + NAME_ROOM, 24 + MOMENT_ROOM, 90, 16 + 14 * calls
    already_ran = 30 + sizes.already_ran * (NAME_ROOM + 2)
    words, remember, paging = LABEL_ROOM + NOTE_ROOM, 90, 40
    base = (
        title + asked + _deciders(DECIDERS) + deadline + not_offered + already_ran + words + remember + paging + footer
    )
    each = sizes.tool + sizes.why + sizes.message + 6 + sizes.warnings + ATTACHED_ROOM + DIGEST_ROOM + 2
    facts = 2 * (26 + PEOPLE_ROOM) + 64 + PEOPLE_ROOM + 16 + NAME_ROOM + MOMENT_ROOM + 44 + CONDITIONS * (NAME_ROOM + 2)
    differing = _deciders(sizes.deciders) if calls > 1 else 0
    return base + calls * (each + facts + differing) + settled_overhead(calls)


def settled_overhead(calls: int) -> int:
    """What decisions can add to a page: votes, the status or the outcome of each call, and the reasons."""
    outcome = OUTCOME_ROOM + PEOPLE_ROOM
    alike = 12 + CANCEL_ROOM + outcome + REASON_ROOM + LABEL_ROOM + NOTE_ROOM
    apart = len("DECIDED") + calls * (outcome + LABEL_ROOM + 24) + REASON_ROOM
    return (max(alike, apart) if calls > 1 else alike) + calls * PEOPLE_ROOM


def reserve(calls: int) -> int:
    """What is kept free for decisions on an open page. Ordinary names are short, so it is less than the bound."""
    return settled_overhead(1) // 2 + (calls - 1) * 90


def measure(card: Card) -> int:
    """The size of everything that a card shows, without a medium's markup, buttons and files."""
    lines = [*card.lead, card.footer, *([card.status] if card.status else [])]
    size = len(card.title) + sum(map(_line, lines)) + (_quote(card.words) if card.words else 0)
    for call in card.calls:
        size += len(call.tool) + _line(call.why) + sum(map(len, call.warnings)) + sum(map(_quote, call.quotes))
        size += (_line(call.outcome) if call.outcome else 0) + sum(map(_line, call.facts))
    return size


def _deciders(count: int) -> int:
    return 26 + 50 + count * (26 + CONDITIONS * (NAME_ROOM + 5))


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
