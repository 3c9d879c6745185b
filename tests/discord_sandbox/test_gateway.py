"""Logging in, being refused, and reconnecting after a lost socket, with an unmodified discord.py."""

import asyncio

import aiohttp
import discord
import pytest

from discord_sandbox import Plan, SandboxClient, SandboxServer
from tests.rigs.real_client import CHAT, PATIENCE, Bot, running, text_channel, until


async def test_client_logs_in_and_sees_its_server(bot: Bot) -> None:
    assert bot.user is not None
    assert bot.user.name == "Bot"
    guild = next(guild for guild in bot.guilds if guild.name == "Lab")
    assert {channel.name for channel in guild.text_channels} == {"general", "ops"}
    assert {role.name for role in guild.roles} >= {"@everyone", "Admins", "Approvers", "Bot"}
    assert guild.me.guild_permissions.send_messages_in_threads
    assert (await bot.application_info()).name == "Bot"


async def test_wrong_token_is_a_login_failure(discord_py_pointed: None) -> None:
    with pytest.raises(discord.LoginFailure):
        async with running(Bot(), "wrong"):
            pass


async def test_gateway_closes_4004_on_a_wrong_token(sandbox_server: SandboxServer) -> None:
    assert await _close_code(sandbox_server, {"op": 2, "d": {"token": "wrong", "intents": 1}}) == 4004


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"op": 3, "d": {}}, 4003),
        ({"op": 2, "d": {"token": Plan.token, "intents": 1 << 15}}, 4014),
        ({"op": 2, "d": {"token": Plan.token, "intents": 1 << 40}}, 4013),
        ({"op": 2, "d": {"token": Plan.token, "intents": 1, "shard": [2, 2]}}, 4010),
        ("nonsense", 4002),
    ],
)
async def test_gateway_close_codes(sandbox_server: SandboxServer, frame: object, code: int) -> None:
    assert await _close_code(sandbox_server, frame) == code


async def _close_code(sandbox_server: SandboxServer, frame: object) -> int | None:
    async with aiohttp.ClientSession() as session, session.ws_connect(sandbox_server.gateway_url) as socket:
        assert (await socket.receive_json())["op"] == 10
        await (socket.send_str(frame) if isinstance(frame, str) else socket.send_json(frame))
        async for _ in socket:
            pass
        return socket.close_code


@pytest.mark.slow
async def test_a_client_does_not_think_that_it_is_behind(discord_py_pointed: None, sandbox: SandboxClient) -> None:
    interval = 0.4
    await sandbox.settings(heartbeat_ms=interval * 1000)
    measured: list[float] = []

    class Measuring(Bot):
        async def on_socket_raw_receive(self, frame: str) -> None:
            if '"op": 11' in frame:
                measured.append(self.latency)

    async with running(Measuring(enable_debug_events=True)):
        await until(lambda: len(measured) > 5)
    assert max(measured) < interval, "an acknowledgement was compared with the heartbeat before"


async def test_privileged_intent_must_be_switched_on(discord_py_pointed: None, sandbox: SandboxClient) -> None:
    with pytest.raises(discord.PrivilegedIntentsRequired):
        async with running(Bot(CHAT | discord.Intents(message_content=True))):
            pass
    await sandbox.settings(message_content=True)
    async with running(Bot(CHAT | discord.Intents(message_content=True))) as _:
        pass


async def test_content_is_blank_without_the_intent(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    await max_.say("general", "not for you", files={"a.txt": b"x"})
    await max_.say("general", f"{sandbox.mention} for you")
    await bot.hears("for you")
    blank, clear = bot.heard
    assert (blank.content, blank.attachments) == ("", [])
    assert clear.mentions == [bot.user]
    history = [message.content async for message in text_channel(bot).history()]
    assert history == [clear.content, ""]


async def test_missed_events_are_replayed_after_a_dropped_socket(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    await sandbox.drop_sockets()
    await sandbox.wait_for("DISCONNECTED", kind="gateway")
    for number in range(3):
        await max_.say("general", f"{sandbox.mention} missed {number}")
    await bot.receives("RESUMED")
    await bot.hears("missed 2")
    assert [message.content[-1] for message in bot.heard] == ["0", "1", "2"]
    assert bot.events.count("READY") == 1


async def test_unresumable_drop_starts_a_new_session(bot: Bot, sandbox: SandboxClient) -> None:
    head = await sandbox.head()
    await sandbox.drop_sockets(resumable=False)
    await sandbox.wait_for("RESUME REFUSED", after=head)
    await until(lambda: bot.events.count("READY") == 2)


async def test_reconnect_request_is_followed_by_a_resume(bot: Bot, sandbox: SandboxClient) -> None:
    await sandbox.ask_reconnect()
    await bot.receives("RESUMED")
    await (await sandbox.person("Max")).say("general", f"{sandbox.mention} again")
    await bot.hears("again")


async def test_invalidated_session_is_resumed_or_begun_anew(bot: Bot, sandbox: SandboxClient) -> None:
    await sandbox.invalidate_sessions(resumable=True)
    await bot.receives("RESUMED")
    await sandbox.invalidate_sessions(resumable=False)
    await bot.receives("READY", 2)
    await (await sandbox.person("Max")).say("general", f"{sandbox.mention} still there?")
    await bot.hears("still there?")


async def test_bot_is_invited_and_removed(bot: Bot, sandbox: SandboxClient) -> None:
    myself = await sandbox.person("Bot")
    await sandbox.join(myself, "Other Place")
    await until(lambda: len(bot.guilds) == 2)
    await sandbox.leave(myself, "Other Place")
    await until(lambda: len(bot.guilds) == 1)


async def test_members_arrive_with_their_intent(discord_py_pointed: None, sandbox: SandboxClient) -> None:
    await sandbox.settings(members=True)
    bot = Bot(CHAT | discord.Intents(members=True))
    async with running(bot):
        guild = text_channel(bot).guild
        assert {member.name for member in guild.members} == {"ada", "max", "olga", "nina", "Bot", "Echo"}
        olga, max_ = await sandbox.person("Olga"), await sandbox.person("Max")
        await sandbox.revoke(olga, "Approvers")

        def roles() -> list[str]:
            member = guild.get_member(olga.id)
            return [role.name for role in member.roles] if member else []

        await until(lambda: roles() == ["@everyone"])
        await sandbox.leave(max_)
        await until(lambda: guild.get_member(max_.id) is None)
        assert [member.name for member in await guild.query_members("ol")] == ["olga"]


async def test_a_shard_hears_only_its_servers(sandbox_server: SandboxServer, sandbox: SandboxClient) -> None:
    guild = await sandbox.guild_id()
    owner = (guild >> 22) % 2
    max_ = await sandbox.person("Max")
    async with aiohttp.ClientSession() as session:
        sockets = []
        for number in (0, 1):
            socket = await session.ws_connect(sandbox_server.gateway_url)
            await socket.send_json({"op": 2, "d": {"token": Plan.token, "intents": 512, "shard": [number, 2]}})
            sockets.append(socket)
        await sandbox.wait_for("READY", kind="gateway", after=0)
        await until(lambda: len(sandbox_server.sandbox.sessions.live()) == 2)
        await max_.say("general", "hello shards")
        await _hears(sockets[owner], "MESSAGE_CREATE")
        assert "MESSAGE_CREATE" not in await _names(sockets[1 - owner])


async def _hears(socket: aiohttp.ClientWebSocketResponse, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await socket.receive_json())["t"] != name:
            pass


async def _names(socket: aiohttp.ClientWebSocketResponse) -> list[str]:
    """Return the names of the events that have arrived and are not read yet."""
    names: list[str] = []
    try:
        while True:
            names.append((await socket.receive_json(timeout=0.1))["t"])
    except TimeoutError:
        return names


class TestWithContent:
    @pytest.fixture
    def sandbox_plan(self) -> Plan:
        return Plan(message_content=True)

    async def test_other_bots_and_webhooks_are_marked(self, discord_py_pointed: None, sandbox: SandboxClient) -> None:
        bot = Bot(CHAT | discord.Intents(message_content=True))
        async with running(bot):
            await sandbox.post_as_webhook("deployed", username="CI")
            await (await sandbox.person("Echo")).say("general", "beep")
            deployed, beep = await bot.hears("deployed"), await bot.hears("beep")
            assert (deployed.author.bot, deployed.webhook_id is not None) == (True, True)
            assert (beep.author.bot, beep.webhook_id) == (True, None)


async def test_the_data_of_servers_can_be_held_back_and_sent_later(
    sandbox: SandboxClient, discord_py_pointed: None
) -> None:
    await sandbox.settings(hold_servers=True)
    bot = Bot()
    task = asyncio.create_task(bot.start(Plan.token))
    try:
        await bot.receives("READY")
        await until(lambda: bot.guilds)
        assert all(guild.unavailable for guild in bot.guilds)
        await sandbox.settings(hold_servers=False)
        await until(lambda: not any(guild.unavailable for guild in bot.guilds))
    finally:
        await bot.close()
        await asyncio.gather(task, return_exceptions=True)
