"""Runs discord.py in the same process as a sandbox: points it there, starts it, and stops it.

The sandbox does not depend on discord.py, so this module imports it only when one of these functions is called.
"""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

__all__ = ["knows_its_servers", "pointed_at", "running"]

STARTED_WITHIN = 60.0


@contextmanager
def pointed_at(api_url: str, gateway_url: str) -> Generator[None]:
    """Makes discord.py in this process talk to the sandbox, and not to Discord, while this context is open."""
    http: Any = importlib.import_module("discord.http")
    gateway: Any = importlib.import_module("discord.gateway")
    yarl: Any = importlib.import_module("yarl")
    route, socket = http.Route, gateway.DiscordWebSocket
    before = route.BASE, socket.DEFAULT_GATEWAY
    route.BASE, socket.DEFAULT_GATEWAY = api_url, yarl.URL(gateway_url)
    try:
        yield
    finally:
        route.BASE, socket.DEFAULT_GATEWAY = before


def knows_its_servers(client: Any) -> bool:
    """Whether a client is ready and has received all its servers. On a busy machine it can be ready before that."""
    return client.is_ready() and not any(guild.unavailable for guild in client.guilds)


@asynccontextmanager
async def running(client: Any, token: str, *, timeout: float = STARTED_WITHIN) -> AsyncGenerator[None]:
    """Logs a `discord.Client` in, waits until it knows its servers, and closes it at the end.

    Errors during the login are raised here. Pass `guild_ready_timeout=0.1` to the client: with discord.py's default,
    every start takes two seconds longer.
    """
    task = asyncio.create_task(client.start(token))
    try:
        async with asyncio.timeout(timeout):
            while not task.done() and not knows_its_servers(client):  # noqa: ASYNC110 - the client has no event for this
                await asyncio.sleep(0.005)
        if task.done():
            await task
        yield
    finally:
        await client.close()
        await asyncio.gather(task, return_exceptions=True)
