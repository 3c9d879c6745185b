"""What the desk needs from the outside: a store with transactions, and a clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from signoff.approvals.model import ApprovalRequest, Batch, CallKey, JsonObject

T = TypeVar("T")


class DeskTx(Protocol):
    """One transaction on the desk's rows. Runs on the store's writer thread: no awaiting, no other I/O."""

    def batch(self, batch_id: str) -> Batch | None: ...

    def batch_of_request(self, request_id: str) -> Batch | None: ...

    def batch_of_card(self, card: str) -> Batch | None: ...

    def open_in(self, channel: str) -> Sequence[Batch]:
        """Batches with a pending request whose card belongs into this channel or thread."""
        ...

    def insert_batch(self, batch: Batch) -> None:
        """Write the batch and its requests. A batch that is there already is left as it is."""
        ...

    def settle(self, request: ApprovalRequest) -> bool:
        """Write state and settlement if the row is still pending; False if it was not."""
        ...

    def set_card(self, batch_id: str, card: str) -> None: ...

    def set_card_final(self, batch_id: str) -> None: ...

    def due(self, now: float) -> Sequence[Batch]:
        """Batches with a pending request whose deadline is at or before `now`."""
        ...

    def next_deadline(self) -> float | None:
        """The earliest deadline of a batch with a pending request."""
        ...

    def request_for(self, key: CallKey) -> ApprovalRequest | None:
        """The newest request about this call."""
        ...

    def audit(self, kind: str, server: str, subject: str, actor: str, data: JsonObject, at: float) -> None: ...


class RequestStore(Protocol):
    """Runs functions, each in one transaction that is durable when the await returns."""

    async def run(self, work: Callable[[DeskTx], T]) -> T: ...


class Clock(Protocol):
    def now(self) -> float: ...


class Subscriber(Protocol):
    """Receives every settled request as a `tool_approval` event; it cannot change anything."""

    def __call__(self, event: dict[str, Any]) -> None: ...
