"""Starts `main.py` many times, each in its own process, and pays for the three seconds of imports only once.

As a program this module imports Signoff, then forks for every line of JSON that it reads. The child then behaves like
`python main.py ...` with its own folder, environment, arguments, output and exit code. Tests use `Launcher`. Another
test makes one whole start without this shortcut.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import runpy
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

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


@dataclass
class Launcher:
    process: asyncio.subprocess.Process

    async def run(
        self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, patience: float = 180.0
    ) -> Ended:
        """Run to the end. A process that does not end by itself is killed and fails the test."""
        assert self.process.stdin
        case = {"arguments": arguments, "folder": str(folder), "environment": dict(environment or {})}
        self.process.stdin.write(json.dumps(case).encode() + b"\n")
        await self.process.stdin.drain()
        number = int(await self._line())
        try:
            code = int(await asyncio.wait_for(self._line(), patience))
        except TimeoutError:
            os.kill(number, signal.SIGKILL)
            await self._line()
            code = -signal.SIGKILL
        return Ended(code, (folder / "stdout.txt").read_text(), (folder / "stderr.txt").read_text())

    async def _line(self) -> bytes:
        assert self.process.stdout
        return await self.process.stdout.readline()


@asynccontextmanager
async def launcher() -> AsyncGenerator[Launcher]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, stdin=pipe, stdout=pipe)
    try:
        ready = Launcher(process)
        assert await ready._line() == b"ready\n"
        yield ready
    finally:
        assert process.stdin
        process.stdin.close()
        await process.wait()


def serve() -> list[str] | None:
    """Fork for every request. Return the arguments in each child, and None in the parent at the end."""
    print("ready", flush=True)
    while line := sys.stdin.buffer.readline():
        case = json.loads(line)
        number = os.fork()
        if number == 0:
            become(Path(case["folder"]), case["environment"])
            return case["arguments"]
        print(number, flush=True)
        _, status = os.waitpid(number, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def become(folder: Path, environment: Mapping[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, "stdout.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, "stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        opened = os.open(name, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)


if __name__ == "__main__":
    import signoff.cli
    import signoff.commands.discord  # noqa: F401 - the command line imports it late, and it imports everything else

    gc.collect()
    gc.freeze()  # keep the collector away from imported modules: visiting them in a child would copy their memory
    if (arguments := serve()) is not None:
        sys.argv = [str(MAIN), *arguments]
        # Nothing is caught here: the interpreter turns exceptions into output and an exit code.
        runpy.run_path(str(MAIN), run_name="__main__")
