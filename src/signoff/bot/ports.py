"""What the bot needs from the rest of the program, as Protocols. It gets objects, never rooms to import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from signoff.approvals.model import Actor, Batch, Choice, Outcome, Place
from signoff.turns.model import Admission, Turn


class Desk(Protocol):
    """Where every click ends."""

    async def decide(self, target: str, choice: Choice, actor: Actor, channel: str, card: str | None = None) -> Outcome:
        """Raises UnknownRequest, NotAllowed or AlreadySettled; a return means that this decision counted."""
        ...

    async def card_lost(self, card: str, reason: str) -> Batch | None:
        """Cancel what the message showed; None if it showed nothing that was still open."""
        ...

    async def place_lost(self, channel: str, reason: str) -> Sequence[Batch]:
        """Cancel what was still open in a channel or thread that is gone."""
        ...

    async def mark_card_final(self, batch_id: str) -> None: ...


class Intake(Protocol):
    """Takes turns and drives them. `submit` only stores; `go` starts."""

    async def submit(self, turn: Turn) -> Admission: ...

    async def relocate(self, turn_id: str, place: Place) -> None: ...

    async def go(self, turn_id: str) -> None: ...

    async def recover(self) -> None: ...

    async def stop(self, grace: float) -> None: ...


class Now(Protocol):
    """The time, in Unix seconds."""

    def __call__(self) -> float: ...
