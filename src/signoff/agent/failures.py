"""One line for the asker when a run fails: what happened, what was kept, what to do next.

Everybody in the channel sees it, so a provider's error text stays in the log: it may hold keys or pages of markup.
"""

from __future__ import annotations

import logging

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UsageLimitExceeded, UserError

from signoff.approvals.containment import described

log = logging.getLogger(__name__)


def explain(error: Exception, *, model_requests: int) -> str:
    log.warning("a run failed: %s", described(error), exc_info=error)
    match error:
        case UsageLimitExceeded():
            return (
                f"I stopped: the model kept going for {model_requests} requests without an answer. "
                "Everything done so far is kept; ask again with a smaller task."
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
