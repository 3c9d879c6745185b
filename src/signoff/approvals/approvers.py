"""Checks who may decide a request. Pure: uses only the request, the batch and the person as they are now.

A specification is a tuple of `manage_server`, `asker`, `role:ID` and `user:ID`. A person may decide if any entry names
them. An entry may join parts with `&`; then every part must name them. An empty specification names nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from signoff.approvals.model import Actor, ApprovalRequest, Batch, Place

MANAGE_SERVER = "manage_server"
ASKER = "asker"
FOUR_EYES = "the asker may not decide (four eyes)"
EDITED = "you edited this call, so somebody else has to accept it (four eyes)"


def effective(approvers: tuple[str, ...], place: Place) -> tuple[str, ...]:
    """Replace `manage_server` with the asker in direct messages, where nobody manages a server."""
    if not place.is_direct:
        return approvers
    return tuple(dict.fromkeys(_joined(ASKER if p == MANAGE_SERVER else p for p in parts(s)) for s in approvers))


def both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return a specification that names exactly the people that both name. None adds no restriction."""
    if one is None or other is None:
        return one if other is None else other
    specs = {frozenset(parts(spec)): spec for a in one for b in other for spec in [_joined((*parts(a), *parts(b)))]}
    # Drop redundant specs: if `a` qualifies, `a&b` adds nobody.
    return tuple(spec for those, spec in specs.items() if not any(shorter < those for shorter in specs))


def parts(spec: str) -> list[str]:
    return spec.split("&")


def objection(actor: Actor, request: ApprovalRequest, batch: Batch, *, accepts: bool = False) -> str | None:
    """Return None if this person may decide, else the reason, which is empty if they are simply not an approver.

    `accepts`: the decision would let the call run. With four eyes, a person who edited the call may not accept it.
    """
    if request.held:
        # Nobody is asked about a held call. An approver of one of its batch's questions may still reject it.
        reasons = [_objection(actor, one, batch) for one in (request, *batch.questions)]
        return None if None in reasons else next((why for why in reasons if why), "")
    if accepts and request.four_eyes and request.edit and actor.id in request.edit.editors:
        return EDITED
    return _objection(actor, request, batch)


def _objection(actor: Actor, request: ApprovalRequest, batch: Batch) -> str | None:
    if actor.is_bot or actor.server != batch.place.server:
        return ""
    if not any(all(_names(part, actor, batch) for part in parts(spec)) for spec in request.current_approvers):
        return ""
    return FOUR_EYES if request.four_eyes and actor.id == batch.asker.id else None


def may_decide(actor: Actor, request: ApprovalRequest, batch: Batch, *, accepts: bool = False) -> bool:
    return objection(actor, request, batch, accepts=accepts) is None


def named(requests: Iterable[ApprovalRequest]) -> set[str]:
    """Return every role and person in the specifications of these requests, before and after an escalation."""
    return {part for r in requests for spec in (*r.approvers, *r.escalate_to) for part in parts(spec)}


def with_missing(missing: Collection[str], request: ApprovalRequest) -> ApprovalRequest:
    """Return the request with its missing approvers noted."""
    return replace(request, missing=tuple(sorted(named([request]) & {*missing, *request.missing})))


def remaining_specs(request: ApprovalRequest) -> tuple[str, ...]:
    """Return the specifications that name no missing approver."""
    return _without_missing(request.current_approvers, request)


def can_be_met(request: ApprovalRequest, batch: Batch) -> bool:
    """Whether enough different people could accept, now or after an escalation.

    A role counts as enough people, since its size is not known.
    """
    people: set[str] = set()
    for spec in _without_missing((*request.approvers, *request.escalate_to), request):
        those = {batch.asker.id if part == ASKER else part.partition(":")[2] for part in parts(spec) if _is_one(part)}
        if not those:
            return True
        if len(those) == 1:
            people |= those
    if request.four_eyes:
        people -= {batch.asker.id, *(request.edit.editors if request.edit else ())}
    return len(people) >= request.quorum


def _without_missing(specs: tuple[str, ...], request: ApprovalRequest) -> tuple[str, ...]:
    return tuple(spec for spec in specs if not set(parts(spec)) & set(request.missing))


def _is_one(part: str) -> bool:
    return part == ASKER or part.startswith("user:")


def _joined(names: Iterable[str]) -> str:
    return "&".join(dict.fromkeys(names))


def _names(part: str, actor: Actor, batch: Batch) -> bool:
    if part == MANAGE_SERVER:
        return actor.manages_server
    if part == ASKER:
        return actor.id == batch.asker.id
    kind, _, identifier = part.partition(":")
    if not identifier:
        return False
    if kind == "role":
        return identifier in actor.roles
    return kind == "user" and actor.id == identifier
