"""Text that the model reads in place of a tool's result, and reasons why a call is on a card."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ToolReturn
from pydantic_ai.exceptions import ToolFailed

from signoff.approvals.containment import described
from signoff.approvals.model import ApprovalRequest, Choice, RequestKind, RequestState, Ruling

INTERRUPTED = "the bot was stopped while this call was running"
IDEMPOTENT = "; its tool is marked idempotent, so running it again has no further effect"
HELD = "it waits with the other calls of the same response"
ASKED = "the tool itself asks, for these arguments"
INQUIRES = "the tool needs an answer from a person"
SERVER_INQUIRES = "its MCP server asks this while the call is running"
CHANGED = "what it would change is no longer as it was when it was approved"

NOT_AVAILABLE = "This tool is not available here: it would have to be executed elsewhere."
CUT_OFF = "An earlier attempt at this call was cut off and may have run. This time:"
OTHER_ARGUMENTS = "Not run: the arguments are not those that were approved."
ASKS_AGAIN = "Not run: the tool asks again although it was approved."
OUT_OF_DATE = "Not run: the tool no longer takes the arguments that were approved."
PAST_THE_GATE = "Not run: the call was deferred past the gate."
SAME_ID = "Nothing was run: several calls of one response have the same id."
ORDER = "the calls before it"
OTHER_PROMPT = (
    "The tool failed: after a decision it ran its agent with another prompt than before, so the decision could not be "
    "used. A tool that runs an agent has to give it the same prompt when it is run again."
)
OTHER_CALLS = (
    "Not run: when the code was run again after a decision, it made another call here than before. Decisions can be "
    "used only if the code makes the same calls each time."
)
LEFT_RUNNING = "Not run: the call needs approval, and the tool that started this agent has already ended."
BESIDE = (
    "Not run: the call needs approval, and this agent was not run by a tool but by an output function, a check or a "
    "preview, where nobody can be asked."
)
CALL_AGAIN = (
    "Not run: nothing else of its response was approved. It needs no approval by itself, so you may call it again."
)


def interrupted(*, idempotent: bool) -> str:
    return INTERRUPTED + (IDEMPOTENT if idempotent else "")


def too_many(calls: int, allowed: int) -> str:
    return f"Nothing was run: {calls} calls in one response, {allowed} are allowed."


def denied(ruling: Ruling) -> str:
    return f"Not allowed: {ruling.reason}. The call was not run."


def denied_midway(ruling: Ruling) -> str:
    return f"Not allowed any more: {ruling.reason}. The call was ended while it was running, so it may have run."


def unshowable(call: str, error: Exception) -> ToolFailed:
    return ToolFailed(f"Nothing was run: the arguments of {call} cannot be shown to a person ({error}).")


def unaskable(error: Exception) -> str:
    return f"Nobody was asked, because the questions do not fit into a form: {error}. Ask fewer or shorter questions."


def edited(request: ApprovalRequest) -> str:
    who = (request.edit.by.name if request.edit else "") or "The user"
    return f"{who} changed the arguments of this call before it ran"


def told(request: ApprovalRequest) -> str:
    """Return the result that the model reads for a call that was not approved."""
    settlement = request.settlement
    by = settlement.by if settlement else None
    who = by.name if by else "the configuration"
    note = f" Reason: {settlement.note}" if settlement and settlement.note else ""
    if request.kind is RequestKind.MAY_HAVE_RUN:
        if settlement and settlement.choice is Choice.RAN:
            return f"The bot stopped during this call; {who} says that it ran. Its result is lost. Do not repeat it."
        return "The bot stopped during this call: it may have run. Nobody wanted it repeated. Its result is not known."
    if request.kind is RequestKind.ANSWER:
        return _unanswered(request, who, note)
    if request.held and by is None:
        return CALL_AGAIN
    if request.state is RequestState.EXPIRED:
        return "Timeout: nobody decided in time, so the call was not run. This was not a person's refusal."
    if request.state is RequestState.CANCELLED:
        return f"Cancelled: people could not be asked, so the call was not run.{note}"
    if by is None:
        return f"Rejected automatically, not by a person: the call was not run.{note}"
    return f"Rejected by user{f' {who}' if who else ''}: the call was not run.{note}"


def _unanswered(request: ApprovalRequest, who: str, note: str) -> str:
    by = request.settlement.by if request.settlement else None
    if request.state is RequestState.EXPIRED:
        return "Timeout: nobody answered in time. Go on without the answer: choose something sensible and say so."
    if request.state is RequestState.CANCELLED:
        return f"Cancelled: people could not be asked, so there is no answer.{note}"
    if by is None:
        return f"Declined automatically, not by a person: there is no answer.{note}"
    stop = "" if not note or note.endswith((".", "!", "?")) else "."
    return f"{who or 'The user'} declined to answer.{note}{stop} Go on without the answer, or ask for something else."


def failed(error: BaseException) -> str:
    return f"The tool failed: {described(error)}"


class Noted(dict[str, Any]):
    """A tool's result under `result`, with our note for the model under `note`."""


def with_note(result: Any, note: str) -> ToolReturn[Any]:
    """Add a note to a result: the model's history keeps the arguments that it sent, although others were used."""
    returned = cast(ToolReturn[Any], result) if isinstance(result, ToolReturn) else ToolReturn(return_value=result)
    return replace(returned, return_value=Noted(note=note, result=returned.return_value))
