"""The real bot against a sandbox over real sockets, and two of its people."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from discord_sandbox import Person, Plan, SandboxClient, SandboxServer
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Remember
from signoff.cards.actions import Offers
from tests.rigs.bot import Rig
from tests.rigs.bot_fakes import EchoReviser


@pytest.fixture
def sandbox_plan() -> Plan:
    return Plan(bot="Signoff", server="Signoff Lab")


@pytest.fixture
def server(sandbox_server: SandboxServer) -> SandboxServer:
    return sandbox_server


@pytest.fixture
def pointed(discord_py_pointed: None) -> None:
    """Point discord.py to the sandbox."""


@pytest.fixture
async def idle(sandbox: SandboxClient, pointed: None) -> Rig:
    """A rig whose bot is not started yet."""
    return Rig(sandbox, str(await sandbox.guild_id()))


@pytest.fixture
async def rig(idle: Rig) -> AsyncIterator[Rig]:
    async with idle.running():
        yield idle


@pytest.fixture
async def full(idle: Rig) -> AsyncIterator[Rig]:
    """A rig whose cards offer everything: arguments can be edited, and decisions remembered up to "always"."""
    idle.reviser = EchoReviser()
    idle.desk.grants = GrantTerms(Remember.ALWAYS)
    idle.offers = Offers(grants=idle.desk.grants)
    async with idle.running():
        yield idle


@pytest.fixture
async def ada(sandbox: SandboxClient) -> Person:
    """The owner of the server."""
    return await sandbox.person("Ada")


@pytest.fixture
async def max_(sandbox: SandboxClient) -> Person:
    """An ordinary member."""
    return await sandbox.person("Max")
