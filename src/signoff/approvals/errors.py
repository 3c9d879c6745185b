"""Errors that say why the desk did not take a decision. Their text is for the person who clicked.

DeskError
├── UnknownRequest      no such request here: forged, from another server, or no longer stored
├── NotAllowed          the right card, the wrong person; carries the batch, to say who may decide
├── AlreadySettled      a person or the deadline was first; carries the batch as it stands
├── AlreadyVoted        this person has already accepted, and others are still needed; carries the batch
├── Outdated            the call was edited after the clicked card was drawn; carries the batch
└── Refused             an edit, a rule, a grant or another command was refused; its text says why
"""

from __future__ import annotations

from signoff.approvals.model import Batch
from signoff.errors import SignoffError


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
        """Set if the person is named as approver, but something else bars them, such as four eyes."""


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
        super().__init__("the call was edited after this card was posted")
        self.batch = batch


class Refused(DeskError):
    """An edit, a rule, a grant or another command was refused."""
