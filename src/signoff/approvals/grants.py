"""Remembered decisions. Each covers exactly one call in one place, for a limited time and number of uses. Pure.

A grant is found by its key alone. The key covers everything that the card showed: the server, the conversation (unless
the decision is remembered "always"), the tool with its schema, the arguments, the tool's metadata and preview, and who
must approve. A call that differs in any of these has another key and asks again.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from signoff.approvals.approvers import ASKER, parts
from signoff.approvals.digest import canonical, fingerprint
from signoff.approvals.model import (
    DIRECT,
    Actor,
    ApprovalRequest,
    Batch,
    Choice,
    Place,
    Remember,
    RequestKind,
    ToolCall,
)

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """How far, how long and how often the operator lets decisions be remembered."""

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
    """Canonical JSON, for people who list grants. Only the key is compared."""
    choice: Choice
    """Accept or reject."""
    by: Actor
    at: float
    expires: float
    uses_left: int
    revoked: float | None = None

    def stands(self, now: float) -> bool:
        return self.revoked is None and self.uses_left > 0 and now < self.expires

    def concerns(self, actor: Actor) -> bool:
        """Whether this person may see the grant: it belongs to their server or, in direct messages, to them."""
        return self.server == actor.server and (self.server != DIRECT or self.by.id == actor.id)


def scopes(request: ApprovalRequest, batch: Batch, widest: Remember) -> list[str]:
    """Return the keys that a grant for this request may have, narrowest first, no wider than permitted now."""
    permitted = [scope for scope in (Remember.SESSION, Remember.ALWAYS) if scope.reach <= widest.reach]
    return list(dict.fromkeys(_key(request, batch, scope) for scope in permitted))


def grant(
    request: ApprovalRequest, batch: Batch, scope: Remember, by: Actor, choice: Choice, now: float, terms: GrantTerms
) -> Grant:
    return Grant(
        id=secrets.token_hex(4),
        key=_key(request, batch, scope),
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
    """False for calls that may have run, for held calls, and for calls whose card showed the state of an operand."""
    return request.kind is RequestKind.CALL and not request.held and not request.call.operands


def _conversation(place: Place, scope: Remember) -> str:
    # All direct conversations share one "server", so there "always" still means this conversation.
    return "" if scope is Remember.ALWAYS and not place.is_direct else place.conversation


def _key(request: ApprovalRequest, batch: Batch, scope: Remember) -> str:
    call: ToolCall = request.call
    return fingerprint(
        {
            "server": batch.place.server,
            "conversation": _conversation(batch.place, scope),
            "tool": call.tool,
            "schema": call.schema,
            "args": call.args,
            "shown": [request.preview, request.metadata],
            "approvers": sorted(request.approvers),
            "quorum": request.quorum,
            "four_eyes": request.four_eyes,
            "asker": batch.asker.id if depends_on_asker(request) else "",
        }
    )


def depends_on_asker(request: ApprovalRequest) -> bool:
    """Whether the approvers depend on the asker. Then a grant holds only for the same asker."""
    return request.four_eyes or any(ASKER in parts(spec) for spec in request.approvers)
