"""Remembered decisions. Each covers one call or named arguments, for a limited time and number of uses. Pure.

A grant is found by its key alone. The key covers everything that the card showed: the server, the conversation (unless
the decision is remembered "always"), the tool with its schema, the arguments, the tool's metadata and preview, and who
must approve. A call that differs in any of these has another key and asks again.

A grant with named arguments leaves the others free, so its key covers only the named ones, and not the metadata and
the preview, which depend on all arguments. Everything else must be the same there, too.
"""

from __future__ import annotations

import secrets

from signoff.approvals.approvers import ASKER, parts
from signoff.approvals.coverage import EXACT, Coverage
from signoff.approvals.digest import canonical, fingerprint
from signoff.approvals.model import (
    DIRECT,
    Actor,
    ApprovalRequest,
    Batch,
    Choice,
    GrantNote,
    JsonObject,
    Place,
    Remember,
    RequestKind,
    ToolCall,
)
from signoff.dataclass import dataclass

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
    """JSON in the tool's own order, for people who list grants. Only the key is compared."""
    choice: Choice
    """Accept or reject."""
    by: Actor
    at: float
    expires: float
    uses_left: int
    revoked: float | None = None
    named: tuple[str, ...] | None = None
    """The arguments that must be the same, if the others are free. None: exactly one call."""

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
    request: ApprovalRequest,
    batch: Batch,
    scope: Remember,
    by: Actor,
    choice: Choice,
    now: float,
    terms: GrantTerms,
    coverage: Coverage = EXACT,
) -> Grant:
    return Grant(
        id=secrets.token_hex(4),
        key=_key(request, batch, scope, coverage),
        server=batch.place.server,
        conversation=_conversation(batch.place, scope),
        tool=request.call.tool,
        args=_listed(request, coverage),
        choice=choice,
        by=by,
        at=now,
        expires=now + lifetime(coverage, terms),
        uses_left=terms.uses,
        named=coverage.named,
    )


def note_of(one: Grant) -> GrantNote:
    return GrantNote(one.id, one.by, one.expires, bool(one.conversation), one.named)


def _listed(request: ApprovalRequest, coverage: Coverage) -> str:
    covered = coverage.covered(request.call.args)
    names = request.description.ordered(covered)
    return f"{{{','.join(f'{canonical(name)}:{canonical(covered[name])}' for name in names)}}}"


def lifetime(coverage: Coverage, terms: GrantTerms) -> float:
    """Return for how many seconds a grant holds: as chosen, but never longer than the operator permits."""
    return terms.seconds if coverage.seconds is None else min(coverage.seconds, terms.seconds)


def covers(one: Grant, request: ApprovalRequest, batch: Batch, widest: Remember) -> bool:
    """Whether a grant with named arguments is about this call, in this place, and no wider than permitted now."""
    if one.named is None or widest is not Remember.ALWAYS or not all(name in request.call.args for name in one.named):
        return False
    scope = Remember.SESSION if one.conversation else Remember.ALWAYS
    return one.key == _key(request, batch, scope, Coverage(one.named))


def may_be_remembered(request: ApprovalRequest) -> bool:
    """False for calls that may have run, for held calls, and for calls whose card showed the state of an operand."""
    return request.kind is RequestKind.CALL and not request.held and not request.call.operands


def _conversation(place: Place, scope: Remember) -> str:
    # All direct conversations share one "server", so there "always" still means this conversation.
    return "" if scope is Remember.ALWAYS and not place.is_direct else place.conversation


def _key(request: ApprovalRequest, batch: Batch, scope: Remember, coverage: Coverage = EXACT) -> str:
    call: ToolCall = request.call
    shown: JsonObject = {"shown": [request.preview, request.metadata]}
    return fingerprint(
        {
            "server": batch.place.server,
            "conversation": _conversation(batch.place, scope),
            "tool": call.tool,
            "schema": call.schema,
            "args": coverage.covered(call.args),
            **(shown if coverage.named is None else {"named": sorted(coverage.named)}),
            "approvers": sorted(request.approvers),
            "quorum": request.quorum,
            "four_eyes": request.four_eyes,
            "asker": batch.asker.id if depends_on_asker(request) else "",
        }
    )


def depends_on_asker(request: ApprovalRequest) -> bool:
    """Whether the approvers depend on the asker. Then a grant holds only for the same asker."""
    return request.four_eyes or any(ASKER in parts(spec) for spec in request.approvers)
