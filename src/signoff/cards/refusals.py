"""What to tell a person whose decision or edit did not count: one answer for each error of the desk.

Shared by every front end, so that none has words of its own for the same thing. Knows errors and batches, and nothing
of any medium. An error that is not the desk's has no words here: the front end logs it and says so.
"""

from __future__ import annotations

from signoff.cards import words
from signoff.cards.model import Line
from signoff.cards.visible import visible
from signoff.errors import AlreadySettled, AlreadyVoted, NotAllowed, Outdated, Refused, UnknownRequest


def explain_refusal(error: Exception, target: str, room: int | None = None) -> Line | None:
    """The words for this error, or None. `target` is what was decided; `room` bounds a text that is not only ours."""
    match error:
        case AlreadySettled():
            return words.already_settled(error.batch, target)
        case AlreadyVoted():
            return words.already_voted(error.batch, target)
        case Outdated():
            return words.OUTDATED
        case NotAllowed():
            return words.not_allowed(error.batch, target, error.why)
        case Refused():
            # It may repeat what a tool said about somebody's arguments.
            return (visible(str(error)).text[:room],)
        case UnknownRequest():
            return words.UNKNOWN_REQUEST
        case _:
            return None
