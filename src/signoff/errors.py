"""Every exception that Signoff raises on purpose, as a tree, so that callers can catch the kind they mean.

SignoffError
├── StartupError            the process cannot start; its text is the one line that a person reads
│   ├── SettingsError       an environment variable or .env entry is missing or wrong
│   ├── ConfigError         signoff.toml is broken: file, line, what to write instead
│   ├── StoreUnavailable    the database cannot be opened, or its schema is newer than this program
│   ├── AlreadyRunning      another process owns the database
│   └── LoginFailed         Discord refused the token or an intent
├── DeskError               a decision was not taken: see `approvals.errors`
├── CardFailed              a front end could not show a card; its text says why
│   └── CardDelayed         the card may be shown later
├── NotDelivered            a message reached nobody; its text says why
│   ├── Undeliverable       it would be refused again, so it is not sent again
│   └── CopiesRefused       the card shows its state, but copies of it cannot be changed any more
├── NotDone, MayHaveRun     a change in a Discord server: see `servers.ports`
├── TurnFailed              a run ended in an error; its text is what the asker reads
└── StoreError              the store failed while the process was running
"""

from __future__ import annotations

from collections.abc import Sequence


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


class CardFailed(SignoffError):
    """A front end could not show a card."""


class CardDelayed(CardFailed):
    """A front end could not show a card now, but may be able to later."""


class NotDelivered(SignoffError):
    """A message reached nobody. It may be sent again later."""


class Undeliverable(NotDelivered):
    """A message reached nobody and would be refused again, for example for want of a permission."""


class CopiesRefused(NotDelivered):
    """The card itself shows its state. These copies do not, and a change of them would be refused again."""

    def __init__(self, reason: str, copies: Sequence[tuple[str, str]]) -> None:
        super().__init__(reason)
        self.copies = copies
        """The channel and the message of each copy."""


class TurnFailed(SignoffError):
    """A run ended in an error."""


class StoreError(SignoffError):
    """The store failed while the process was running."""
