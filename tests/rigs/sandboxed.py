"""Fixtures for tests with a sandbox in their own process: the server, its client, and discord.py pointed there.

A folder's conftest imports them by name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import discord
import discord.gateway
import discord.http
import pytest
import yarl

from discord_sandbox import Plan, SandboxClient, SandboxServer

__all__ = ["plan", "pointed", "sandbox", "server"]

ANSWERED_WITHIN = 30.0
"""Seconds for a bot to answer a press. Discord gives three, which a noisy machine may need for itself."""


def at_home(client: discord.Client) -> bool:
    """Ready, and told of its servers: on a busy machine the library may be ready before it has heard of them."""
    return client.is_ready() and not any(guild.unavailable for guild in client.guilds)


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
async def server(plan: Plan) -> AsyncIterator[SandboxServer]:
    async with SandboxServer(plan=plan) as started:
        started.sandbox.interactions.deadline = ANSWERED_WITHIN
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
