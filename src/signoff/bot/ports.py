"""What the bot needs from the rest of the program, as Protocols. It gets objects, never rooms to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from signoff.approvals.audit import AuditRow
from signoff.approvals.desk import Click
from signoff.approvals.grants import Grant
from signoff.approvals.model import Actor, ApprovalRequest, Batch, JsonObject, Outcome, Pause, Place, Ruling
from signoff.approvals.policy import Rule
from signoff.approvals.rules import ServerRule
from signoff.turns.model import Admission, Turn


class Desk(Protocol):
    """Where every click ends."""

    async def decide(self, click: Click) -> Outcome:
        """Raises a DeskError; a return means that this decision or vote counted."""
        ...

    async def look(self, target: str, actor: Actor, channel: str, card: str | None) -> Batch:
        """The batch as it stands; nothing is decided. Raises UnknownRequest."""
        ...

    async def card_lost(self, card: str, reason: str) -> Batch | None:
        """Cancel what the message showed; None if it showed nothing that was still open."""
        ...

    async def place_lost(self, channel: str, reason: str) -> Sequence[Batch]:
        """Cancel what was still open in a channel or thread that is gone."""
        ...

    async def look_again(self, naming: str = "") -> Sequence[Batch]:
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


@dataclass(frozen=True, slots=True)
class ToolSeen:
    """A tool as the commands show it."""

    name: str
    arguments: tuple[str, ...]
    verdict: str
    """What a call would meet, in words."""


class Orders(Protocol):
    """What admins may order and ask. Everything that changes something checks the actor itself and raises Refused."""

    def tools(self) -> Sequence[ToolSeen]: ...

    def floor(self) -> Sequence[Rule]:
        """The operator's rules."""
        ...

    def mode(self) -> str:
        """Whether people are asked at all: interactive, auto_approve or auto_deny."""
        ...

    async def rules(self, server: str) -> Sequence[ServerRule]: ...

    async def protect(self, rule: Rule, actor: Actor) -> ServerRule: ...

    async def unprotect(self, rule_id: str, actor: Actor) -> ServerRule: ...

    async def test(self, tool: str, args: JsonObject, place: Place, actor: Actor) -> Ruling:
        """What would happen to this call, if the actor asked for it. Raises Refused if it is no valid call."""
        ...

    async def grants(self, actor: Actor) -> Sequence[Grant]:
        """What is remembered in the actor's server; in a direct conversation, what they decided themselves."""
        ...

    async def revoke(self, grant_id: str, actor: Actor) -> Grant: ...

    async def pending(self, server: str) -> Sequence[Batch]: ...

    async def repost(self, batch_id: str, actor: Actor) -> None:
        """Post an open card once more, at the end of its channel."""
        ...

    async def audit(
        self,
        server: str,
        *,
        before: int | None = None,
        limit: int = 10,
        actor: str | None = None,
        tool: str | None = None,
        kind: str | None = None,
        request: str | None = None,
    ) -> Sequence[AuditRow]:
        """Newest first. What concerns the record as a whole belongs to every server."""
        ...

    async def audit_text(self, digest: str) -> str | None:
        """The arguments of a row, masked; None once they are pruned."""
        ...

    async def paused(self, server: str) -> Pause | None: ...

    async def pause(self, actor: Actor) -> int:
        """Stop everything in the actor's server; how many cards were cancelled."""
        ...

    async def resume(self, actor: Actor) -> bool:
        """False if it was not paused."""
        ...

    async def stop(self, actor: Actor, conversation: str | None = None) -> int:
        """End the runs of one conversation, or of the whole server; how many there were."""
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
