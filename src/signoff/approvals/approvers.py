"""Who may decide a request. Pure: the answer depends on the request, the batch and the person as they are now.

A specification is a tuple of `manage_server`, `asker`, `role:ID` and `user:ID`. An empty one means nobody.
"""

from __future__ import annotations

from signoff.approvals.model import Actor, ApprovalRequest, Batch, Place

MANAGE_SERVER = "manage_server"
ASKER = "asker"
DEFAULT_APPROVERS = (MANAGE_SERVER,)


def effective(approvers: tuple[str, ...], place: Place) -> tuple[str, ...]:
    """In a direct conversation nobody manages a server: the listed person answers for themselves."""
    if not place.is_direct:
        return approvers
    return tuple(dict.fromkeys(ASKER if spec == MANAGE_SERVER else spec for spec in approvers))


def may_decide(actor: Actor, request: ApprovalRequest, batch: Batch) -> bool:
    """True only where a specification names this person, here, now."""
    if actor.is_bot or actor.server != batch.place.server:
        return False
    return any(_names(spec, actor, batch) for spec in request.approvers)


def _names(spec: str, actor: Actor, batch: Batch) -> bool:
    if spec == MANAGE_SERVER:
        return actor.manages_server
    if spec == ASKER:
        return actor.id == batch.asker.id
    kind, _, identifier = spec.partition(":")
    if not identifier:
        return False
    if kind == "role":
        return identifier in actor.roles
    return kind == "user" and actor.id == identifier
