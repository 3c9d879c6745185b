"""What the terminal needs from the rest of the program, as Protocols. It gets objects, never rooms to import."""

from __future__ import annotations

from typing import Protocol

from signoff.approvals.desk import Click
from signoff.approvals.model import Actor, Batch, JsonObject, Outcome
from signoff.turns.model import Admission, Turn


class Desk(Protocol):
    """Where every decision ends."""

    async def decide(self, click: Click) -> Outcome:
        """Raises a DeskError; a return means that this decision counted."""
        ...

    async def look(self, target: str, actor: Actor, channel: str, card: str | None) -> Batch:
        """The batch as it stands; nothing is decided."""
        ...

    async def mark_card_final(self, batch_id: str) -> None: ...


class Editor(Protocol):
    async def edit(
        self, request_id: str, args: JsonObject, based_on: str, actor: Actor, channel: str, card: str | None
    ) -> Outcome:
        """Raises a DeskError; Refused carries words for the editor."""
        ...


class Intake(Protocol):
    """Takes turns and drives them. `submit` only stores; `go` starts."""

    async def submit(self, turn: Turn) -> Admission: ...

    async def go(self, turn_id: str) -> None: ...


class Now(Protocol):
    """The time, in Unix seconds."""

    def __call__(self) -> float: ...
