"""People and approvers on a card: who a person is, who may decide a call, and which approvers are missing.

Every line is trusted text in which people and roles are data. This module knows batches, but no medium.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from signoff.approvals.approvers import ASKER, MANAGE_SERVER, parts, remaining_specs
from signoff.approvals.model import Actor, ApprovalRequest, Batch, RequestKind
from signoff.cards.model import Inline, Line, Moment, Person, RoleRef
from signoff.text.visible import clip, plain

NAME_BUDGET = 32
"""Discord's own limit for names. Cutting a longer name is harmless, because the id identifies the person."""
NAMED_APPROVERS = 4
"""The most people and roles that a line names."""
CONDITIONS = 3
"""The most conditions that are named for one approver, if several must hold."""
VOTERS = 4
"""The most voters that a line names."""

NOBODY: Line = ("nobody",)


def person(actor: Actor) -> Person:
    return Person(actor.id, clip(actor.name, NAME_BUDGET)[0] or actor.id)


def people(actors: Iterable[Actor]) -> Line:
    """List people as in "Ada, Grace and Max"."""
    persons = [person(actor) for actor in actors]
    more = len(persons) - VOTERS
    named: list[Line] = [(one,) for one in persons[:VOTERS]]
    return _listed([*named, *([(f"{more} more",)] if more > 0 else [])], " and ")


def name_approvers(
    approvers: tuple[str, ...], batch: Batch, *, named_at_most: int = NAMED_APPROVERS, brief: bool = False
) -> Line:
    """List the people and roles that these specifications name, or NOBODY. An unreadable entry names nobody.

    `brief`: name a permission without "members with".
    """
    named = [line for spec in dict.fromkeys(approvers) if (line := _named_by(spec, batch, brief))]
    if not named:
        return NOBODY
    more = len(named) - named_at_most
    return _listed([*named[:named_at_most], *([(f"{more} more",)] if more > 0 else [])], " or ")


def may_decide_line(batch: Batch) -> Line:
    """Name the approvers of the whole card, or say that they differ by call. It is the end of a line.

    Once all calls are settled, it is empty unless nobody could decide: then it says why the card was not accepted.
    """
    questions, settled = batch.questions, batch.settled
    decide = decide_or_answer(questions)
    if differ_by_call(questions):
        return () if settled else (f" · who may {decide} differs by call",)
    if settled:
        anybody = any(_named_by(spec, batch, brief=True) for spec in remaining_specs(questions[0]))
        return () if anybody else (f" · nobody may {decide} this",)
    who = may_decide(questions[0], batch, brief=True)
    return (f" · nobody may {decide} this: it will expire",) if who == NOBODY else (f" · may {decide}: ", *who)


def decide_or_answer(requests: Sequence[ApprovalRequest]) -> str:
    """Return what people do with these requests, in one word."""
    return "answer" if requests and all(r.kind is RequestKind.ANSWER for r in requests) else "decide"


def differ_by_call(requests: Sequence[ApprovalRequest]) -> bool:
    """Whether not the same people may decide all of these requests on the same terms."""
    return len(requests) != 1 and len({(r.current_approvers, r.missing, r.quorum, r.four_eyes) for r in requests}) != 1


def may_decide(
    request: ApprovalRequest, batch: Batch, *, named_at_most: int = NAMED_APPROVERS, brief: bool = False
) -> Line:
    """Say who may decide this call, how many people must accept, and whether the asker is excluded."""
    who = name_approvers(remaining_specs(request), batch, named_at_most=named_at_most, brief=brief)
    if who == NOBODY:
        return who
    asker: Line = (", not by the asker",) if request.four_eyes else ()
    several: Line = (f"; {request.quorum} people have to accept",) if request.quorum > 1 else ()
    return (*who, *asker, *several)


def missing_line(request: ApprovalRequest) -> Line:
    """Name the missing approvers; empty if there are none."""
    missing = [part for part in request.missing if ":" in part]
    if not request.missing:
        return ()
    if all(part.startswith("role:") for part in missing):
        what = "The approver role no longer exists" if len(missing) == 1 else "Approver roles no longer exist"
    elif all(part.startswith("user:") for part in missing):
        what = (
            "The approver is no longer in this server"
            if len(missing) == 1
            else "Approvers are no longer in this server"
        )
    else:
        what = "Approvers no longer exist"
    named = ", ".join(plain(part.partition(":")[2], NAME_BUDGET) for part in missing[:CONDITIONS])
    return (f"{what}: {named}" if named else what,)


def escalation_line(request: ApprovalRequest, batch: Batch) -> Line:
    """Say to whom the request is or will be escalated; empty if it is not."""
    if not request.escalate_to:
        return ()
    to = name_approvers(_without(request.escalate_to, request.missing), batch)
    if request.escalate_at is None:
        return ("Escalated to ", *to)
    return ("Escalates to ", *to, " ", Moment(request.escalate_at)) if request.settlement is None else ()


def _without(specs: Iterable[str], missing: Collection[str]) -> tuple[str, ...]:
    return tuple(spec for spec in specs if not set(parts(spec)) & set(missing))


def _listed(items: Sequence[Line], last: str) -> Line:
    if len(items) == 1:
        return items[0]
    line: list[Inline] = []
    for index, item in enumerate(items):
        line += [*([] if not index else [last if index == len(items) - 1 else ", "]), *item]
    return tuple(line)


def _named_by(spec: str, batch: Batch, brief: bool) -> Line:
    """Name the people of one specification; empty if it names nobody. Parts joined with & must all hold."""
    named = [_named(part, batch) for part in parts(spec)]
    if None in named:
        return ()
    if len(named) == 1:
        only = named[0]
        manages: Line = ("Manage Server",) if brief else ("members with Manage Server",)
        return manages if only == MANAGE_SERVER else (only,) if only else ()
    who = {one for one in named if isinstance(one, Person)}
    if len(who) > 1:
        return ()
    rights = [("Manage Server",) if one == MANAGE_SERVER else (one,) for one in named if one and one not in who]
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
    if not identifier or plain(identifier, NAME_BUDGET) != identifier:
        return None
    if kind == "role":
        return RoleRef(identifier)
    if kind == "user":
        return person(batch.asker) if identifier == batch.asker.id else Person(identifier, identifier)
    return None
