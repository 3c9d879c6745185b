"""Remembered decisions: exactly one call, in one place, for a while and so many times. Pure.

A grant is found by its key alone. The key holds everything that the card showed: the server, the conversation unless it
was remembered for always, the tool with its schema, the arguments, and who had to decide. Whatever differs has another
key and asks again.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from signoff.approvals.digest import canonical, fingerprint
from signoff.approvals.model import Actor, ApprovalRequest, Batch, Choice, Place, Remember, RequestKind, ToolCall

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """What the operator permits."""

    widest: Remember = Remember.SESSION
    seconds: float = 30 * DAY
    uses: int = 50


@dataclass(frozen=True, slots=True)
class Grant:
    id: str
    key: str
    server: str
    conversation: str
    """Empty: every conversation of the server."""
    tool: str
    args: str
    """Canonical JSON, for people who list grants; the key is what counts."""
    choice: Choice
    """Accept or reject."""
    by: Actor
    at: float
    expires: float
    uses_left: int
    revoked: float | None = None

    def stands(self, now: float) -> bool:
        return self.revoked is None and self.uses_left > 0 and now < self.expires


def scopes(request: ApprovalRequest, place: Place) -> list[str]:
    """The keys under which a grant for this request may be found, the narrowest first."""
    return list(dict.fromkeys(_key(request, place, scope) for scope in (Remember.SESSION, Remember.ALWAYS)))


def grant(
    request: ApprovalRequest, batch: Batch, scope: Remember, by: Actor, choice: Choice, now: float, terms: GrantTerms
) -> Grant:
    return Grant(
        id=secrets.token_hex(4),
        key=_key(request, batch.place, scope),
        server=batch.place.server,
        conversation=_conversation(batch.place, scope),
        tool=request.call.tool,
        args=canonical(request.call.args),
        choice=choice,
        by=by,
        at=now,
        expires=now + terms.seconds,
        uses_left=terms.uses,
    )


def may_be_remembered(request: ApprovalRequest) -> bool:
    """Not what may have run, nor what is only held, nor what touches something whose state the card showed."""
    return request.kind is RequestKind.CALL and not request.held and not request.call.operands


def _conversation(place: Place, scope: Remember) -> str:
    # All direct conversations share one "server", so there "always" still means this conversation.
    return "" if scope is Remember.ALWAYS and not place.is_direct else place.conversation


def _key(request: ApprovalRequest, place: Place, scope: Remember) -> str:
    call: ToolCall = request.call
    return fingerprint(
        {
            "server": place.server,
            "conversation": _conversation(place, scope),
            "tool": call.tool,
            "schema": call.schema,
            "args": call.args,
            "approvers": sorted(request.approvers),
            "quorum": request.quorum,
            "four_eyes": request.four_eyes,
        }
    )
