"""The real bot against a sandbox over real sockets, and two of its people."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import discord
import discord.gateway
import discord.http
import pytest
from bot_rig import Rig

from signoff.bot.client import point_at
from signoff.sandbox import Person, SandboxClient, SandboxServer


@pytest.fixture
async def server() -> AsyncIterator[SandboxServer]:
    async with SandboxServer() as started:
        yield started


@pytest.fixture
async def sandbox(server: SandboxServer) -> AsyncIterator[SandboxClient]:
    async with SandboxClient(server.control_url, server.key) as client:
        yield client


@pytest.fixture
def pointed(server: SandboxServer) -> Iterator[None]:
    base, gateway = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
    point_at(server.api_url, server.gateway_url)
    yield
    discord.http.Route.BASE = base
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = gateway


@pytest.fixture
async def idle(sandbox: SandboxClient, pointed: None) -> Rig:
    """A rig whose bot is not started yet."""
    return Rig(sandbox, str(await sandbox.guild_id()))


@pytest.fixture
async def rig(idle: Rig) -> AsyncIterator[Rig]:
    async with idle.running():
        yield idle


@pytest.fixture
async def ada(sandbox: SandboxClient) -> Person:
    """Owner of the server."""
    return await sandbox.person("Ada")


@pytest.fixture
async def max_(sandbox: SandboxClient) -> Person:
    """An ordinary member."""
    return await sandbox.person("Max")
