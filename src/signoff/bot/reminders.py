"""Whom a reminder calls: exactly the roles and people who may still decide, by id. Pure."""

from __future__ import annotations

from signoff.approvals.approvers import ASKER, parts, remaining_specs
from signoff.approvals.model import ApprovalRequest, Batch
from signoff.cards.model import Person, RoleRef

MOST = 20
"""Roles and people in one reminder."""


def pings(batch: Batch) -> tuple[Person | RoleRef, ...]:
    """Those whom the open requests name. Manage Server names nobody in particular, and who is gone hears nothing."""
    found: dict[Person | RoleRef, None] = {}
    for request in batch.open_questions:
        for spec in remaining_specs(request):
            found |= dict.fromkeys(_named(spec, request, batch))
    return tuple(found)[:MOST]


def _named(spec: str, request: ApprovalRequest, batch: Batch) -> list[Person | RoleRef]:
    named: list[Person | RoleRef] = []
    for part in parts(spec):
        kind, _, identifier = f"user:{batch.asker.id}".partition(":") if part == ASKER else part.partition(":")
        if not identifier.isascii() or not identifier.isdecimal():
            continue
        if kind == "role" and identifier != batch.place.server:
            named.append(RoleRef(identifier))
        elif kind == "user" and not (request.four_eyes and identifier == batch.asker.id):
            named.append(Person(identifier, identifier))
    return named[-1:]  # of several that are joined, one: whoever is named by all of them hears it by any
