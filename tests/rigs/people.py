"""A directory whose contents a test sets, and a reviser with a fixed ruling. They implement the real interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from signoff.approvals.desk import Desk
from signoff.approvals.digest import bind
from signoff.approvals.model import Actor, ApprovalRequest, Batch, JsonObject, Ruling, Verdict
from signoff.approvals.ports import Directory, Revised, Reviser
from tests.conftest import ADA, MAX, OLGA, PLACE, SERVER

ROLE = "800000000000000001"
GRACE = Actor("100000000000000004", "Grace", SERVER, roles=frozenset({ROLE}))
BY_ROLE = (f"role:{ROLE}",)


@dataclass
class HandDirectory(Directory):
    people: dict[str, Actor | None] = field(default_factory=lambda: {a.id: a for a in (ADA, MAX, OLGA, GRACE)})
    gone: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    looked_for: list[str] = field(default_factory=list)
    fails: bool = False

    async def person(self, server: str, user: str) -> Actor | None:
        self.asked.append(user)
        if self.fails:
            raise ConnectionError("Discord does not answer")
        return self.people.get(user)

    async def missing(self, server: str, named: Sequence[str]) -> Sequence[str]:
        self.looked_for += named
        if self.fails:
            raise ConnectionError("Discord does not answer")
        return [one for one in named if one in self.gone]


@dataclass
class HandReviser(Reviser):
    ruling: Ruling = field(default_factory=lambda: Ruling(Verdict.ALLOW, "allowed"))
    preview: str = ""

    async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
        return Revised(bind(replace(request.call, args=args), PLACE), self.ruling, self.preview)


async def kinds(desk: Desk) -> list[str]:
    """Return the kinds in the server's audit record, oldest first."""
    rows = await desk.store.run(lambda tx: tx.audit_page(PLACE.server, limit=50))
    return [row.kind for row in reversed(rows)]
