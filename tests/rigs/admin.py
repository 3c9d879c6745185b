"""The real bot with its commands on a sandbox, and a fake administration that stays in memory and records its calls."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from discord_sandbox import Person, SandboxClient
from discord_sandbox.discord_py import knows_its_servers
from discord_sandbox.seen import Outcome
from signoff.approvals.audit import AuditRow
from signoff.approvals.errors import Refused
from signoff.approvals.grants import Grant
from signoff.approvals.model import Actor, Batch, Choice, JsonObject, Pause, Place, Ruling, Verdict
from signoff.approvals.policy import Rule
from signoff.approvals.server_rules import ServerRule
from signoff.bot.access import Access
from signoff.bot.client import Bot, SignoffClient
from signoff.bot.front_end import DiscordFrontEnd
from signoff.cards.actions import Offers
from signoff.turns.administration import Administration, ToolFacts
from tests.rigs.bot import PATIENCE, TOKEN, until
from tests.rigs.bot_fakes import RecordingDesk, RecordingDriver

TOOLS = (
    ToolFacts("delete_file", ("path", "force"), "asks: the tool is declared to always ask"),
    ToolFacts("write_file", ("path", "text"), "asks"),
    ToolFacts("roll_dice", ("sides",), "runs without asking"),
)
OPERATOR_RULES = (
    Rule("write_*", Verdict.ASK, when={"path": ("*.env",)}, timeout=600.0, relaxable=True),
    Rule("shell", Verdict.DENY, reason="no shell here"),
)
NOW = 1_700_000_000.0


@dataclass
class FakeAdministration(Administration):
    """Obeys everybody, so its caller must check the rights. `calls` lists each method with its arguments."""

    seen: Sequence[ToolFacts] = TOOLS
    operator: Sequence[Rule] = OPERATOR_RULES
    own: list[ServerRule] = field(default_factory=list)
    remembered: list[Grant] = field(default_factory=list)
    open: list[Batch] = field(default_factory=list)
    rows: list[AuditRow] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    ruling: Ruling = field(default_factory=lambda: Ruling(Verdict.ALLOW, "no rule matches"))
    operators_mode: str = "interactive"
    pauses: dict[str, Pause] = field(default_factory=dict)
    running: int = 0
    fails_with: Exception | None = None
    fails_on: dict[str, Exception] = field(default_factory=dict)
    delay: float = 0.0
    calls: list[tuple[str, Any]] = field(default_factory=list)

    async def _note(self, name: str, *what: Any) -> None:
        self.calls.append((name, what))
        await asyncio.sleep(self.delay)
        if self.fails_with is not None:
            raise self.fails_with

    def told(self, name: str) -> list[tuple[Any, ...]]:
        return [what for called, what in self.calls if called == name]

    def tools(self) -> Sequence[ToolFacts]:
        return self.seen

    def operator_rules(self) -> Sequence[Rule]:
        return self.operator

    def mode(self) -> str:
        return self.operators_mode

    async def rules(self, server: str) -> Sequence[ServerRule]:
        await self._note("rules", server)
        return [one for one in self.own if one.server == server]

    async def protect(self, rule: Rule, actor: Actor) -> ServerRule:
        await self._note("protect", rule, actor)
        made = ServerRule(secrets.token_hex(3), actor.server, rule, actor, NOW)
        self.own.append(made)
        return made

    async def unprotect(self, rule_id: str, actor: Actor) -> ServerRule:
        await self._note("unprotect", rule_id, actor)
        gone = next((one for one in self.own if one.id == rule_id and one.server == actor.server), None)
        if gone is None:
            raise Refused(f"This server has no rule {rule_id}.")
        self.own.remove(gone)
        return gone

    async def test(self, tool: str, args: JsonObject, place: Place, actor: Actor) -> Ruling:
        await self._note("test", tool, args, place, actor)
        if tool not in {one.name for one in self.seen}:
            raise Refused(f"There is no tool {tool}.")
        return self.ruling

    async def grants(self, actor: Actor) -> Sequence[Grant]:
        await self._note("grants", actor)
        return [one for one in self.remembered if one.concerns(actor)]

    async def revoke(self, grant_id: str, actor: Actor) -> Grant:
        await self._note("revoke", grant_id, actor)
        gone = next((one for one in self.remembered if one.id == grant_id and one.concerns(actor)), None)
        if gone is None:
            raise Refused(f"There is no grant {grant_id} here.")
        self.remembered.remove(gone)
        return gone

    async def pending(self, server: str) -> Sequence[Batch]:
        await self._note("pending", server)
        return [one for one in self.open if one.place.server == server]

    async def repost(self, batch_id: str, actor: Actor) -> None:
        await self._note("repost", batch_id, actor)
        if batch_id in self.fails_on:
            raise self.fails_on[batch_id]
        self.open = [
            replace(b, card_message=f"{int(b.card_message or 0) + 1}") if b.id == batch_id else b for b in self.open
        ]

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
        await self._note("audit", server, before, limit, actor, tool, kind)
        wanted = {"server": server, "actor": actor, "tool": tool, "kind": kind, "subject": request}
        fitting = (
            row
            for row in reversed(self.rows)
            if (before is None or row.seq < before)
            and all(value is None or getattr(row, name) == value for name, value in wanted.items())
        )
        return [row for row, _ in zip(fitting, range(limit), strict=False)]

    async def audit_text(self, digest: str) -> str | None:
        return self.texts.get(digest)

    async def paused(self, server: str) -> Pause | None:
        return self.pauses.get(server)

    async def pause(self, actor: Actor) -> int:
        await self._note("pause", actor)
        self.pauses[actor.server] = Pause(actor.server, actor, NOW)
        return len(self.open)

    async def resume(self, actor: Actor) -> bool:
        await self._note("resume", actor)
        return self.pauses.pop(actor.server, None) is not None

    async def stop(self, actor: Actor, conversation: str | None = None) -> int:
        await self._note("stop", actor, conversation)
        return self.running


@dataclass
class AdminRig:
    sandbox: SandboxClient
    server: str
    ada: Person
    """The owner of the server."""
    max: Person
    """An ordinary member."""
    administration: FakeAdministration = field(default_factory=FakeAdministration)
    access: Access = field(default_factory=Access)
    client: SignoffClient = field(init=False)
    bot: Bot = field(init=False)

    @asynccontextmanager
    async def running(self, *, commands: bool = True) -> AsyncIterator[SignoffClient]:
        """Run a new bot each time, so that a restart loses what was in memory."""
        self.client = SignoffClient(guild_ready_timeout=0.05)
        front_end = DiscordFrontEnd(self.client, Offers(), time.time)
        administration = self.administration if commands else None
        self.bot = Bot(
            self.client, front_end, RecordingDesk(), RecordingDriver(), self.access, administration=administration
        )
        task = asyncio.create_task(self.bot.run(TOKEN))
        try:
            await until(lambda: knows_its_servers(self.client) or task.done())
            if task.done():
                await task
            if self.bot.tree and self.bot.tree.registering:
                await self.bot.tree.registering
            yield self.client
        finally:
            await self.client.close()
            await asyncio.gather(task, return_exceptions=True)

    async def run(self, line: str, who: Person | None = None, where: str = "general", **options: Any) -> Outcome:
        """Run a command without the checks of Discord's own client."""
        return await (who or self.ada).run(where, f"signoff {line}", forged=True, **options)

    async def answered(self, answer: Outcome, text: str) -> Outcome:
        """Wait until the response contains `text`; it may come late or in parts."""
        async with asyncio.timeout(PATIENCE):
            while text not in answer.text:
                await asyncio.sleep(0.01)
                answer = await self.sandbox.interaction(answer)
        return answer

    async def choices(self, line: str, focused: str, who: Person | None = None, **options: Any) -> list[str]:
        answer = await (who or self.ada).suggest("general", f"signoff {line}", focused, **options)
        return [choice["value"] for choice in answer.choices]

    def actor(self, person: Person, **fields: Any) -> Actor:
        return Actor(str(person.id), person.name, self.server, **fields)

    def rule(self, rule_id: str = "abc123", **fields: Any) -> ServerRule:
        """Add a rule that exists from the start."""
        found: dict[str, Any] = {"tool": "delete_file", "verdict": Verdict.ASK, **fields}
        made = ServerRule(rule_id, self.server, Rule(**found), self.actor(self.ada), NOW)
        self.administration.own.append(made)
        return made

    def grant(self, args: JsonObject, **fields: Any) -> Grant:
        found: dict[str, Any] = {
            "id": secrets.token_hex(4),
            "key": "k",
            "server": self.server,
            "conversation": "",
            "tool": "delete_file",
            "args": json.dumps(args),
            "choice": Choice.ACCEPT,
            "by": self.actor(self.ada),
            "at": NOW,
            "expires": time.time() + 3600,
            "uses_left": 3,
            **fields,
        }
        return Grant(**found)

    def row(self, seq: int, kind: str = "approved", **fields: Any) -> AuditRow:
        data = fields.pop("data", {})
        found: dict[str, Any] = {
            "seq": seq,
            "at": NOW + seq,
            "kind": kind,
            "server": self.server,
            "subject": f"{seq:016x}",
            "actor": str(self.ada.id),
            "tool": "delete_file",
            "data": data if isinstance(data, str) else json.dumps(data),
            "text": "",
            **fields,
        }
        return AuditRow(**found)


@pytest.fixture
async def idle(sandbox: SandboxClient, pointed: None) -> AdminRig:
    """A rig whose bot is not started yet."""
    ada, max_ = await sandbox.person("Ada"), await sandbox.person("Max")
    return AdminRig(sandbox, str(await sandbox.guild_id()), ada, max_)


@pytest.fixture
async def admin(idle: AdminRig) -> AsyncIterator[AdminRig]:
    async with idle.running():
        yield idle


def private(answer: Outcome) -> str:
    """Check that only its person saw a response, that it pinged nobody and unfurled no link; return its text."""
    assert answer.messages, answer.error
    for message in answer.messages:
        assert message.ephemeral
        assert message.pings == []
        assert message.unfurls == []
        assert len(message.content) <= 2000
    return answer.text
