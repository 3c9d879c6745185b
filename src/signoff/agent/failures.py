"""One line for the asker when a run fails: what happened, what was kept, what to do next. Says what to try again.

Everybody in the channel sees it, so a provider's error text stays in the log: it may hold keys or pages of markup.
"""

from __future__ import annotations

import logging

from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)

from signoff.approvals.containment import described

log = logging.getLogger(__name__)

RETRY_DELAYS = (2.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before each further attempt if the model's provider fails for a moment and does not say how long to wait."""
LONGEST_DELAY = 60.0
"""The most seconds that a provider may make us wait. If it wants more, the run fails and the asker is told."""
_PASSING = (ModelRateLimitError, ModelUnavailableError, ModelServerError, ModelConnectionError)


def retry_delay(error: Exception, attempt: int) -> float | None:
    """Return the seconds after which the same model request may succeed; None if it would fail again.

    `attempt` counts the failures so far, from 0.
    """
    if isinstance(error, FallbackExceptionGroup):
        delays = [retry_delay(one, attempt) for one in error.exceptions]
        return min((delay for delay in delays if delay is not None), default=None)
    if not isinstance(error, _PASSING) or isinstance(error, ModelQuotaExceededError):
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_DELAY else None
    return RETRY_DELAYS[min(attempt, len(RETRY_DELAYS) - 1)]


def is_too_long(error: BaseException) -> bool:
    """Whether a shorter conversation may help. One of several models is enough."""
    if isinstance(error, FallbackExceptionGroup):
        return any(map(is_too_long, error.exceptions))
    return isinstance(error, ModelContextWindowExceededError)


def explain(error: Exception, *, model_requests: int) -> str:
    log.warning("a run failed: %s", described(error), exc_info=error)
    match error:
        case UsageLimitExceeded():
            return (
                f"I stopped: the model kept going for {model_requests} requests without an answer. "
                "Everything done so far is kept; ask again with a smaller task."
            )
        case _ if is_too_long(error) and retry_delay(error, 0) is None:
            return (
                "This conversation is too long for the model. Nothing further was run. "
                "Start a new thread, and say there what is needed from this one."
            )
        case ModelHTTPError(status_code=401 | 403 as status):
            return (
                f"The model could not answer: its provider refused our key (status {status}). "
                "Nothing further was run. Please tell the operator."
            )
        case ModelHTTPError(status_code=status):
            return (
                f"The model could not answer: its provider failed (status {status}). "
                "Nothing further was run. Ask again in a while."
            )
        case ModelAPIError():
            return (
                "The model could not answer: its provider was not reached or broke off. "
                "Nothing further was run. Ask again in a while."
            )
        case FallbackExceptionGroup():
            return (
                f"None of the {len(error.exceptions)} models could answer: their providers failed. "
                "Nothing further was run. Ask again in a while."
            )
        case UnexpectedModelBehavior():
            what = _first_sentence(error.message)
            kept = "Nothing further was run; look at what was done before you ask again."
            return f"The model answered with something I cannot act on: {what}. {kept}"
        case UserError():
            what = _first_sentence(str(error))
            return f"This cannot be run as configured: {what}. Nothing further was run. Please tell the operator."
        case _:
            kind = type(error).__name__
            return f"Something failed on my side ({kind}). Nothing was approved by it. Please tell the operator."


def _first_sentence(text: str) -> str:
    """Return the first sentence of the framework's error text, without links and details."""
    line = text.strip().splitlines()[0] if text.strip() else "no details"
    return line.split(". ")[0].split(" https://")[0].rstrip(".:")[:200]
