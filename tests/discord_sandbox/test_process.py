"""The sandbox as a process: one line of output, one world kept in a file, loopback only."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from discord_sandbox import SandboxClient, SandboxError, SandboxServer
from discord_sandbox.__main__ import parse
from discord_sandbox.process import sandbox_process
from discord_sandbox.server import NotLoopback

PARENT = """
import os, signal, subprocess, sys, time
from pathlib import Path

state = Path("world.json")
subprocess.Popen([sys.executable, "-m", "discord_sandbox", "--port", "0", "--with-parent", "--state", state])
while not state.exists():
    time.sleep(0.02)
time.sleep(0.2)
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A program that starts a sandbox and is killed when that one serves."""


@pytest.mark.slow
async def test_process_keeps_its_world_between_runs(tmp_path: Path) -> None:
    state = tmp_path / "world.json"
    async with sandbox_process("--token", "other-token", state=state) as first, first.client() as sandbox:
        assert first.ready_line.startswith(f"sandbox ready {first.api_url} {first.gateway_url} control ")
        max_ = await sandbox.person("Max")
        said = await max_.say("general", "remember", files={"a.bin": bytes(range(256))})
        await max_.open_thread("general", "memory", said)
        first.process.send_signal(signal.SIGTERM)
        assert await first.process.wait() == 0
    async with SandboxServer(state=state) as server, SandboxClient(server.control_url, server.key) as sandbox:
        max_ = await sandbox.person("Max")
        kept = (await max_.messages("general"))[0]
        assert (kept.id, kept.content) == (said.id, "remember")
        assert await sandbox.fetch(kept.files[0]["url"]) == bytes(range(256))
        assert (await sandbox.channel(said.id)).name == "memory"
        fresh = await max_.say("general", "new")
        assert fresh.id > said.id
        headers = {"Authorization": "Bot other-token"}
        url = server.api_url + "/users/@me"
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
            assert response.status == 200


@pytest.mark.slow
async def test_a_process_ends_with_a_parent_that_is_killed_if_it_is_told_to(tmp_path: Path) -> None:
    parent = tmp_path / "parent.py"
    parent.write_text(PARENT, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable, parent, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        # Both write to the same pipe, so its end is the end of both.
        said, _ = await asyncio.wait_for(process.communicate(), 60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert said.startswith(b"sandbox ready ")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "example.org"])
async def test_only_loopback_is_served(host: str) -> None:
    with pytest.raises(NotLoopback):
        SandboxServer(host=host)


async def test_control_needs_its_key(sandbox_server: SandboxServer) -> None:
    with pytest.raises(SandboxError, match="control key"):
        async with SandboxClient(sandbox_server.control_url, "guess"):
            pass


async def test_shutdown_request_stops_the_server(sandbox_server: SandboxServer, sandbox: SandboxClient) -> None:
    await sandbox.shutdown()
    await asyncio.wait_for(sandbox_server.stopped.wait(), 1)


def test_command_line_has_the_documented_options() -> None:
    options = parse(["--port", "0", "--token", "t", "--state", "x.json", "--message-content"])
    assert (options.host, options.port, options.token, options.message_content) == ("127.0.0.1", 0, "t", True)
