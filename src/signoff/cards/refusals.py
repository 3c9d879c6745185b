"""What to tell a person whose decision or edit did not count: one answer for each error of the desk.

Shared by every front end, so that none has words of its own for the same thing. Knows errors and batches, and nothing
of any medium. An error that is not the desk's has no words here: the front end logs it and says so.
"""

from __future__ import annotations

from signoff.approvals.errors import AlreadySettled, AlreadyVoted, NotAllowed, Outdated, Refused, UnknownRequest
from signoff.cards import wording
from signoff.cards.model import Line
from signoff.text.visible import visible


def explain_refusal(error: Exception, target: str, room: int | None = None) -> Line | None:
    """The words for this error, or None. `target` is what was decided; `room` bounds a text that is not only ours."""
    match error:
        case AlreadySettled():
            return wording.already_settled(error.batch, target)
        case AlreadyVoted():
            return wording.already_voted(error.batch, target)
        case Outdated():
            return wording.OUTDATED
        case NotAllowed():
            return wording.not_allowed(error.batch, target, error.why)
        case Refused():
            # It may repeat what a tool said about somebody's arguments.
            return (visible(str(error)).text[:room],)
        case UnknownRequest():
            return wording.UNKNOWN_REQUEST
        case _:
            return None
