"""Rate limits, errors and lost responses, and how discord.py handles them."""

import time

import aiohttp
import discord
import pytest

from discord_sandbox import Plan, SandboxClient, SandboxServer
from tests.rigs.real_client import Bot, text_channel


async def test_429_is_obeyed(bot: Bot, sandbox: SandboxClient) -> None:
    await sandbox.fault("POST", r"/messages$", status=429, retry_after=0.2)
    started = time.monotonic()
    await text_channel(bot).send("patience")
    assert time.monotonic() - started >= 0.2
    assert [call["status"] for call in await sandbox.rest_calls("POST", "/messages$")] == [429, 200]


async def test_buckets_are_per_channel_and_the_client_stays_within(bot: Bot, sandbox: SandboxClient) -> None:
    await sandbox.rate_limits([{"method": "POST", "path": r"/messages$", "limit": 2, "per": 0.3}])
    started = time.monotonic()
    for number in range(3):
        await text_channel(bot).send(str(number))
    assert time.monotonic() - started >= 0.25
    await text_channel(bot, "ops").send("own bucket")
    assert {call["status"] for call in await sandbox.rest_calls("POST", "/messages$")} == {200}


async def test_over_the_limit_is_429_with_headers(sandbox_server: SandboxServer, sandbox: SandboxClient) -> None:
    await sandbox.rate_limits([{"method": "GET", "path": r"/users/@me$", "limit": 1, "per": 60}], per_second=3)
    headers = {"Authorization": "Bot " + Plan.token}
    async with aiohttp.ClientSession(headers=headers) as session:
        statuses: list[int] = []
        for path in ("/users/@me", "/users/@me", "/gateway/bot", "/gateway/bot"):
            async with session.get(sandbox_server.api_url + path) as response:
                statuses.append(response.status)
                body = await response.json()
                if response.status == 429:
                    assert response.headers["Via"]
                    assert float(response.headers["Retry-After"]) > 0
        assert statuses == [200, 429, 200, 429]
        assert body["global"] is True


async def test_injected_error_has_the_code_asked_for(bot: Bot, sandbox: SandboxClient) -> None:
    await sandbox.fault("PATCH", r"/messages/", status=403, code=50013, message="Missing Permissions")
    sent = await text_channel(bot).send("x")
    with pytest.raises(discord.Forbidden):
        await sent.edit(content="y")
    await sent.edit(content="y")


async def test_lost_answer_and_the_nonce_that_heals_it(bot: Bot, sandbox: SandboxClient) -> None:
    """The call was carried out but its response was lost: sending again with the same nonce is safe."""
    await sandbox.fault("POST", r"/messages$", after=True, drop=True)
    with pytest.raises(aiohttp.ClientError):
        await text_channel(bot).send("once", nonce="n")
    await text_channel(bot).send("once", nonce="n")
    seen = await (await sandbox.person("Max")).messages("general")
    assert [message.content for message in seen] == ["once"]


async def test_slow_call_is_only_slow(bot: Bot, sandbox: SandboxClient) -> None:
    await sandbox.fault("POST", r"/typing$", delay=0.1)
    started = time.monotonic()
    await text_channel(bot).typing()
    assert time.monotonic() - started >= 0.1
    await sandbox.fault("POST", "", status=500, times=9)
    await sandbox.clear_faults()
    await text_channel(bot).send("fine")


async def test_a_forgotten_nonce_posts_twice(bot: Bot, sandbox: SandboxClient) -> None:
    await sandbox.settings(nonce_seconds=0)
    for _ in range(2):
        await text_channel(bot).send("twice", nonce="n")
    seen = await (await sandbox.person("Max")).messages("general")
    assert [message.content for message in seen] == ["twice", "twice"]
