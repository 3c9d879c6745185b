"""How large a card may become: the bounds of its trusted text, and what is kept free for decisions.

Sizes count code points. Quoted parts are bounded by the `budget` that the front end gives; everything else by these
bounds, whatever the model, the tools and the people write. Knows nothing of cards or any medium.
"""

from __future__ import annotations

from dataclasses import dataclass

from signoff.cards.approver_names import NAME_BUDGET, NAMED_APPROVERS, VOTERS
from signoff.cards.layout import NOTE_BUDGET
from signoff.cards.wording import CANCEL_BUDGET

BUDGET = 2400
"""Quoted text on a card, unless the front end says otherwise."""
REASON_BUDGET = 240
"""The reasons that people gave for their decisions, all together; the audit record has them whole."""
LABEL_BUDGET = 28
"""The longest label of ours."""
DIGEST_BUDGET = 12
ID_BUDGET = 16
PEOPLE_BUDGET = VOTERS * (NAME_BUDGET + 5) + 10
OUTCOME_BUDGET = 60
"""The text about how one call ended, beside the people who decided it."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What each of `calls` calls on a page may take of trusted text: the more calls, the shorter."""

    calls: int
    tight: bool = False
    """Little of everything, for pages on which the trusted text alone would not fit."""

    @property
    def tool(self) -> int:
        return 24 if self.tight else 64

    @property
    def why(self) -> int:
        return 40 if self.tight else min(300, 400 // max(1, self.calls))

    @property
    def message(self) -> int:
        """For the message of the rule."""
        return 40 if self.tight else min(300, 480 // max(1, self.calls))

    @property
    def warnings(self) -> int:
        return 72 if self.tight else min(600, 700 // max(1, self.calls))

    @property
    def approvers(self) -> int:
        return 1 if self.tight else NAMED_APPROVERS

    @property
    def already_ran(self) -> int:
        return 2 if self.tight else 8 if self.calls <= 2 else 5

    @property
    def held(self) -> int:
        """The number of held calls that a line names."""
        return self.already_ran

    @property
    def reason(self) -> int:
        """For one reason that holds for all calls."""
        return REASON_BUDGET

    @property
    def own_reason(self) -> int:
        """For the reason of one call among others."""
        return REASON_BUDGET // max(1, self.calls)

    @property
    def hash(self) -> int:
        return 12 if self.tight else 16


def settled_overhead(calls: int) -> int:
    """What decisions can add to a page: votes, the status or the outcome of each call, and the reasons."""
    outcome = OUTCOME_BUDGET + PEOPLE_BUDGET
    alike = 12 + CANCEL_BUDGET + outcome + REASON_BUDGET + LABEL_BUDGET + NOTE_BUDGET
    apart = len("DECIDED") + calls * (outcome + LABEL_BUDGET + 24) + REASON_BUDGET
    return (max(alike, apart) if calls > 1 else alike) + calls * PEOPLE_BUDGET


def reserve(calls: int) -> int:
    """What is kept free for decisions on an open page. Ordinary names are short, so it is less than the bound."""
    return settled_overhead(1) // 2 + (calls - 1) * 90
