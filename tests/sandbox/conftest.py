"""A sandbox in this process, its people, and an unmodified discord.py client pointed at it."""

from collections.abc import AsyncIterator, Iterator

import discord
import discord.gateway
import discord.http
import pytest
import yarl
from real_client import Bot, running

from signoff.sandbox import Plan, SandboxClient, SandboxServer


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
async def server(plan: Plan) -> AsyncIterator[SandboxServer]:
    async with SandboxServer(plan=plan) as started:
        yield started


@pytest.fixture
async def sandbox(server: SandboxServer) -> AsyncIterator[SandboxClient]:
    async with SandboxClient(server.control_url, server.key) as client:
        yield client


@pytest.fixture
def pointed(server: SandboxServer) -> Iterator[None]:
    """discord.py pointed at the sandbox, and back afterwards."""
    base, gateway = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
    discord.http.Route.BASE = server.api_url
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(server.gateway_url)
    yield
    discord.http.Route.BASE = base
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = gateway


@pytest.fixture
async def bot(pointed: None) -> AsyncIterator[Bot]:
    client = Bot()
    async with running(client):
        yield client
