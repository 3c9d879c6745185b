"""The time, git and fetch servers from the registry, as they are: card with arguments, accept, result.

The filesystem and everything servers are checked in `make compat`, which installs them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from signoff.agent.mcp import server_in
from signoff.cards.build import build_card
from signoff.store import Store
from signoff.turns.model import Finished, Step
from tests.conftest import HandClock
from tests.rigs.mcp_shop import Shop, batch_of
from tests.rigs.scripted import calls

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

CONFIG = """
[mcp.time]
command = ["{python}", "-m", "mcp_server_time", "--local-timezone", "UTC"]
start = "60s"

[mcp.git]
command = ["{python}", "-m", "mcp_server_git", "--repository", "{folder}"]
trusted = true
prefix = ""
start = "60s"

[mcp.web]
command = ["{python}", "-m", "mcp_server_fetch", "--allow-private-ips"]
tools = ["fetch"]
start = "60s"
"""
PAGE = b"<html><body><article><h1>News</h1><p>The fence is painted, and it is red all over.</p></article></body></html>"


async def git(folder: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec("git", *arguments, cwd=folder, stdout=asyncio.subprocess.PIPE)
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0
    return output


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """One agent with all three servers, which run until the last test has ended."""
    folder = tmp_path_factory.mktemp("servers")
    for command in ("init --quiet", "config user.name Ada", "config user.email ada@example.org"):
        await git(folder, *command.split())
    async with await Store.open(f"sqlite:///{tmp_path_factory.mktemp('store') / 'signoff.db'}") as store:
        shop = Shop(folder, store, HandClock())
        shop.open(CONFIG.format(python=sys.executable, folder=folder))
        yield shop
        assert shop.runner
        for toolset in shop.runner.agent.toolsets:
            if server := server_in(toolset):
                await server.end()


def shown(step: Step) -> str:
    return str(build_card(batch_of(step), now=batch_of(step).opened))


async def test_the_time_server(shop: Shop) -> None:
    args = {"source_timezone": "Europe/Paris", "time": "12:30", "target_timezone": "UTC"}
    step = await shop.ask(calls(("time_convert_time", args)), "it is early")
    card = shown(step)
    assert "Convert time between timezones" in card
    assert "Its MCP server claims, unchecked: read-only, not destructive" in card
    assert "Europe/Paris" in card
    assert isinstance(await shop.accept(step), Finished)
    assert "time_difference" in shop.script.results["call_0"]


async def test_the_time_server_refuses_by_its_schema_before_anybody_is_asked(shop: Shop) -> None:
    step = await shop.ask(calls(("time_convert_time", {"time": 5})), "I cannot")
    assert isinstance(step, Finished)
    assert "'source_timezone' is a required property" in shop.script.results["call_0"]


async def test_the_git_server(shop: Shop) -> None:
    repository = str(shop.folder)
    (shop.folder / "fence.txt").write_text("red")
    step = await shop.ask(calls(("git_status", {"repo_path": repository})), "one new file")
    assert isinstance(step, Finished)  # it only reads, and the operator trusts the server
    assert "fence.txt" in shop.script.results["call_0"]
    step = await shop.ask(calls(("git_add", {"repo_path": repository, "files": ["fence.txt"]})), "added")
    await shop.accept(step)
    step = await shop.ask(calls(("git_commit", {"repo_path": repository, "message": "Paint the fence"})), "done")
    assert "Paint the fence" in shown(step)
    await shop.accept(step)
    assert await git(shop.folder, "log", "--format=%an %s") == "Ada Paint the fence\n"


async def test_the_git_servers_destructive_tool_is_warned_about(shop: Shop) -> None:
    step = await shop.ask(calls(("git_reset", {"repo_path": str(shop.folder)})), "unstaged")
    assert "this tool is marked destructive: it may be impossible to undo what it does" in shown(step)
    await shop.accept(step)
    assert "reset" in shop.script.results["call_0"].lower()


async def test_the_fetch_server(shop: Shop) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wanted = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        status, body = (b"404 Not Found", b"") if wanted == b"/robots.txt" else (b"200 OK", PAGE)
        head = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        # Otherwise the server would install a program of its own to simplify the page.
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/news"
        step = await shop.ask(calls(("web_fetch", {"url": url, "raw": True})), "the fence is red")
        assert url in shown(step)
        assert isinstance(await shop.accept(step), Finished)
    assert "The fence is painted" in shop.script.results["call_0"]
