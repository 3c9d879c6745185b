"""What admins may order and ask, put together from the rooms that do it. Implements `bot.ports.Orders`.

Every method that changes something leaves the check of who may to the room that changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from signoff.agent.assemble import Brain
from signoff.agent.runner import AgentRunner
from signoff.approvals.audit import BROKEN, PRUNED, AuditRow
from signoff.approvals.desk import Desk
from signoff.approvals.grants import Grant
from signoff.approvals.model import Actor, Batch, JsonObject, Pause, Place, Ruling
from signoff.approvals.policy import Rule
from signoff.approvals.rules import Rulebook, ServerRule, must_manage
from signoff.bot.ports import ToolSeen
from signoff.errors import Refused
from signoff.store import Store
from signoff.turns.driver import Driver
from signoff.turns.halts import Halts


@dataclass(frozen=True)
class Office:
    brain: Brain
    rulebook: Rulebook
    desk: Desk
    driver: Driver
    halts: Halts
    runner: AgentRunner
    store: Store

    def tools(self) -> Sequence[ToolSeen]:
        return [ToolSeen(tool.name, tool.arguments, tool.verdict) for tool in self.brain.tools]

    def floor(self) -> Sequence[Rule]:
        return self.rulebook.floor.rules

    def mode(self) -> str:
        return self.desk.modes.mode

    async def rules(self, server: str) -> Sequence[ServerRule]:
        return await self.rulebook.of(server)

    async def protect(self, rule: Rule, actor: Actor) -> ServerRule:
        return await self.rulebook.protect(rule, actor)

    async def unprotect(self, rule_id: str, actor: Actor) -> ServerRule:
        return await self.rulebook.unprotect(rule_id, actor)

    async def test(self, tool: str, args: JsonObject, place: Place, actor: Actor) -> Ruling:
        must_manage(actor)
        return self.runner.terms.fill(await self.runner.test(tool, args, place, actor))

    async def grants(self, actor: Actor) -> Sequence[Grant]:
        return [one for one in await self.desk.standing_grants(actor.server) if one.concerns(actor)]

    async def revoke(self, grant_id: str, actor: Actor) -> Grant:
        return await self.desk.revoke(grant_id, actor)

    async def pending(self, server: str) -> Sequence[Batch]:
        return await self.store.run(lambda tx: tx.open_of(server))

    async def repost(self, batch_id: str, actor: Actor) -> None:
        must_manage(actor)
        batch = await self.store.run(lambda tx: tx.batch(batch_id))
        if batch is None or batch.place.server != actor.server or not await self.driver.repost(batch_id):
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
        return await self.store.run(lambda tx: tx.audit_page(server, before=before, limit=limit, **narrowed))

    async def audit_text(self, digest: str) -> str | None:
        return await self.store.run(lambda tx: tx.audit_text(digest))

    async def paused(self, server: str) -> Pause | None:
        return await self.store.run(lambda tx: tx.pause_of(server))

    async def pause(self, actor: Actor) -> int:
        return await self.halts.pause(actor)

    async def resume(self, actor: Actor) -> bool:
        return await self.halts.resume(actor)

    async def stop(self, actor: Actor, conversation: str | None = None) -> int:
        return await self.halts.stop(actor, conversation)
