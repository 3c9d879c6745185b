"""Calls of MCP servers whose connection was lost: nobody knows whether they ran.

A server that refuses a call answers, and the call is known not to have run. If the server dies, is killed or falls
silent after it got the call, the client makes up an error of its own. This module tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, UserError

from signoff.approvals.containment import described

OUR_CODES = {-32000, -32001, 408}
"""The codes of errors that the client makes itself: connection closed, and timeouts of several versions."""
NOT_SENT = ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")
"""Errors of the HTTP client that come before anything was sent."""


FIND_OUT = "Do not repeat it before you have found out."
MAY_REPEAT = "Its tool is marked idempotent, so you may call it again with the same arguments."


class CallLost(ToolFailed):
    """The call may have run. It is not repeated, since ToolFailed does not make the model try again by itself."""


def lost(name: str, error: Exception, *, idempotent: bool = False) -> CallLost | None:
    """Return the failure for a call that may have run; None if the server has answered, or never got the call."""
    if not is_lost(error):
        return None
    what = error.message if isinstance(error, ModelRetry | ToolFailed) else described(error)
    return CallLost(
        f"The connection to the MCP server was lost during {name} ({what}): the call may have run, and its result is "
        f"not known. {MAY_REPEAT if idempotent else FIND_OUT}"
    )


def is_lost(error: Exception) -> bool:
    if isinstance(error, ApprovalRequired | CallDeferred | UserError | CallLost):
        return False
    if isinstance(error, ModelRetry | ToolFailed):
        return any(_code(cause) in OUR_CODES for cause in _leaves(error.__cause__))
    if isinstance(error, RuntimeError) and "not connected" in str(error):
        return False
    return not any(type(leaf).__name__ in NOT_SENT for leaf in _leaves(error))


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            yield from _leaves(inner)  # pyright: ignore[reportUnknownArgumentType]
    elif error is not None:
        yield error


def _code(error: BaseException) -> object:
    return getattr(getattr(error, "error", None), "code", None)
