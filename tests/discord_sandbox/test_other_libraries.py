"""Parts of the protocol that libraries other than discord.py rely on, over raw sockets.

`make compat` connects the libraries themselves.
"""

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from discord_sandbox import Plan, SandboxClient, SandboxServer
from discord_sandbox.tokens import bot_id_in, token_for

HELLO, ACK = 10, 11


async def _talk(url: str, frames: list[Any], read: Callable[[aiohttp.WSMessage], Any], count: int) -> list[Any]:
    """Send frames and return the first `count` frames that come back."""
    async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as socket:
        for frame in frames:
            await socket.send_json(frame)
        return [read(await socket.receive(timeout=30)) for _ in range(count)]


def _identify() -> Any:
    return {"op": 2, "d": {"token": Plan.token, "intents": 513, "properties": {}}}


async def test_zlib_stream_is_one_compressed_stream_for_the_connection(sandbox_server: SandboxServer) -> None:
    inflate, sizes = zlib.decompressobj(), list[tuple[int, int]]()

    def read(message: aiohttp.WSMessage) -> Any:
        assert message.type == aiohttp.WSMsgType.BINARY
        assert message.data.endswith(b"\x00\x00\xff\xff")
        text = inflate.decompress(message.data)
        sizes.append((len(message.data), len(text)))
        return json.loads(text)

    frames = [_identify(), *({"op": 1, "d": None} for _ in range(3))]
    url = f"{sandbox_server.gateway_url}/?v=10&encoding=json&compress=zlib-stream"
    received = await _talk(url, frames, read, 6)
    assert received[0]["op"] == HELLO
    assert {frame["t"] for frame in received} >= {"READY", "GUILD_CREATE"}
    assert [frame["op"] for frame in received].count(ACK) == 3
    # The frames share one dictionary, so a repeated acknowledgement costs a few bytes.
    assert sizes[-1][0] < sizes[-1][1]


async def test_without_compression_frames_are_text(sandbox_server: SandboxServer) -> None:
    def read(message: aiohttp.WSMessage) -> Any:
        assert message.type == aiohttp.WSMsgType.TEXT
        return json.loads(message.data)

    received = await _talk(f"{sandbox_server.gateway_url}/?v=10&encoding=json", [_identify()], read, 3)
    assert [frame["t"] for frame in received] == [None, "READY", "GUILD_CREATE"]


async def test_the_default_token_names_the_bot(sandbox: SandboxClient, sandbox_server: SandboxServer) -> None:
    first, timestamp, last = sandbox_server.token.split(".")
    assert int(base64.b64decode(first + "=" * (-len(first) % 4))) == sandbox.bot_id
    assert timestamp
    assert len(last) < 27, "scanners for leaked secrets would take it for a real token"


@pytest.mark.parametrize("bot_id", [1, 123456789012345678, 1_100_000_000_000_000_001])
def test_a_token_and_its_bot(bot_id: int) -> None:
    assert bot_id_in(token_for(bot_id)) == bot_id


@pytest.mark.parametrize("token", ["", "word", "a.b", "YWJj.x.y", "MTIz.x", "é.x.y", "MTI.x.y.z", "M.x.y"])
def test_any_other_token_names_no_bot(token: str) -> None:
    assert bot_id_in(token) is None


class TestWithAWordForAToken:
    @pytest.fixture
    def sandbox_plan(self) -> Plan:
        return Plan(token="a-word", bot="Painter", server="Gallery")

    async def test_the_bot_gets_an_id_and_the_names_are_used(
        self, sandbox: SandboxClient, sandbox_server: SandboxServer
    ) -> None:
        headers = {"Authorization": "Bot a-word"}
        url = f"{sandbox_server.api_url}/users/@me"
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
            me = await response.json()
        assert (int(me["id"]), me["username"]) == (sandbox.bot_id, "Painter")
        assert await sandbox.guild_id("Gallery") == await sandbox.guild_id()


@pytest.mark.parametrize("asked", ["true", "True", "1", "false", ""])
async def test_a_bots_servers_come_with_counts_if_asked(
    sandbox_server: SandboxServer, sandbox: SandboxClient, asked: str
) -> None:
    url = f"{sandbox_server.api_url}/users/@me/guilds?with_counts={asked}"
    headers = {"Authorization": f"Bot {sandbox_server.token}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
        (server,) = await response.json()
    members = next(g for g in (await sandbox.world())["guilds"] if g["id"] == server["id"])["members"]
    expected = (len(members),) * 2 if asked in ("true", "True", "1") else (None, None)
    assert (server.get("approximate_member_count"), server.get("approximate_presence_count")) == expected


async def test_a_bots_servers_come_in_pages(sandbox_server: SandboxServer, sandbox: SandboxClient) -> None:
    """hikari asks for the page after the last server until a page is empty."""
    await sandbox.call("POST", "/members", {"do": "join", "user": str(sandbox.bot_id), "guild": "Other Place"})
    first, second = sorted([await sandbox.guild_id(), await sandbox.guild_id("Other Place")])
    pages = {
        "": [first, second],
        "limit=1": [first],
        f"after={first}": [second],
        f"after={second}": [],
        f"before={second}": [first],
        f"before={second + 1}&limit=1": [second],
    }
    headers = {"Authorization": f"Bot {sandbox_server.token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for query, expected in pages.items():
            async with session.get(f"{sandbox_server.api_url}/users/@me/guilds?{query}") as response:
                assert [int(server["id"]) for server in await response.json()] == expected, query
        async with session.get(f"{sandbox_server.api_url}/users/@me/guilds?limit=201") as response:
            assert (response.status, (await response.json())["code"]) == (400, 50035)
