"""Unpacks the files that commit dec12ae left, for a test: see tests/fixtures/dec12ae/README.md."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.rigs.live_bot import PATIENCE, Rig, patient
from tests.rigs.nursery import forked_sandbox

FIXTURE = Path(__file__).parents[1] / "fixtures" / "dec12ae"
TOKEN = "sandbox-token"
"""The bot's token in that world."""


def unpack(folder: Path) -> Path:
    """Put the files where the bot expects them, and the sandbox's world beside them; return the database's path."""
    database = folder / "data" / "signoff.db"
    database.parent.mkdir()
    database.write_bytes(gzip.decompress((FIXTURE / "signoff.db.gz").read_bytes()))
    shutil.copy(FIXTURE / "signoff.db.head", database.with_name("signoff.db.head"))
    shutil.copy(FIXTURE / "fixture_tools.py", folder)
    shutil.copy(FIXTURE / "configuration.toml", folder / "signoff.toml")
    (folder / "world.json").write_bytes(gzip.decompress((FIXTURE / "world.json.gz").read_bytes()))
    return database


@asynccontextmanager
async def restarted(folder: Path) -> AsyncGenerator[Rig]:
    """Run today's bot as a process on the old files, in a sandbox that shows the old world."""
    unpack(folder)
    async with forked_sandbox(state=folder / "world.json") as server, server.client() as sandbox:
        environment = {n: v for n, v in os.environ.items() if not n.startswith(("SIGNOFF_", "DISCORD_"))}
        environment |= {
            "DISCORD_TOKEN": TOKEN,
            "DISCORD_API_URL": server.api_url,
            "DISCORD_GATEWAY_URL": server.gateway_url,
            "SIGNOFF_TEST_TRACE": str(folder / "trace.txt"),
        }
        live = Rig(folder, sandbox, environment)
        await sandbox.settings(interaction_deadline=PATIENCE)
        for name in ("Ada", "Max", "Olga", "Nina", "Otto"):
            live.people[name] = patient(await sandbox.person(name))
        try:
            await live.start()
            yield live
        finally:
            await live.leave()
