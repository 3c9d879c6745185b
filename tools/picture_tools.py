"""Tools for the pictures in the documentation, loaded by the bot as a plugin. They do nothing but wait."""

import asyncio
from pathlib import Path

from pydantic_ai import Tool

STARTED = Path("started")
"""The tool creates this file in the bot's folder when a deployment has begun. The bot can then be killed during it."""


async def deploy(service: str, version: str, seconds: float = 0) -> str:
    """Deploy a version of a service."""
    if service == "legacy":
        raise ConnectionError("the host legacy-01 does not respond")
    STARTED.touch()  # noqa: ASYNC240 - one file, and nothing else runs here
    await asyncio.sleep(seconds)
    return f"{service} {version} is live"


tools = [Tool(deploy, requires_approval=True)]
