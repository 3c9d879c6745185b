"""The sandbox for a person: a Discord on loopback in one process, the real bot in another, both ended together.

The bot is the same program over the same sockets; it is only told another address, a token and a database of its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

from signoff.sandbox.process import sandbox_process

TOKEN = "sandbox-token"


async def sandbox(folder: Path, *, fresh: bool, program: list[str]) -> None:
    """Run both until interrupted. What they keep lies in `folder`, apart from any other database."""
    _prepare(folder, fresh)
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    async with sandbox_process("--token", TOKEN, state=folder / "world.json") as world:
        environment = os.environ | {
            "DISCORD_TOKEN": TOKEN,
            "DISCORD_API_URL": world.api_url,
            "DISCORD_GATEWAY_URL": world.gateway_url,
            "SIGNOFF_DATABASE_URL": f"sqlite:///{folder / 'signoff.db'}",
        }
        bot = await asyncio.create_subprocess_exec(*program, "discord", env=environment)
        print(f"Signoff sandbox: {world.ready_line}\nStop with Ctrl-C.", flush=True)
        stopping = asyncio.ensure_future(told.wait())
        ended = asyncio.ensure_future(bot.wait())
        await asyncio.wait({stopping, ended}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if bot.returncode is None:
            bot.terminate()
        await ended


def _prepare(folder: Path, fresh: bool) -> None:
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
