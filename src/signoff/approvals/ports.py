"""The interfaces that approvals need: a store with transactions, a clock, a directory of people, and a reviser."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from signoff.approvals.audit import AuditRow
from signoff.approvals.grants import Grant
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Batch,
    CallKey,
    CardCopy,
    JsonObject,
    Pause,
    Ruling,
    ToolCall,
)
from signoff.approvals.server_rules import ServerRule
from signoff.dataclass import dataclass

T = TypeVar("T")


class DeskTx(Protocol):
    """One transaction on the desk's rows. Runs on the store's writer thread: no awaiting, no other I/O."""

    def batch(self, batch_id: str) -> Batch | None: ...

    def is_settled(self, batch_id: str) -> bool:
        """Whether no request of the batch is pending any more, without reading it."""
        ...

    def batch_about(self, target: str) -> Batch | None:
        """Return the batch with this id, or the one that has the request with this id."""
        ...

    def batch_of_card(self, card: str) -> Batch | None: ...

    def open_in(self, channel: str) -> Sequence[Batch]:
        """Batches with a pending request in this channel or thread."""
        ...

    def insert_batch(self, batch: Batch) -> None:
        """Write the batch and its requests, unless the batch is already stored."""
        ...

    def open_of(self, server: str) -> Sequence[Batch]:
        """Batches of this server with a pending request, oldest first."""
        ...

    def open_approvers(self) -> Mapping[str, Collection[str]]:
        """Server -> approver specifications of its pending requests, each once."""
        ...

    def settle(self, request: ApprovalRequest) -> bool:
        """Write state, settlement and votes if the row is still pending; False if it was not."""
        ...

    def rewrite(self, request: ApprovalRequest) -> bool:
        """Write votes, edit, call and terms of a request that is still pending; False if it was not."""
        ...

    def set_revision(self, batch_id: str, revision: int) -> None: ...

    def set_card(self, batch_id: str, card: str) -> None: ...

    def set_card_final(self, batch_id: str) -> None: ...

    def due(self, now: float) -> Sequence[Batch]:
        """Batches with a pending request whose deadline is at or before `now`."""
        ...

    def next_deadline(self) -> float | None:
        """The earliest deadline, reminder or escalation of a batch with a pending request."""
        ...

    def escalations_due(self, now: float) -> Sequence[Batch]:
        """Batches with a pending request whose time of escalation is at or before `now`."""
        ...

    def set_untold(self, batch_id: str, untold: bool) -> None:
        """Note whether approvers still have to be told about this card."""
        ...

    def add_copy(self, batch_id: str, copy: CardCopy) -> None:
        """Note the copy of a card in a channel, in place of an earlier one there. The card is no longer final."""
        ...

    def copies_of(self, batch_id: str) -> Sequence[CardCopy]: ...

    def drop_copies(self, channel: str, message: str = "") -> Sequence[Batch]:
        """Forget the copies in this channel, or only this message. Returns the batches that had one."""
        ...

    def inquiring(self) -> Sequence[Batch]:
        """Batches with a pending request that needs an answer."""
        ...

    def take_reminders(self, now: float) -> Sequence[Batch]:
        """Batches with a pending request whose reminder is due. Each is returned only once."""
        ...

    def decision_for(self, key: CallKey, turn_id: str) -> ApprovalRequest | None:
        """Return the newest request about this call if it is of this turn. An older turn's approval does not count."""
        ...

    def insert_grant(self, grant: Grant) -> None: ...

    def grants_under(self, keys: Sequence[str]) -> Sequence[Grant]: ...

    def grants_naming(self, server: str, tool: str) -> Sequence[Grant]:
        """The grants for this tool that leave some arguments free and were not revoked, newest first."""
        ...

    def grants_of(self, server: str) -> Sequence[Grant]:
        """The grants of this server that were not revoked, newest first."""
        ...

    def use_grant(self, grant_id: str) -> None:
        """Subtract one from the uses left."""
        ...

    def revoke_grant(self, grant_id: str, server: str, at: float) -> Grant | None:
        """Revoke a grant and return it; None if this server has no such unrevoked grant."""
        ...

    def rules_of(self, server: str) -> Sequence[ServerRule]:
        """The rules of this server, oldest first."""
        ...

    def insert_rule(self, rule: ServerRule) -> None: ...

    def drop_rule(self, rule_id: str, server: str) -> ServerRule | None: ...

    def pause_of(self, server: str) -> Pause | None: ...

    def set_pause(self, pause: Pause) -> None: ...

    def clear_pause(self, server: str) -> bool: ...

    def audit(
        self,
        kind: str,
        server: str,
        subject: str,
        actor: str,
        data: JsonObject,
        at: float,
        *,
        tool: str = "",
        text: str = "",
    ) -> None:
        """Add a row to the record. Put masked arguments into `text`, which retention may prune, never into `data`."""
        ...

    def audit_page(
        self,
        server: str,
        *,
        before: int | None = None,
        limit: int = 50,
        actor: str | None = None,
        tool: str | None = None,
        kind: str | None = None,
        subject: str | None = None,
    ) -> Sequence[AuditRow]:
        """Rows of a server, newest first. `before`: the last row number of the previous page."""
        ...

    def audit_text(self, digest: str) -> str | None:
        """The text with this digest; None if it was pruned."""
        ...

    def prune_files(self, before: float) -> int:
        """Remove the files that came with mentions before this time, except those of turns that have not ended."""
        ...

    def prune_texts(self, before: float, *, at: float | None = None) -> int:
        """Remove the texts that only rows older than `before` refer to, and record that. Returns their number."""
        ...


class RequestStore(Protocol):
    """Runs each function in one transaction, which is durable when `run` returns."""

    async def run(self, work: Callable[[DeskTx], T]) -> T: ...


class Directory(Protocol):
    """Looks up people and roles as they are now. If a lookup fails, it raises, and nothing is decided."""

    async def person(self, server: str, user: str) -> Actor | None:
        """Return the person; None if they are not in the server."""
        ...

    async def missing(self, server: str, named: Sequence[str]) -> Sequence[str]:
        """Return those of these roles and people that are missing: deleted roles, and people who left."""
        ...


@dataclass(frozen=True, slots=True)
class Revised:
    """A call with new arguments, validated by its tool and judged by the policy."""

    call: ToolCall
    ruling: Ruling
    preview: str = ""
    diff_of: str = ""
    """The argument that the preview shows as a diff; empty if none."""


class Reviser(Protocol):
    async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
        """Validate new arguments of a call and judge them. Raises Refused with a text for the editor."""
        ...


class Clock(Protocol):
    def now(self) -> float: ...


class Subscriber(Protocol):
    """Receives every settled request as a `tool_approval` event; it cannot change anything."""

    def __call__(self, event: dict[str, Any], /) -> None: ...
