"""A card as data, with trusted lines and quoted parts kept apart. A front end adds no text; it only quotes the quotes.

Trusted text is ours. A `Quote` holds text that the model, a tool or a person wrote. Its hidden characters are already
visible, but it may still contain any printable character, so the front end must fence or escape it.
"""

from __future__ import annotations

from enum import StrEnum

from signoff.approvals.model import Choice, Remember
from signoff.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    name: str
    """Hidden characters are made visible, as in a quote, because people choose their own names."""


@dataclass(frozen=True, slots=True)
class RoleRef:
    id: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that the medium may show as a live countdown."""

    at: float


@dataclass(frozen=True, slots=True)
class Code:
    """Untrusted text on one line, hidden characters made visible. The medium quotes it."""

    text: str


Inline = str | Person | RoleRef | Moment | Code
Line = tuple[Inline, ...]


class Shape(StrEnum):
    """How a medium shows a quote. Only short and harmless text gets another shape than a block; see `contents`."""

    BLOCK = "block"
    """The label, then the text in a block of its own."""
    INLINE = "inline"
    """The label and the text as code, on one line with the quotes beside it."""
    DEFAULT = "default"
    """Like INLINE, in a small line for the arguments that have their default value."""
    SENTENCE = "sentence"
    """The text alone, marked as a quotation."""
    REMARK = "remark"
    """The label and the text, marked as a quotation."""


@dataclass(frozen=True, slots=True)
class Quote:
    label: str
    """Our own trusted text, or an argument's name with hidden characters made visible, cut if it is long."""
    text: str
    note: str = ""
    """Trusted text about the quoted text, such as its length. A medium shows it beside the label."""
    diff: bool = False
    """The text is a diff, which a medium may colour."""
    shape: Shape = Shape.BLOCK
    after: str = ""
    """Trusted text about what is left out after the quoted text. A medium shows it below the text."""
    continued: bool = False
    """It continues the quote before it, so a medium does not repeat the label."""

    @property
    def is_blank_line(self) -> bool:
        """Whether it is a blank line of a longer text. A medium must not say that the text is empty."""
        return not self.text and (bool(self.after) or self.continued)


@dataclass(frozen=True, slots=True)
class CardCall:
    """One call on the card."""

    tool: str
    """Visible text, to be quoted."""
    request: str
    why: Line
    quotes: tuple[Quote, ...]
    number: int = 0
    """The position among the calls of the card, from 1; 0 if there is only this call."""
    says: str = ""
    """One sentence of the tool about itself: visible text, to be quoted."""
    says_who: str = ""
    """Who says that sentence, if it is not the tool's own author: trusted text."""
    warnings: tuple[str, ...] = ()
    """Trusted text about hidden characters, look-alike letters and so on."""
    outcome: Line | None = None
    """How this call was settled, if the card's status does not say it. A medium shows it beside the tool."""
    attached: Line = ()
    """Trusted: which file holds the whole call, if the card does not show all of it."""
    facts: tuple[Line, ...] = ()
    """Trusted: the rule's message, who has accepted, who edited, whose vote is void, which approver is missing."""
    actions: tuple[Action, ...] = ()
    """This call's own buttons, if the card has several calls."""


@dataclass(frozen=True, slots=True)
class CardFile:
    """One whole request as a file, attached if the card cannot show all of it."""

    name: str
    data: bytes
    sha256: str


class Tone(StrEnum):
    OPEN = "open"
    IN_DOUBT = "in doubt"
    """Open, and a call of it may have run already."""
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
    """The effect of a button: a choice, a remembered choice, or a step to a form, a panel or a page."""

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
    SAVE = "save"
    CLOSE = "close"
    OPEN = "open"
    INBOX = "inbox"
    FILL = "fill"
    """Opens the form for an answer, or a part of it."""
    ANSWER = "answer"
    """Confirms an inquiry that has no fields."""
    DECLINE = "decline"
    SEND = "send"
    """Sends what this person has filled in."""

    @property
    def choice(self) -> Choice | None:
        """The choice that this verb makes; None if it decides nothing by itself."""
        return _CHOICES.get(self.value.partition("_")[0])

    @property
    def remember(self) -> Remember:
        return _SCOPES.get(self.value.partition("_")[2], Remember.NONE)


_CHOICES = {choice.value: choice for choice in Choice}
_SCOPES = {"here": Remember.SESSION, "always": Remember.ALWAYS}


@dataclass(frozen=True, slots=True)
class Action:
    """A button: its label, the request or batch it is about, and the state that was shown. It gives nobody a right."""

    verb: Verb
    target: str
    label: str
    style: Style
    revision: int = 0
    """The number of edits to the calls when this button was drawn."""
    page: int = 0
    """The page that this button was drawn on; for the verb `page`, the page to turn to."""
    disabled: bool = False
    terms: str = ""
    """For `save`: what is to be remembered, as `buttons` writes it into the id. For `fill`: the part of the form."""


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    """The kind of card. A medium shows it small, unless it is a `headline`. A settled card leads with its `status`."""
    tone: Tone
    about: tuple[Line, ...]
    """What holds for the whole card. The last line says who asked, who may decide and until when."""
    calls: tuple[CardCall, ...]
    model_text: Quote | None
    """The text that the model wrote along with its calls, labelled as the model's."""
    files: tuple[CardFile, ...]
    status: Line | None
    """APPROVED by ..., REJECTED by ..., TIMEOUT - Request expired; None while open."""
    footer: Line
    """Short id and digest."""
    actions: tuple[Action, ...]
    """The buttons of the whole card. If there are several calls, each call has its own buttons."""
    page: int = 0
    pages: int = 1
    headline: bool = False
    """Whether the title itself is what people have to know, for example that a call may have run."""

    @property
    def buttons(self) -> tuple[Action, ...]:
        """Every button, in reading order."""
        return (*(action for call in self.calls for action in call.actions), *self.actions)
