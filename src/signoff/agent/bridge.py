"""Between the framework's words and ours: deferred calls become a batch, settlements become what the model is told.

Resuming needs no `DeferredToolResults`: a history that ends in open calls is run again, and the gate answers each call
from the journal and the desk. See docs/decisions/001.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import DeferredToolRequests, RunContext, ToolReturn
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from signoff.approvals.approvers import effective
from signoff.approvals.model import ApprovalRequest, Batch, Choice, RequestKind, RequestState, Terms
from signoff.approvals.policy import Said
from signoff.errors import TurnFailed
from signoff.turns.model import CallRecord, CallState, Turn

if TYPE_CHECKING:
    from signoff.agent.gate import Gate


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
        words=words,
        already_ran=ran,
        remind_at=now + seconds - reminder if reminder < seconds else None,
        ping=any(ruling.ping for ruling in rulings),
    )


def told(request: ApprovalRequest, *, changed: bool = False) -> str:
    """What the model reads in place of a result."""
    if changed:
        return "Not run: the arguments are not those that were approved."
    settlement = request.settlement
    who = settlement.by.name if settlement and settlement.by else "the configuration"
    note = f" Reason: {settlement.note}" if settlement and settlement.note else ""
    if request.kind is RequestKind.MAY_HAVE_RUN:
        if settlement and settlement.choice is Choice.RAN:
            return (
                f"The bot stopped during this call; {who} says that it did run. Its result is lost. Do not repeat it."
            )
        return "The bot stopped during this call: it may have run. Nobody wanted it repeated. Its result is not known."
    match request.state:
        case RequestState.EXPIRED:
            return "Timeout: nobody decided in time, so the call was not run. This was not a person's refusal."
        case RequestState.CANCELLED:
            return f"Cancelled: people could not be asked, so the call was not run.{note}"
        case _:
            if settlement and settlement.by is None:
                return f"Rejected automatically, not by a person: the call was not run.{note}"
            return f"Rejected by user {who}: the call was not run.{note}"


def with_note(result: Any, note: str) -> ToolReturn[Any]:
    """The model's history keeps the arguments that it sent, so the result says that others were used."""
    returned = cast(ToolReturn[Any], result) if isinstance(result, ToolReturn) else ToolReturn(return_value=result)
    return replace(returned, return_value={"note": note, "result": returned.return_value})


def response_of(ctx: RunContext[Any]) -> ModelResponse:
    """The answer of the model whose calls are being run."""
    return next(message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))


def text_of(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()


def said(messages: Sequence[ModelMessage]) -> list[Said]:
    """The conversation as plain utterances, for predicates."""
    found: list[Said] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            if text := text_of(message):
                found.append(Said("assistant", text))
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                found.append(Said("user", part.content if isinstance(part.content, str) else str(part.content)))
            elif isinstance(part, ToolReturnPart):
                found.append(Said("tool", part.model_response_str()))
    return found


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
