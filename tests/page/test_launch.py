"""`python main.py sandbox` in a terminal: one address, clean ends, kept files, and errors in one line."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path

import aiohttp

from discord_sandbox import seed, state_file
from tests.rigs.page_launcher import PATIENCE, children_of, launched
from tests.rigs.real_client import until


def home(folder: Path) -> str:
    """Return the first server's id in the folder's world, to tell worlds apart."""
    return str(json.loads((folder / "data/sandbox/world.json").read_text(encoding="utf-8"))["guilds"][0]["id"])


def still_there(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


async def test_ctrl_c_ends_everything_and_the_world_lasts_until_fresh(tmp_path: Path) -> None:
    data = tmp_path / "data/sandbox"
    data.mkdir(parents=True)
    (data / "token").write_text("kept-token", encoding="utf-8")
    (data / "token").chmod(0o600)
    state_file.save_file(seed.new_world(seed.Plan(token="kept-token")), data / "world.json")
    worlds = [home(tmp_path)]
    for arguments in ((), ("--fresh",)):
        async with launched(tmp_path, *arguments, forked=False) as running:
            await running.says("Ctrl-C")
            async with aiohttp.ClientSession() as session, session.get(running.address) as answer:
                assert "Discord sandbox" in await answer.text()
            children = children_of(running.process.pid)
            assert await running.interrupt() == 0
            assert "Traceback" not in running.said
            assert running.said.count("\n") == 2
            assert still_there(children) == []
        worlds.append(home(tmp_path))
    assert worlds[0] == worlds[1] != worlds[2]
    assert not (tmp_path / "data/signoff.db").exists()
    assert (tmp_path / "data/sandbox/token").stat().st_mode & 0o077 == 0


async def test_a_taken_port_an_operators_own_rules_and_debugging(tmp_path: Path) -> None:
    (tmp_path / "signoff.toml").write_text('[approvals]\ntimeout = "1m"\n', encoding="utf-8")
    with socket.socket() as port:
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken = False
        with suppress(OSError):  # another sandbox may have the port, and may end before the one of this test starts
            port.bind(("127.0.0.1", 9000))
            port.listen()
            taken = True
        async with launched(tmp_path, SIGNOFF_LOG_LEVEL="DEBUG") as running:
            await running.says("Ctrl-C")
            assert not taken or ":9000/" not in running.address
            assert not (tmp_path / "data/sandbox/signoff.toml").exists()
            await running.says("tool roll_dice")  # in the terminal, because the level is DEBUG
            assert not (tmp_path / "data/sandbox/bot.log").exists()


async def test_a_second_sandbox_leaves_the_first_alone(tmp_path: Path) -> None:
    async with launched(tmp_path) as first:
        await first.says("Ctrl-C")
        await until(lambda: "signed in" in first.log)
        for arguments in ((), ("--fresh",)):
            async with launched(tmp_path, *arguments) as second:
                assert await asyncio.wait_for(second.process.wait(), PATIENCE) == 1
                assert second.process.stdout
                said = (await second.process.stdout.read()).decode()
            assert said.startswith(f"A sandbox is already running: process {first.process.pid} on ")
            assert said.count("\n") == 1
            assert "signed in" in first.log
            assert first.database.exists()
        assert await first.interrupt() == 0
    async with launched(tmp_path) as again:
        await again.says("Ctrl-C")


async def test_a_bot_that_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    async with launched(tmp_path, SIGNOFF_MODEL="no-such-provider:model") as running:
        code = await asyncio.wait_for(running.process.wait(), PATIENCE)
        assert running.process.stdout
        said = (await running.process.stdout.read()).decode()
    assert code == 1
    assert said.splitlines()[-1].startswith("signoff: ")
    assert "no-such-provider" in said
    assert "Traceback" not in said
