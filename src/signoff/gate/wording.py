"""Everything that the model reads in place of a tool's result, and why a call is on a card."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ToolReturn

from signoff.approvals.model import ApprovalRequest, Choice, RequestKind, RequestState

INTERRUPTED = "the bot was stopped while this call was running"
HELD = "it waits with the other calls of the same answer"
ASKED = "the tool itself asks, for these arguments"
NOT_AVAILABLE = "This tool is not available here: it would have to be executed elsewhere."
CUT_OFF = "An earlier attempt at this call was cut off and may have run. This time:"
CHANGED = "what it would change is no longer as it was when it was approved"


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
