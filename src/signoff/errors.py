"""Every exception that Signoff raises on purpose, so that callers can catch by meaning.

SignoffError
├── StartupError            the process cannot start; its text is the one line that a person reads
│   ├── SettingsError       an environment variable or .env entry is missing or wrong
│   ├── ConfigError         signoff.toml is broken: file, line, what to write instead
│   ├── StoreUnavailable    the database cannot be opened, or its schema is newer than this program
│   ├── AlreadyRunning      another process owns the database
│   └── LoginFailed         Discord refused the token or an intent
├── DeskError               a decision was not taken; its text is for the person who clicked
│   ├── UnknownRequest      no such request here: forged, foreign or long gone
│   ├── NotAllowed          the right card, the wrong person; carries the batch, to say who may
│   ├── AlreadySettled      somebody or the deadline was first; carries the batch as it stands
│   ├── AlreadyVoted        this person has accepted already, and others are still needed; carries the batch
│   ├── Outdated            the call was edited since the clicked card was drawn; carries the batch
│   └── Refused             an edit, a rule, a grant or another order was not taken; its text says why
├── CardFailed              a front end could not show a card; its text says why
├── TurnFailed              a run ended in an error; its text is what the asker reads
└── StoreError              the store failed while the process was running
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signoff.approvals.model import Batch


class SignoffError(Exception):
    """Root of the tree."""


class StartupError(SignoffError):
    """The process cannot start."""


class SettingsError(StartupError):
    """A setting is missing or wrong."""


class ConfigError(StartupError):
    """signoff.toml is broken."""


class StoreUnavailable(StartupError):
    """The database cannot be opened or is newer than this program."""


class AlreadyRunning(StartupError):
    """Another process owns the database."""


class LoginFailed(StartupError):
    """Discord refused the token or an intent."""


class DeskError(SignoffError):
    """A decision was not taken."""


class UnknownRequest(DeskError):
    """No such request here."""


class NotAllowed(DeskError):
    """The right card, the wrong person."""

    def __init__(self, batch: Batch, why: str = "") -> None:
        super().__init__(why or "you may not decide this request")
        self.batch = batch
        self.why = why
        """Set where the person is named among those who may, and something else keeps them from it."""


class AlreadySettled(DeskError):
    """The request was settled before this decision arrived."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(f"request {batch.id} is already settled")
        self.batch = batch


class AlreadyVoted(DeskError):
    """This person's accept is counted already."""

    def __init__(self, batch: Batch) -> None:
        super().__init__("your vote is counted already")
        self.batch = batch


class Outdated(DeskError):
    """The call was edited since the clicked card was drawn."""

    def __init__(self, batch: Batch) -> None:
        super().__init__("the call was edited since this card was drawn")
        self.batch = batch


class Refused(DeskError):
    """An order was not taken."""


class CardFailed(SignoffError):
    """A front end could not show a card."""


class TurnFailed(SignoffError):
    """A run ended in an error."""


class StoreError(SignoffError):
    """The store failed while the process was running."""
