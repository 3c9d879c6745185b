"""A card as data: trusted lines and quoted parts, apart. A front end writes neither; it only quotes the quoted parts.

Trusted text is ours. A `Quote` holds what the model, a tool or a person wrote: its text has already had hidden
characters made visible, but may still contain any printable character, so the front end must fence or escape it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from signoff.approvals.model import Choice, Remember


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    name: str
    """Made visible like a quote: names are chosen by their owners."""


@dataclass(frozen=True, slots=True)
class RoleRef:
    id: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that the medium may show as a live countdown."""

    at: float


Inline = str | Person | RoleRef | Moment
Line = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    label: str
    """Trusted for words of ours, already visible and short where it is an argument's name."""
    text: str
    note: str = ""
    """Trusted words about the text, such as how much of it is shown and where the rest is."""
    diff: bool = False
    """The text is a diff, which a medium may colour."""


@dataclass(frozen=True, slots=True)
class CardCall:
    """One call on the card."""

    tool: str
    """Visible text, to be quoted."""
    request: str
    why: Line
    quotes: tuple[Quote, ...]
    warnings: tuple[str, ...] = ()
    """Trusted words about hidden characters, look-alike letters and the like."""
    outcome: Line | None = None
    """How this call was settled, where that differs from the card's status."""
    facts: tuple[Line, ...] = ()
    """Trusted: the rule's message, who has accepted, who edited, whose vote is void, which approver is missing."""
    actions: tuple[Action, ...] = ()
    """This call's own buttons, where the card has several calls."""


@dataclass(frozen=True, slots=True)
class CardFile:
    """What does not fit, whole."""

    name: str
    data: bytes
    sha256: str


class Tone(StrEnum):
    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    MIXED = "mixed"


class Style(StrEnum):
    GOOD = "good"
    BAD = "bad"
    PLAIN = "plain"


class Verb(StrEnum):
    """What a button asks for: a choice, a remembered choice, or a way to something else."""

    ACCEPT = "accept"
    REJECT = "reject"
    RAN = "ran"
    RERUN = "rerun"
    SKIP = "skip"
    ACCEPT_HERE = "accept_here"
    ACCEPT_ALWAYS = "accept_always"
    REJECT_HERE = "reject_here"
    REJECT_ALWAYS = "reject_always"
    REASON = "reason"
    EDIT = "edit"
    REMEMBER = "remember"
    MORE = "more"
    PAGE = "page"

    @property
    def choice(self) -> Choice | None:
        """None for what decides nothing by itself."""
        word = self.value.partition("_")[0]
        return Choice(word) if word in set(Choice) else None

    @property
    def remember(self) -> Remember:
        scopes = {"here": Remember.SESSION, "always": Remember.ALWAYS}
        return scopes.get(self.value.partition("_")[2], Remember.NONE)


@dataclass(frozen=True, slots=True)
class Action:
    """A button: what it says, which request or batch it locates, and what was shown. It grants nothing by itself."""

    verb: Verb
    target: str
    label: str
    style: Style
    revision: int = 0
    """How often the calls had been edited when this was drawn."""
    page: int = 0
    """The page that this was drawn on; for `page`, the one to turn to."""
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    tone: Tone
    lead: tuple[Line, ...]
    calls: tuple[CardCall, ...]
    model_text: Quote | None
    """The text that the model wrote beside its calls, marked as the model's."""
    files: tuple[CardFile, ...]
    status: Line | None
    """APPROVED by ..., REJECTED by ..., TIMEOUT - Request expired; None while open."""
    footer: Line
    """Short id and digest."""
    actions: tuple[Action, ...]
    """The buttons for the whole card; those of one call among several are with the call."""
    page: int = 0
    pages: int = 1

    @property
    def buttons(self) -> tuple[Action, ...]:
        """Every button, in reading order."""
        return (*(action for call in self.calls for action in call.actions), *self.actions)
