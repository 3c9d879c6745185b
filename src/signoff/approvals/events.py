"""The `tool_approval` event: announces every settled request to subscribers, who cannot change the decision."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from signoff.approvals.model import ApprovalRequest, Batch, JsonObject, RequestState
from signoff.approvals.ports import Subscriber

log = logging.getLogger(__name__)

FAILED = "a tool_approval subscriber failed; the decision stands"
Mask = Callable[[JsonObject], JsonObject]


def announce(subscribers: Iterable[Subscriber], batch: Batch, settled: Sequence[ApprovalRequest], mask: Mask) -> None:
    for request in settled:
        event = tool_approval(batch, request, mask)
        for subscriber in subscribers:
            try:
                subscriber(event)
            except Exception:
                log.exception(FAILED)


def aside(subscriber: Subscriber) -> Subscriber:
    """The same subscriber, called in order in a thread of its own, so that no decision waits for it."""
    thread = ThreadPoolExecutor(1, "signoff-listener")

    def tell(event: dict[str, Any]) -> None:
        try:
            subscriber(event)
        except (Exception, SystemExit):
            log.exception(FAILED)

    def later(event: dict[str, Any]) -> None:
        thread.submit(tell, event)

    return later


def tool_approval(batch: Batch, request: ApprovalRequest, mask: Mask) -> dict[str, Any]:
    settlement = request.settlement
    return {
        "event": "tool_approval",
        "tool": request.call.tool,
        "arguments": dict(mask(request.call.args)),
        "approved": request.state is RequestState.APPROVED,
        "state": str(request.state),
        "by": settlement.by.id if settlement and settlement.by else None,
        "how": (masked_note(settlement.note, mask) if settlement else "") or str(request.state),
        "request": request.id,
        "server": batch.place.server,
        "conversation": batch.place.conversation,
    }


def masked_note(note: str, mask: Mask) -> str:
    """A person's note may hold a secret, too."""
    return str(mask({"note": note}).get("note", "")) if note else ""
