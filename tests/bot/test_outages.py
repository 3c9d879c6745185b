"""Attack 56: Discord fails or is busy for a while. Nothing is cancelled, moved or ended for that."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import discord
import discord.gateway
import pytest
import yarl
from aiohttp import web

from discord_sandbox import Person, SandboxServer
from signoff.bot import connection, front_end, sending
from signoff.bot.connection import point_at
from signoff.errors import CardDelayed, LoginFailed
from tests.rigs.bot import TOKEN, Rig, until
from tests.rigs.bot_fakes import make_batch


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LOGIN_DELAYS", (0.01, 0.02))
    monkeypatch.setattr(sending, "DELAYS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(front_end, "CARD_DELAYS", (0.01, 0.01, 0.01))


async def test_one_failure_at_the_opening_of_the_thread_does_not_move_the_conversation(rig: Rig, max_: Person) -> None:
    await rig.sandbox.fault("POST", "/threads$", status=503)
    said = await max_.say("general", f"{rig.sandbox.mention} count the cats")
    await rig.hears()
    assert rig.driver.only.place.channel == str(said.id)
    assert (await rig.sandbox.channel(said.id)).name == "count the cats"


async def test_a_long_outage_does_not_move_it_either_and_the_reply_opens_the_thread(rig: Rig, max_: Person) -> None:
    await rig.sandbox.fault("POST", "/threads$", status=503, times=1000)
    said = await max_.say("general", f"{rig.sandbox.mention} count the cats")
    await rig.hears()
    await rig.sandbox.clear_faults()
    assert rig.driver.only.place.channel == str(said.id)
    await rig.front_end.reply(rig.driver.only, "three")
    await max_.wait_for_message(said.id, lambda m: m.text == "three")


async def test_a_refused_thread_still_moves_the_conversation(rig: Rig, max_: Person) -> None:
    await rig.sandbox.fault("POST", "/threads$", status=403, code=50013, times=1000)
    await max_.say("general", f"{rig.sandbox.mention} count the cats")
    await rig.hears()
    assert rig.driver.only.place.channel == (await rig.place()).channel
    assert len(await rig.sandbox.rest_calls("POST", "/threads$")) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_card_that_meets_a_busy_discord_is_delayed_and_not_failed(rig: Rig, max_: Person, status: int) -> None:
    batch = make_batch(await rig.place(), await rig.asker())
    await rig.sandbox.fault("POST", "/messages$", status=status, retry_after=0.01, times=1000)
    with pytest.raises(CardDelayed):
        await rig.front_end.post_card(batch)
    await rig.sandbox.clear_faults()
    await rig.front_end.post_card(batch)
    assert len([m for m in await max_.messages("general") if m.buttons]) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_an_outage_at_the_login_does_not_end_the_bot(
    idle: Rig, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    fault = {"status": status, "headers": {"Via": ""}} if status == 429 else {"status": status}
    await idle.sandbox.fault("GET", "/users/@me$", times=3, **fault)
    async with idle.running() as client:
        assert client.is_ready()
    told = [record.getMessage() for record in caplog.records if "Trying again" in record.getMessage()]
    assert len(told) == 3
    assert all(str(status) in line for line in told)


async def test_a_wrong_token_after_an_outage_ends_with_one_line(idle: Rig) -> None:
    await idle.sandbox.fault("GET", "/users/@me$", status=503)
    await idle.sandbox.settings(remove_token=TOKEN)
    with pytest.raises(LoginFailed, match="DISCORD_TOKEN"):
        async with idle.running():
            pass


@pytest.fixture
async def broken_gateway() -> AsyncIterator[str]:
    """Run a web server that answers every connection with 503."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=503)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"ws://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_an_outage_of_the_gateway_at_the_start_does_not_end_the_bot(
    idle: Rig, server: SandboxServer, broken_gateway: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    point_at(None, broken_gateway)

    async def recover() -> None:
        await until(lambda: any("gateway" in record.getMessage() for record in caplog.records))
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(server.gateway_url)

    repairing = asyncio.create_task(recover())
    async with idle.running() as client:
        await until(client.is_ready)
    await repairing
