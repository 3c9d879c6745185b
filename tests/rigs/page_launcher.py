"""`python main.py sandbox` as a person starts it: its own process, its printed address, Ctrl-C, a kept world."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discord_sandbox import seed, state_file
from discord_sandbox.model import Guild, Overwrite
from discord_sandbox.permissions import Permission
from discord_sandbox.world import World
from tests.rigs.nursery import PIPE, STDOUT, Forked, execute

MAIN = Path(__file__).parents[2] / "main.py"
PATIENCE = 180.0


@dataclass
class Launched:
    folder: Path
    process: asyncio.subprocess.Process | Forked
    said: str = ""

    @property
    def address(self) -> str:
        return re.search(r"^Open (http://127\.0\.0\.1:\d+/\?token=\w+)$", self.said, re.M)[1]  # type: ignore[index]

    @property
    def log(self) -> str:
        return (self.folder / "data/sandbox/bot.log").read_text(encoding="utf-8")

    @property
    def database(self) -> Path:
        return self.folder / "data/sandbox/signoff.db"

    async def says(self, words: str) -> None:
        assert self.process.stdout
        async with asyncio.timeout(PATIENCE):
            while words not in self.said:
                line = await self.process.stdout.readline()
                assert line, f"it ended after saying {self.said!r}"
                self.said += line.decode()

    async def interrupt(self) -> int:
        """Send Ctrl-C to the whole process group, as a terminal does."""
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGINT)
        assert self.process.stdout
        async with asyncio.timeout(PATIENCE):
            self.said += (await self.process.stdout.read()).decode()
            return await self.process.wait()


@asynccontextmanager
async def launched(folder: Path, *arguments: str, forked: bool = True, **environment: str) -> AsyncGenerator[Launched]:
    """Start it, and end it as Ctrl-C does. Without `forked`, no process of it takes the shortcut of rigs/nursery.py."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SIGNOFF_", "DISCORD_", "OPENAI_", "ANTHROPIC_"))
    }
    options: dict[str, Any] = {
        "cwd": folder,
        "env": clean | environment,
        "stdout": PIPE,
        "stderr": STDOUT,
        "start_new_session": True,
    }
    if forked:
        process = await execute(str(MAIN), "sandbox", *arguments, **options, nested=True)
    else:
        process = await asyncio.create_subprocess_exec(sys.executable, str(MAIN), "sandbox", *arguments, **options)
    found = Launched(folder, process)
    try:
        yield found
    finally:
        if process.returncode is None:
            try:
                await found.interrupt()
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)


def put_into_the_lab(folder: Path, name: str, *roles: str, also: str | None = None) -> dict[str, str]:
    """Save a world, as an earlier start would, in which this person is a member of the lab with these roles.

    `also` names a second one.

    Return role name in lower case -> role id, for the lab's roles.
    """
    with _saved_lab(folder) as (world, lab):
        given = [next(role for role in lab.roles.values() if role.name == wanted) for wanted in roles]
        for person in [user for user in world.users.values() if user.name in (name, also)]:
            seed.join(world, lab, person, *given)
    return _role_ids(lab)


def put_approvals_channel(folder: Path) -> dict[str, str]:
    """Save a world, as an earlier start would, in which the lab has a channel that only admins and approvers see.

    Return role name in lower case -> role id, for the lab's roles, and "channel" -> the id of the channel.
    """
    with _saved_lab(folder) as (world, lab):
        channel = seed.new_channel(world, lab, "approvals")
        channel.overwrites.append(Overwrite(lab.id, 0, 0, Permission.VIEW_CHANNEL))
        insiders = [role for role in lab.roles.values() if role.name in ("Admins", "Approvers", "Signoff")]
        channel.overwrites += [Overwrite(role.id, 0, Permission.VIEW_CHANNEL, 0) for role in insiders]
    return _role_ids(lab) | {"channel": str(channel.id)}


@contextmanager
def _saved_lab(folder: Path) -> Generator[tuple[World, Guild]]:
    """Yield a new world and its lab, to be changed, and save the world where the sandbox finds it."""
    data = folder / "data/sandbox"
    data.mkdir(parents=True)
    (data / "token").write_text("kept-token", encoding="utf-8")
    (data / "token").chmod(0o600)
    world = seed.new_world(seed.Plan(token="kept-token", bot="Signoff", server="Signoff Lab"))
    yield world, next(guild for guild in world.guilds.values() if guild.name == "Signoff Lab")
    state_file.save_file(world, data / "world.json")


def _role_ids(lab: Guild) -> dict[str, str]:
    return {role.name.lower(): str(role.id) for role in lab.roles.values()}


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(status.parent.name))
    return found
