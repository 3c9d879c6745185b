"""A card as data: trusted lines and quoted parts, apart. A front end words neither; it only quotes the quoted parts.

Trusted text is ours. A `Quote` holds what the model, a tool or a person wrote: its text has already had hidden
characters made visible, but may still contain any printable character, so the front end must fence or escape it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from signoff.approvals.model import Choice


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


@dataclass(frozen=True, slots=True)
class Action:
    """A button: what it says and which request or batch it locates. It grants nothing by itself."""

    choice: Choice
    target: str
    label: str
    style: Style


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    tone: Tone
    lead: tuple[Line, ...]
    calls: tuple[CardCall, ...]
    words: Quote | None
    """What the model said beside its calls, marked as the model's words."""
    files: tuple[CardFile, ...]
    status: Line | None
    """APPROVED by ..., REJECTED by ..., TIMEOUT - Request expired; None while open."""
    footer: Line
    """Short id and digest."""
    actions: tuple[Action, ...]
