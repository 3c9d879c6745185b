"""Between the framework's words and ours: deferred calls become a batch, settlements become what the model is told.

Resuming needs no `DeferredToolResults`: a history that ends in open calls is run again, and the gate answers each call
from the journal and the desk. See docs/decisions/001.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)

from signoff.approvals.approvers import effective
from signoff.approvals.model import ApprovalRequest, Batch, Terms
from signoff.errors import TurnFailed
from signoff.turns.model import CallRecord, CallState, Turn

if TYPE_CHECKING:
    from signoff.gate.gate import Gate


def build_batch(
    requests: DeferredToolRequests,
    gate: Gate,
    turn: Turn,
    words: str,
    *,
    now: float,
    terms: Terms,
) -> Batch:
    """One batch with a request for every deferred call, in the order in which the model made them."""
    drafts = [gate.drafts.get(call.tool_call_id) for call in requests.approvals]
    if requests.calls or None in drafts:
        raise TurnFailed("A tool call was deferred past the gate. Nothing further was run. Please tell the operator.")
    rulings = [terms.fill(draft.ruling) for draft in drafts if draft]
    asked = tuple(
        ApprovalRequest(
            id=secrets.token_hex(8),
            call=draft.call,
            why=ruling.reason,
            approvers=effective(ruling.approvers or (), turn.place),
            kind=draft.kind,
            metadata=draft.metadata,
            quorum=ruling.quorum,
            four_eyes=ruling.four_eyes,
            message=ruling.message,
            preview=draft.preview,
            edit=draft.edit and replace(draft.edit, voided=()),
            held=ruling.held,
            by_server=ruling.by_server,
        )
        for draft, ruling in zip(filter(None, drafts), rulings, strict=True)
    )
    # The strictest timeout of the calls that ask holds for the card: it has one deadline.
    asking = [ruling for ruling in rulings if not ruling.held] or rulings
    seconds = min(ruling.timeout for ruling in asking if ruling.timeout)
    reminder = max((ruling.reminder for ruling in asking if ruling.reminder), default=seconds)
    position = asked[0].call.key.position
    ran = tuple(tool for key, tool in gate.ran.items() if key.position == position)
    return Batch(
        id=secrets.token_hex(8),
        turn=turn.id,
        place=turn.place,
        asker=turn.asker,
        requests=asked,
        opened=now,
        deadline=now + seconds,
        model_text=words,
        already_ran=ran,
        remind_at=now + seconds - reminder if reminder < seconds else None,
        ping=any(ruling.ping for ruling in asking),
    )


def close_open_calls(
    messages: Sequence[ModelMessage], words: str, record: Callable[[str], CallRecord | None]
) -> ModelRequest | None:
    """Answers for calls that will never be answered otherwise, so that the conversation can go on."""
    parts = [_closing(call, words, record(call.tool_call_id)) for call in open_calls(messages)]
    return ModelRequest(parts=parts) if parts else None


def open_calls(messages: Sequence[ModelMessage]) -> Sequence[ToolCallPart]:
    last = messages[-1] if messages else None
    return last.tool_calls if isinstance(last, ModelResponse) else ()


def _closing(call: ToolCallPart, words: str, record: CallRecord | None) -> ToolReturnPart:
    content = words
    if record and record.state is CallState.STARTED:
        content = "The turn ended with an error during this call: it may have run."
    elif record:
        content = f"The turn ended with an error; before that the call was {record.state}: {record.words}"
    return ToolReturnPart(call.tool_name, content, call.tool_call_id, outcome="failed")
