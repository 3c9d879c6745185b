"""Server rules: admins add and remove them. Each change is recorded and applies from the next call on.

Rules live in the store. They are read once per server and cached until they change. If the store cannot be read,
nothing is decided.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from signoff.approvals.errors import Refused
from signoff.approvals.model import Actor, Ruling, ToolCall
from signoff.approvals.policy import Context, Declaration, Layer, Policy, Rule
from signoff.dataclass import dataclass

if TYPE_CHECKING:
    from signoff.approvals.ports import Clock, DeskTx, RequestStore

MOST = 200
"""The most rules that a server may have: nobody could read more."""


@dataclass(frozen=True, slots=True)
class ServerRule:
    id: str
    server: str
    rule: Rule
    by: Actor
    at: float

    def named(self) -> Rule:
        """The rule with a reason that names it as a server rule, for the card."""
        own = self.rule.reason or f"{self.rule.subject}: {self.rule.verdict}"
        return replace(self.rule, reason=f"this server's rule {self.id} ({own})")


@dataclass
class Rulebook:
    """The operator rules and the rules of every server, as one policy."""

    operator: Policy
    store: RequestStore
    clock: Clock
    _known: dict[str, tuple[tuple[ServerRule, ...], Layer]] = field(
        default_factory=dict[str, "tuple[tuple[ServerRule, ...], Layer]"]
    )

    async def decide(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling:
        server = context.place.server
        await self.of(server)
        return await self.operator.decide(call, declaration, context, self._known[server][1])

    async def of(self, server: str) -> tuple[ServerRule, ...]:
        if server not in self._known:
            self._know(server, await self.store.run(lambda tx: tx.rules_of(server)))
        return self._known[server][0]

    def _know(self, server: str, rules: Sequence[ServerRule]) -> None:
        self._known[server] = tuple(rules), Layer(tuple(rule.named() for rule in rules))

    async def protect(self, rule: Rule, actor: Actor) -> ServerRule:
        """Add a rule for the actor's server. Raises Refused."""
        must_manage(actor)
        made = ServerRule(secrets.token_hex(3), actor.server, rule, actor, self.clock.now())

        def work(tx: DeskTx) -> Sequence[ServerRule]:
            if len(tx.rules_of(actor.server)) >= MOST:
                raise Refused(f"This server has {MOST} rules already. Remove one first.")
            tx.insert_rule(made)
            data = {"who": actor.name, "rule": described(rule)}
            tx.audit("rule_added", made.server, made.id, actor.id, data, made.at, tool=rule.subject)
            return tx.rules_of(actor.server)

        async def change() -> None:
            self._know(actor.server, await self.store.run(work))

        # Shielded from cancellation: a rule that is stored must be in force.
        await asyncio.shield(change())
        return made

    async def unprotect(self, rule_id: str, actor: Actor) -> ServerRule:
        must_manage(actor)
        now = self.clock.now()

        def work(tx: DeskTx) -> tuple[ServerRule, Sequence[ServerRule]]:
            removed = tx.drop_rule(rule_id, actor.server)
            if removed is None:
                raise Refused(f"This server has no rule {rule_id}.")
            data = {"who": actor.name, "rule": described(removed.rule)}
            tx.audit("rule_removed", actor.server, rule_id, actor.id, data, now, tool=removed.rule.subject)
            return removed, tx.rules_of(actor.server)

        async def change() -> ServerRule:
            removed, left = await self.store.run(work)
            self._know(actor.server, left)
            return removed

        return await asyncio.shield(change())


def must_manage(actor: Actor) -> None:
    if actor.is_bot or not actor.manages_server:
        raise Refused("This needs the Manage Server permission.")


def described(rule: Rule) -> str:
    """Describe a rule in one line, for the record and for lists."""
    words = [f"{rule.verdict} {rule.subject}"]
    words += [f"when {name} is {' or '.join(globs)}" for name, globs in rule.when.items()]
    words += [f"unless {name} is {' or '.join(globs)}" for name, globs in rule.unless.items()]
    if rule.approvers is not None:
        words.append(f"by {' or '.join(rule.approvers)}")
    if rule.quorum > 1:
        words.append(f"{rule.quorum} people")
    if rule.four_eyes:
        words.append("not by the asker")
    if rule.timeout is not None:
        words.append(f"within {rule.timeout:g} s")
    if rule.reminder is not None:
        words.append(f"reminder {rule.reminder:g} s before{' with a ping' if rule.ping else ''}")
    if rule.notify is not None:
        words.append(f"notify {rule.notify}")
    if rule.relaxable:
        words.append("relaxable")
    return ", ".join(words)
