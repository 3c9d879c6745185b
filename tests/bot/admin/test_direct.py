"""`/signoff grants` and `revoke` in direct messages: only the person's own decisions, and only for listed people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from discord_sandbox import Person
from discord_sandbox.seen import Outcome
from signoff.approvals.grants import Grant
from signoff.approvals.model import DIRECT, Actor
from signoff.bot.access import Access
from tests.rigs.admin import AdminRig, idle, private  # noqa: F401 - fixtures
from tests.rigs.admin_commands import COMMANDS

# ruff: noqa: F811 - a fixture is asked for by its name

OWN = ("grants", "revoke", "stop")


@dataclass
class Direct:
    """Max and Olga are listed for direct messages, Ada is not."""

    rig: AdminRig
    olga: Person

    async def run(self, line: str, who: Person | None = None, **options: Any) -> Outcome:
        who = who or self.rig.max
        return await who.run(await who.dm("Signoff"), f"signoff {line}", **options)

    async def offered(self, who: Person) -> list[str]:
        return [command["name"] for command in await who.commands(await who.dm("Signoff"))]

    async def remembered(self, by: Person, text: str, **fields: Any) -> Grant:
        by_now = Actor(str(by.id), by.name, DIRECT)
        conversation = str((await by.dm("Signoff")).id)
        fields = {"server": DIRECT, "conversation": conversation, "by": by_now, **fields}
        made = self.rig.grant({"path": text}, **fields)
        self.rig.administration.remembered.append(made)
        return made


@pytest.fixture
async def direct(idle: AdminRig) -> AsyncIterator[Direct]:
    olga = await idle.sandbox.person("Olga")
    idle.access = Access(dm_users=frozenset({str(idle.max.id), str(olga.id)}))
    async with idle.running():
        yield Direct(idle, olga)


async def test_a_listed_person_sees_and_revokes_their_own_decisions(direct: Direct) -> None:
    mine = await direct.remembered(direct.rig.max, "mine.txt")
    assert await direct.offered(direct.rig.max) == ["signoff"]
    text = private(await direct.run("grants"))
    assert mine.id in text
    assert "mine.txt" in text
    assert "in this direct conversation" in text
    where = await direct.rig.max.dm("Signoff")
    suggested = await direct.rig.max.suggest(where, "signoff revoke", "grant", grant="")
    assert [choice["value"] for choice in suggested.choices] == [mine.id]
    assert f"Revoked: grant `{mine.id}`" in private(await direct.run("revoke", grant=mine.id))
    assert private(await direct.run("grants")) == "No decision is remembered here."


async def test_nobody_sees_or_revokes_the_decisions_of_somebody_else_or_of_a_server(direct: Direct) -> None:
    rig = direct.rig
    theirs = await direct.remembered(direct.olga, "theirs.txt")
    of_server = await direct.remembered(rig.max, "server.txt", server=rig.server, conversation="")
    mine = await direct.remembered(rig.max, "mine.txt")
    assert [one in private(await direct.run("grants")) for one in (theirs.id, of_server.id, mine.id)] == [
        *(False, False, True)
    ]
    suggested = await rig.max.suggest(await rig.max.dm("Signoff"), "signoff revoke", "grant", grant="")
    assert [choice["value"] for choice in suggested.choices] == [mine.id]
    for other in (theirs, of_server):
        assert "no grant" in private(await direct.run("revoke", grant=other.id))
    in_server = private(await rig.run("grants"))
    assert of_server.id in in_server
    assert theirs.id not in in_server
    assert "no grant" in private(await rig.run("revoke", grant=theirs.id))
    assert rig.administration.remembered == [theirs, of_server, mine]


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(OWN)))
async def test_everything_else_works_in_a_server_only(direct: Direct, command: str) -> None:
    assert "only in a server" in private(await direct.run(command, **COMMANDS[command]))
    assert direct.rig.administration.calls == []


@pytest.mark.parametrize("command", OWN)
async def test_whoever_is_not_listed_is_refused(direct: Direct, command: str) -> None:
    """This includes admins of a server, because a direct conversation belongs to no server."""
    answer = await direct.run(command, direct.rig.ada, forged=True, **COMMANDS[command])
    assert "only in a server" in private(answer)
    where = await direct.rig.ada.dm("Signoff")
    suggested = await direct.rig.ada.suggest(where, "signoff revoke", "grant", grant="")
    assert suggested.choices == []
    assert direct.rig.administration.calls == []


async def test_in_the_server_it_still_takes_manage_server(direct: Direct) -> None:
    for command in ("grants", "revoke"):
        assert "Manage Server" in private(await direct.rig.run(command, direct.rig.max, **COMMANDS[command]))
    assert direct.rig.administration.calls == []


@pytest.mark.parametrize("focused", ["tool", "argument"])
async def test_tools_are_not_suggested_in_a_direct_conversation(direct: Direct, focused: str) -> None:
    where = await direct.rig.max.dm("Signoff")
    suggested = await direct.rig.max.suggest(where, "signoff protect", focused, **{focused: ""})
    assert suggested.choices == []
