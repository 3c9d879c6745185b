"""People and approvers on a card: who a person is, who may decide a call, and which approvers are missing.

Lines of trusted text in which people and roles are data. Knows batches, and nothing of any medium.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signoff.approvals.approvers import ASKER, MANAGE_SERVER, left, parts
from signoff.approvals.model import Actor, ApprovalRequest, Batch
from signoff.cards.model import Inline, Line, Person, RoleRef
from signoff.text.visible import clip, plain

NAME_ROOM = 32
"""Discord's own limit for names; longer ones are cut, which is harmless: the id is what counts."""
DECIDERS = 4
"""So many people and roles are named."""
CONDITIONS = 3
"""So many conditions of one decider are named, where several must hold."""
VOTERS = 4
"""So many of those who voted are named."""

NOBODY: Line = ("nobody",)


def person(actor: Actor) -> Person:
    return Person(actor.id, clip(actor.name, NAME_ROOM)[0] or actor.id)


def people(actors: Iterable[Actor]) -> Line:
    """Ada, Grace and Max."""
    found = [person(actor) for actor in actors]
    more = len(found) - VOTERS
    named: list[Line] = [(one,) for one in found[:VOTERS]]
    return _listed([*named, *([(f"{more} more",)] if more > 0 else [])], " and ")


def deciders(approvers: tuple[str, ...], batch: Batch, *, named_at_most: int = DECIDERS) -> Line:
    """Who these specifications name, NOBODY included. An entry that cannot be read names nobody."""
    named = [line for spec in dict.fromkeys(approvers) if (line := _decider(spec, batch))]
    if not named:
        return NOBODY
    more = len(named) - named_at_most
    return _listed([*named[:named_at_most], *([(f"{more} more",)] if more > 0 else [])], " or ")


def may_decide_line(batch: Batch) -> Line:
    """The whole card's deciders, or that they differ from call to call."""
    if differ_by_call(batch):
        return ("Who may decide differs by call",)
    who = may_decide(batch.questions[0], batch)
    if who != NOBODY:
        return ("May decide: ", *who)
    return ("Nobody may decide this" if batch.settled else "Nobody may decide this: it will expire",)


def differ_by_call(batch: Batch) -> bool:
    return len({(r.approvers, r.missing, r.quorum, r.four_eyes) for r in batch.questions}) != 1


def may_decide(request: ApprovalRequest, batch: Batch, *, named_at_most: int = DECIDERS) -> Line:
    """Who may decide this call, how many of them it takes, and whether the asker is one of them."""
    who = deciders(left(request), batch, named_at_most=named_at_most)
    if who == NOBODY:
        return who
    asker: Line = (", not by the asker",) if request.four_eyes else ()
    several: Line = (f"; {request.quorum} people have to accept",) if request.quorum > 1 else ()
    return (*who, *asker, *several)


def gone_line(request: ApprovalRequest) -> Line:
    """Which of those who may decide are gone; empty if nobody is."""
    gone = [part for part in request.missing if ":" in part]
    if not request.missing:
        return ()
    if all(part.startswith("role:") for part in gone):
        what = "The role that may decide is gone" if len(gone) == 1 else "Roles that may decide are gone"
    elif all(part.startswith("user:") for part in gone):
        what = "The person who may decide is gone" if len(gone) == 1 else "People who may decide are gone"
    else:
        what = "Roles and people who may decide are gone"
    named = ", ".join(plain(part.partition(":")[2], NAME_ROOM) for part in gone[:CONDITIONS])
    return (f"{what}: {named}" if named else what,)


def _listed(items: Sequence[Line], last: str) -> Line:
    line: list[Inline] = []
    for index, item in enumerate(items):
        line += [*([] if not index else [last if index == len(items) - 1 else ", "]), *item]
    return tuple(line)


def _decider(spec: str, batch: Batch) -> Line:
    """Whom one specification names; empty if nobody. Parts joined with & must all hold."""
    found = [_named(part, batch) for part in parts(spec)]
    if None in found:
        return ()
    if len(found) == 1:
        only = found[0]
        return ("members with Manage Server",) if only == MANAGE_SERVER else (only,) if only else ()
    who = {one for one in found if isinstance(one, Person)}
    if len(who) > 1:
        return ()
    rights = [("Manage Server",) if one == MANAGE_SERVER else (one,) for one in found if one and one not in who]
    more = len(rights) - CONDITIONS
    listed = _listed([*rights[:CONDITIONS], *([(f"{more} more",)] if more > 0 else [])], " and ")
    whose: Line = (*who, *([" with "] if listed else [])) if who else ("people with ",)
    return (*whose, *listed)


def _named(part: str, batch: Batch) -> Inline | None:
    if part == MANAGE_SERVER:
        return MANAGE_SERVER
    if part == ASKER:
        return person(batch.asker)
    kind, _, identifier = part.partition(":")
    if not identifier or plain(identifier, NAME_ROOM) != identifier:
        return None
    if kind == "role":
        return RoleRef(identifier)
    if kind == "user":
        return person(batch.asker) if identifier == batch.asker.id else Person(identifier, identifier)
    return None
