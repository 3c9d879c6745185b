"""How large a card may become: the bounds of its trusted text, and the space reserved for decisions.

Sizes count code points. The front end's `budget` bounds the quoted parts. The bounds here hold for everything else,
no matter what the model, the tools and the people write. This module knows neither cards nor any medium.
"""

from __future__ import annotations

from signoff.cards.approver_names import NAME_BUDGET, NAMED_APPROVERS, VOTERS
from signoff.cards.layout import NOTE_BUDGET
from signoff.cards.progress import PROGRESS_BUDGET
from signoff.cards.wording import CANCEL_BUDGET
from signoff.dataclass import dataclass

BUDGET = 2400
"""Characters of quoted text on a card, unless the front end sets another budget."""
REASON_BUDGET = 240
"""Characters for all reasons together that people gave for their decisions. The record holds the full text."""
LABEL_BUDGET = 28
"""Characters of our longest label."""
DIGEST_BUDGET = 12
ID_BUDGET = 16
PEOPLE_BUDGET = VOTERS * (NAME_BUDGET + 5) + 10
ANSWER_BUDGET = 800
"""Characters for all answers on a page together. The record holds the full text."""
DECIDED_BUDGET = 96
"""Characters for how many calls of a card ended in which way."""
OUTCOME_BUDGET = 60
"""Characters for how one call ended, without the names of the people who decided it."""

OPEN_MORE = 1900
"""The most that the open card of one call is larger than the settled one, with its markup: by who may decide it.

Four approvers are named, each with a name in which every character may be escaped, and with three conditions.
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The space for the trusted text of each call on a page with `calls` calls: the more calls, the less space."""

    calls: int
    tight: bool = False
    """Use the smallest sizes, for a page whose trusted text alone would not fit."""

    @property
    def tool(self) -> int:
        return 24 if self.tight else 64

    @property
    def says(self) -> int:
        """Characters for the tool's sentence about itself."""
        return 0 if self.tight else 100 if self.calls <= 2 else 60

    @property
    def why(self) -> int:
        return 40 if self.tight else min(300, 400 // max(1, self.calls))

    @property
    def message(self) -> int:
        """Characters for the rule's message."""
        return 40 if self.tight else min(300, 480 // max(1, self.calls))

    @property
    def warnings(self) -> int:
        return 72 if self.tight else min(600, 700 // max(1, self.calls))

    @property
    def approvers(self) -> int:
        return 1 if self.tight else NAMED_APPROVERS

    @property
    def named_tools(self) -> int:
        """The number of tools that a line names."""
        return 2 if self.tight else 8 if self.calls <= 2 else 5

    @property
    def reason(self) -> int:
        """Characters for one reason that applies to all calls."""
        return REASON_BUDGET

    @property
    def own_reason(self) -> int:
        """Characters for the reason of one call among several."""
        return REASON_BUDGET // max(1, self.calls)

    @property
    def answer(self) -> int:
        """Characters for the answer to one call."""
        return (REASON_BUDGET if self.tight else ANSWER_BUDGET) // max(1, self.calls)

    @property
    def covered(self) -> int:
        """Characters for what a remembered decision covers."""
        return 0 if self.tight else 120

    @property
    def hash(self) -> int:
        return 12 if self.tight else 16


def settled_overhead(calls: int) -> int:
    """The most characters that decisions add to a page: votes, outcomes, reasons, and how each call ran."""
    outcome = OUTCOME_BUDGET + PEOPLE_BUDGET
    alike = 12 + CANCEL_BUDGET + outcome + REASON_BUDGET + LABEL_BUDGET + NOTE_BUDGET
    apart = DECIDED_BUDGET + calls * (outcome + LABEL_BUDGET + 24) + REASON_BUDGET
    return (max(alike, apart) if calls > 1 else alike) + calls * (PEOPLE_BUDGET + PROGRESS_BUDGET)


def reserve(calls: int) -> int:
    """Characters reserved for decisions on an open page. Most names are short, so this is below the upper bound."""
    return settled_overhead(1) // 2 + (calls - 1) * 130


def left_out_overhead(calls: int) -> int:
    """The most that a page grows when quoted text is left out: by the lines that say so, with their markup.

    A page that fits with this much to spare also fits without any quoted text.
    """
    return 300 + 200 * calls
