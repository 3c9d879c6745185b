"""The `tool_approval` event: announces every settled request to subscribers, who cannot change the decision."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from signoff.approvals.model import ApprovalRequest, Batch, JsonObject, Place, RequestState
from signoff.approvals.ports import Subscriber

log = logging.getLogger(__name__)

FAILED = "a tool_approval subscriber failed; the decision stands"
Mask = Callable[[JsonObject], JsonObject]


def announce(subscribers: Iterable[Subscriber], batch: Batch, settled: Sequence[ApprovalRequest], mask: Mask) -> None:
    for request in settled:
        waited = request.settlement.at - batch.opened if request.settlement else None
        event = tool_approval(batch.place, request, mask) | {"turn": batch.turn, "waited": waited}
        for subscriber in subscribers:
            try:
                subscriber(event)
            except Exception:
                log.exception(FAILED)


def aside(subscriber: Subscriber) -> Subscriber:
    """Wrap a subscriber so that it gets its events in order in its own thread, and no decision waits for it."""
    thread = ThreadPoolExecutor(1, "signoff-listener")

    def tell(event: dict[str, Any]) -> None:
        try:
            subscriber(event)
        except (Exception, SystemExit):
            log.exception(FAILED)

    def later(event: dict[str, Any]) -> None:
        thread.submit(tell, event)

    return later


def tool_approval(
    place: Place, request: ApprovalRequest, mask: Mask = lambda args: args, *, how: str = "", note: str | None = None
) -> dict[str, Any]:
    """Return the event about one settled request, which is the same for bot, terminal and library.

    `arguments` are the model's; `override_args` are those that a person replaced them with, or None. `answer` is the
    answer to an inquiry, or None. `choice` is what was chosen, if anything was. `how` is one word, see `_how`.
    """
    end, edit = request.settlement, request.edit
    note = note if note is not None else end.note if end else ""
    return {
        "event": "tool_approval",
        "tool": request.call.tool,
        "arguments": dict(mask(edit.original if edit else request.call.args)),
        "override_args": dict(mask(request.call.args)) if edit else None,
        "approved": request.state is RequestState.APPROVED,
        "state": str(request.state),
        "choice": str(end.choice) if end and end.choice else None,
        "by": end.by.id if end and end.by else None,
        "how": how or _how(request),
        "note": masked_note(note, mask),
        "answer": masked_answer(request, mask),
        "request": request.id,
        "server": place.server,
        "conversation": place.conversation,
    }


def _how(request: ApprovalRequest) -> str:
    """`ui`: a person; `memory`: a grant; `mode`, `no_approver`, `held`; else the state: `expired` or `cancelled`."""
    end = request.settlement
    if end is None or end.choice is None:
        return str(request.state)
    if end.by:
        return "ui"
    if request.held:
        return "held"
    beginnings = {"mode ": "mode", "remembered": "memory", "nobody": "no_approver"}
    return next((word for start, word in beginnings.items() if end.note.startswith(start)), str(request.state))


def masked_answer(request: ApprovalRequest, mask: Mask) -> dict[str, Any] | None:
    """Return the answer to an inquiry as people may see it; None if there is none."""
    end = request.settlement
    if request.inquiry is None or end is None or end.answer is None:
        return None
    return request.inquiry.masked(end.answer, mask)


def masked_note(note: str, mask: Mask) -> str:
    """Mask a person's note, which may hold a secret too."""
    return str(mask({"note": note}).get("note", "")) if note else ""
