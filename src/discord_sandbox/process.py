"""A sandbox in a process of its own, for tests and tools that want real distance.

Starts `python -m discord_sandbox`, reads its one line, and ends it. It knows the command line only.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from discord_sandbox.client import SandboxClient


@dataclass(frozen=True)
class SandboxProcess:
    api_url: str
    gateway_url: str
    ready_line: str
    process: asyncio.subprocess.Process

    def client(self) -> SandboxClient:
        return SandboxClient.from_ready_line(self.ready_line)


@asynccontextmanager
async def sandbox_process(
    *arguments: str, state: Path | None = None, port: int = 0, timeout: float = 120.0
) -> AsyncGenerator[SandboxProcess]:
    """A running sandbox; further arguments are the command line's."""
    command = ["-m", "discord_sandbox", "--port", str(port), *arguments]
    if state is not None:
        command += ["--state", str(state)]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(timeout):
            line = (await process.stdout.readline()).decode().strip()
        words = line.split()
        if words[:2] != ["sandbox", "ready"]:
            raise RuntimeError(f"the sandbox did not start; it said {line!r}")
        yield SandboxProcess(words[2], words[3], line, process)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
