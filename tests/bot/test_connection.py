"""Logging in: every failure is one line that says what to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import discord
import discord.gateway
import discord.http
import pytest
from aiohttp import web

from discord_sandbox import SandboxClient, SandboxServer
from signoff.bot.access import Access
from signoff.bot.client import Bot, SignoffClient, intents
from signoff.bot.connection import point_at
from signoff.bot.front_end import DiscordFrontEnd
from signoff.cards.actions import Offers
from signoff.errors import LoginFailed, SettingsError
from tests.rigs.bot import TOKEN, Rig, until
from tests.rigs.bot_fakes import RecordingDesk, RecordingDriver


def fresh(driver: RecordingDriver | None = None) -> Bot:
    client = SignoffClient(guild_ready_timeout=0.05)
    front_end = DiscordFrontEnd(client, Offers(), time.time)
    return Bot(client, front_end, RecordingDesk(), driver or RecordingDriver(), Access())


async def failure(token: str = TOKEN) -> str:
    with pytest.raises(LoginFailed) as caught:
        await asyncio.wait_for(fresh().run(token), 20)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
async def webpage() -> AsyncIterator[int]:
    """Run a web server that is not Discord."""

    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="<h1>hello</h1>")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", hello)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


def test_no_privileged_intent_is_asked_for() -> None:
    assert intents().value == 4609
    assert not intents().message_content
    assert not intents().members


async def test_a_wrong_token(pointed: None) -> None:
    assert "DISCORD_TOKEN" in await failure("wrong")


async def test_nobody_listening(pointed: None) -> None:
    point_at("http://127.0.0.1:9/api/v10", None)
    line = await failure()
    assert "Cannot reach Discord at http://127.0.0.1:9/api/v10" in line
    assert "DISCORD_API_URL" in line


async def test_a_wrong_path(pointed: None, server: SandboxServer) -> None:
    point_at(server.api_url.replace("/api/", "/nowhere/"), None)
    line = await failure()
    assert "404" in line
    assert "DISCORD_API_URL" in line


async def test_something_that_is_not_discord(pointed: None, webpage: int) -> None:
    point_at(f"http://127.0.0.1:{webpage}/api/v10", None)
    assert "does not answer like Discord" in await failure()


async def test_a_gateway_that_is_not_there(pointed: None) -> None:
    point_at(None, "ws://127.0.0.1:9")
    started = time.monotonic()
    line = await failure()
    assert "gateway at ws://127.0.0.1:9" in line
    assert "DISCORD_GATEWAY_URL" in line
    assert time.monotonic() - started < 60


@pytest.mark.slow
async def test_a_gateway_that_is_not_a_gateway(pointed: None, webpage: int) -> None:
    point_at(None, f"ws://127.0.0.1:{webpage}")
    assert "DISCORD_GATEWAY_URL" in await failure()


async def test_a_refused_intent(pointed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    more = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
    monkeypatch.setattr("signoff.bot.client.intents", lambda: more)
    assert "Intents" in await failure()


async def test_a_token_revoked_while_connected(idle: Rig) -> None:
    bot = fresh()
    task = asyncio.create_task(bot.run(TOKEN))
    await until(bot.client.is_ready)
    await idle.sandbox.drop_sockets(resumable=False, code=4004)
    with pytest.raises(LoginFailed, match="DISCORD_TOKEN"):
        await asyncio.wait_for(task, 10)


async def test_closing_ends_the_run_quietly(pointed: None, sandbox: SandboxClient) -> None:
    bot = fresh()
    task = asyncio.create_task(bot.run(TOKEN))
    await until(bot.client.is_ready)
    await bot.client.close()
    await asyncio.wait_for(task, 5)


async def test_an_error_of_recovery_is_not_a_failed_login(pointed: None) -> None:
    class Failing(RecordingDriver):
        async def recover(self) -> None:
            raise ValueError("recovery's own")

    with pytest.raises(ValueError, match="recovery's own"):
        await fresh(Failing()).run(TOKEN)


@pytest.mark.parametrize(
    ("api", "gateway", "named"),
    [
        ("127.0.0.1:9000", None, "DISCORD_API_URL"),
        ("ws://127.0.0.1", None, "DISCORD_API_URL"),
        ("http://", None, "DISCORD_API_URL"),
        ("http://[bad", None, "DISCORD_API_URL"),
        (None, "http://127.0.0.1", "DISCORD_GATEWAY_URL"),
    ],
)
def test_urls_that_are_none(api: str | None, gateway: str | None, named: str) -> None:
    before = discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
    with pytest.raises(SettingsError, match=named):
        point_at(api, gateway)
    assert before == (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)
