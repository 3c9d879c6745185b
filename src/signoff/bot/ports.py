"""What the bot needs from the rest of the program, as Protocols. It gets objects, never rooms to import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from signoff.approvals.desk import Click
from signoff.approvals.model import Actor, ApprovalRequest, Batch, JsonObject, Outcome, Place
from signoff.turns.model import Admission, Turn


class Desk(Protocol):
    """Where every click ends."""

    async def decide(self, click: Click) -> Outcome:
        """Raises a DeskError; a return means that this decision or vote counted."""
        ...

    async def look(self, target: str, actor: Actor, channel: str, card: str | None) -> Batch:
        """The batch as it stands; nothing is decided. Raises UnknownRequest."""
        ...

    async def card_deleted(self, card: str, reason: str) -> Batch | None:
        """Cancel what the message showed; None if it showed nothing that was still open."""
        ...

    async def place_deleted(self, channel: str, reason: str) -> Sequence[Batch]:
        """Cancel what was still open in a channel or thread that is gone."""
        ...

    async def recheck_approvers(self, naming: str = "") -> Sequence[Batch]:
        """Look whether those who may decide are still there, and end what nobody can decide: what has changed."""
        ...

    async def mark_card_final(self, batch_id: str) -> None: ...


class Editor(Protocol):
    """Other arguments for a call that is still open."""

    async def request(self, request_id: str, actor: Actor, channel: str, card: str | None) -> ApprovalRequest:
        """The request as it stands, for somebody who may edit it. Raises a DeskError."""
        ...

    async def edit(
        self, request_id: str, args: JsonObject, based_on: str, actor: Actor, channel: str, card: str | None
    ) -> Outcome:
        """Raises a DeskError; Refused carries words for the editor."""
        ...


class Intake(Protocol):
    """Takes turns and drives them. `submit` only stores; `go` starts."""

    async def submit(self, turn: Turn) -> Admission: ...

    async def relocate(self, turn_id: str, place: Place) -> None: ...

    async def go(self, turn_id: str) -> None: ...

    async def recover(self) -> None: ...


class Now(Protocol):
    """The time, in Unix seconds."""

    def __call__(self) -> float: ...
