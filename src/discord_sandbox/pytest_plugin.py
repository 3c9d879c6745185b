"""Fixtures for pytest. Use them with `pytest_plugins = ["discord_sandbox.pytest_plugin"]` in the top conftest.py.

Each test gets its own sandbox in the test's process. The plugin needs pytest and pytest-asyncio; pytest does not load
it by itself.
"""

from collections.abc import AsyncGenerator, Generator

import pytest
import pytest_asyncio

from discord_sandbox import discord_py
from discord_sandbox.client import SandboxClient
from discord_sandbox.seed import Plan
from discord_sandbox.server import SandboxServer

__all__ = ["discord_py_pointed", "sandbox", "sandbox_interaction_deadline", "sandbox_plan", "sandbox_server"]


@pytest.fixture
def sandbox_plan() -> Plan:
    """The world that a test starts with. Override this fixture to change the token, the names or the intents."""
    return Plan()


@pytest.fixture
def sandbox_interaction_deadline() -> float:
    """Seconds that the bot has for an interaction response. Discord gives 3; a busy test machine may need more."""
    return 30.0


@pytest_asyncio.fixture
async def sandbox_server(
    sandbox_plan: Plan, sandbox_interaction_deadline: float
) -> AsyncGenerator[SandboxServer, None]:
    """A running sandbox on a free port."""
    async with SandboxServer(plan=sandbox_plan) as server:
        server.sandbox.interactions.deadline = sandbox_interaction_deadline
        yield server


@pytest_asyncio.fixture
async def sandbox(sandbox_server: SandboxServer) -> AsyncGenerator[SandboxClient, None]:
    """A client for that sandbox, to act as its people and to change it."""
    async with SandboxClient(sandbox_server.control_url, sandbox_server.key) as client:
        yield client


@pytest.fixture
def discord_py_pointed(sandbox_server: SandboxServer) -> Generator[None]:
    """Points discord.py to that sandbox during the test, and back to Discord afterwards."""
    with discord_py.pointed_at(sandbox_server.api_url, sandbox_server.gateway_url):
        yield
