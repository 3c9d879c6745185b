"""A sandbox in a process of its own, for tests and tools.

This module starts `python -m discord_sandbox`, reads its first line, and ends it. It uses only the command line.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from discord_sandbox.client import SandboxClient

TOKEN_VARIABLE = "DISCORD_SANDBOX_TOKEN"
"""The environment variable with the bot's token. Unlike a command line, other users of the machine cannot read it."""


@dataclass(frozen=True)
class SandboxProcess:
    """A running sandbox: its addresses, the first line that it printed, and its process."""

    api_url: str
    gateway_url: str
    page_url: str
    ready_line: str
    process: asyncio.subprocess.Process

    def client(self) -> SandboxClient:
        """Returns a client for this sandbox."""
        return SandboxClient.from_ready_line(self.ready_line)


@asynccontextmanager
async def sandbox_process(
    *arguments: str, state: Path | None = None, port: int = 0, token: str | None = None, timeout: float = 120.0
) -> AsyncGenerator[SandboxProcess]:
    """Starts a sandbox in a process and ends it. Further arguments go to its command line."""
    command = ["-m", "discord_sandbox", "--port", str(port), *arguments]
    if state is not None:
        command += ["--state", str(state)]
    environment = None if token is None else os.environ | {TOKEN_VARIABLE: token}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE, env=environment
    )
    async with ready(process, timeout) as sandbox:
        yield sandbox


@asynccontextmanager
async def ready(process: asyncio.subprocess.Process, timeout: float = 120.0) -> AsyncGenerator[SandboxProcess]:
    """Waits until a process that was started with its output in a pipe serves, and ends it."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(timeout):
            line = (await process.stdout.readline()).decode().strip()
            words = line.split()
            if words[:2] != ["sandbox", "ready"]:
                raise RuntimeError(f"the sandbox did not start; it said {line!r}")
            page = (await process.stdout.readline()).decode().split()[1]
        yield SandboxProcess(words[2], words[3], page, line, process)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
