"""The service behind the admin commands: rules, grants, open cards, the record, pause and stop.

The object that makes a change also checks who may make it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from signoff.approvals.audit import BROKEN, PRUNED, AuditRow
from signoff.approvals.desk import Desk
from signoff.approvals.errors import Refused
from signoff.approvals.grants import Grant
from signoff.approvals.model import Actor, Batch, JsonObject, Pause, Place, Ruling, Terms
from signoff.approvals.policy import Rule
from signoff.approvals.server_rules import Rulebook, ServerRule, must_manage
from signoff.approvals.tool_description import UNMARKED, Marks
from signoff.dataclass import dataclass
from signoff.turns.driver import Driver
from signoff.turns.pausing import Pausing
from signoff.turns.ports import TurnStore
from signoff.turns.schedules import ScheduleBook
from signoff.turns.usage import UsageBook, UsageReport


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """A tool that is known before a run, as the commands list it."""

    name: str
    arguments: tuple[str, ...]
    verdict: str
    """The verdict on a call, as text."""
    marks: Marks = UNMARKED


class Tester(Protocol):
    """Tries a call without running it."""

    @property
    def terms(self) -> Terms: ...

    async def test(self, tool: str, args: JsonObject, place: Place, actor: Actor) -> Ruling: ...


class Administration:
    def __init__(
        self,
        tools: Callable[[], Sequence[ToolFacts]],
        rulebook: Rulebook,
        desk: Desk,
        driver: Driver,
        pausing: Pausing,
        tester: Tester,
        store: TurnStore,
        usage: UsageBook | None = None,
        schedules: ScheduleBook | None = None,
    ) -> None:
        self._tools = tools
        """Returns the tools known at the time: an MCP server's tools are known only after its first run."""
        self._rulebook = rulebook
        self._desk = desk
        self._driver = driver
        self._pausing = pausing
        self._tester = tester
        self._store = store
        self._usage = usage
        self._schedules = schedules

    def tools(self) -> Sequence[ToolFacts]:
        return self._tools()

    def operator_rules(self) -> Sequence[Rule]:
        return self._rulebook.operator.rules

    def mode(self) -> str:
        return self._desk.modes.mode

    async def rules(self, server: str) -> Sequence[ServerRule]:
        return await self._rulebook.of(server)

    async def protect(self, rule: Rule, actor: Actor) -> ServerRule:
        made = await self._rulebook.protect(rule, actor)
        self._desk.server_rules_changed(actor.server)
        return made

    async def unprotect(self, rule_id: str, actor: Actor) -> ServerRule:
        removed = await self._rulebook.unprotect(rule_id, actor)
        self._desk.server_rules_changed(actor.server)
        return removed

    async def test(self, tool: str, args: JsonObject, place: Place, actor: Actor) -> Ruling:
        must_manage(actor)
        return self._tester.terms.fill(await self._tester.test(tool, args, place, actor))

    async def grants(self, actor: Actor) -> Sequence[Grant]:
        return [one for one in await self._desk.standing_grants(actor.server) if one.concerns(actor)]

    async def revoke(self, grant_id: str, actor: Actor) -> Grant:
        return await self._desk.revoke(grant_id, actor)

    async def pending(self, server: str) -> Sequence[Batch]:
        return await self._store.run(lambda tx: tx.open_of(server))

    async def repost(self, batch_id: str, actor: Actor) -> None:
        must_manage(actor)
        batch = await self._store.run(lambda tx: tx.batch(batch_id))
        if batch is None or batch.place.server != actor.server or not await self._driver.repost(batch_id):
            raise Refused("This card is no longer open.")

    async def audit(
        self,
        server: str,
        *,
        before: int | None = None,
        limit: int = 10,
        actor: str | None = None,
        tool: str | None = None,
        kind: str | None = None,
        request: str | None = None,
    ) -> Sequence[AuditRow]:
        server = "" if kind in (BROKEN, PRUNED) else server
        narrowed = {"actor": actor, "tool": tool, "kind": kind, "subject": request}
        return await self._store.run(lambda tx: tx.audit_page(server, before=before, limit=limit, **narrowed))

    async def audit_text(self, digest: str) -> str | None:
        return await self._store.run(lambda tx: tx.audit_text(digest))

    @property
    def schedules(self) -> ScheduleBook:
        if self._schedules is None:
            raise Refused("There are no schedules here.")
        return self._schedules

    async def usage(self, actor: Actor, place: Place) -> UsageReport:
        if self._usage is None:
            raise Refused("Usage is not counted here.")
        return await self._usage.report(actor, place)

    async def paused(self, server: str) -> Pause | None:
        return await self._store.run(lambda tx: tx.pause_of(server))

    async def pause(self, actor: Actor) -> int:
        return await self._pausing.pause(actor)

    async def resume(self, actor: Actor) -> bool:
        return await self._pausing.resume(actor)

    async def stop(self, actor: Actor, conversation: str | None = None) -> int:
        return await self._pausing.stop(actor, conversation)

    async def stop_turn(self, actor: Actor, turn_id: str) -> bool:
        return await self._pausing.stop_turn(actor, turn_id)
