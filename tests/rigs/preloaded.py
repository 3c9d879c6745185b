"""Runs `main.py` to its end, with its own folder, environment, arguments, output and exit code; see rigs/nursery.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.rigs.nursery import PIPE, execute

MAIN = Path(__file__).parents[2] / "main.py"


@dataclass(frozen=True)
class Ended:
    code: int
    output: str
    errors: str

    @property
    def complaints(self) -> list[str]:
        """The lines on stderr without harmless log lines."""
        lines = self.errors.splitlines()
        return [line for line in lines if " INFO " not in line and " WARNING discord.client: " not in line]


class Launcher:
    async def run(
        self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, patience: float = 180.0
    ) -> Ended:
        """Run to the end. A process that does not end by itself is killed and fails the test."""
        process = await execute(str(MAIN), *arguments, cwd=folder, env=environment or {}, stdout=PIPE, stderr=PIPE)
        killing = asyncio.get_running_loop().call_later(patience, process.kill)
        output, errors = await process.communicate()
        killing.cancel()
        return Ended(await process.wait(), output.decode(), errors.decode())


@asynccontextmanager
async def launcher() -> AsyncGenerator[Launcher]:
    yield Launcher()
