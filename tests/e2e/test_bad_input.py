"""Bad input is never ignored: the process ends with one line that says what to do, or it continues and says so."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from discord_sandbox import Plan, SandboxServer
from discord_sandbox.permissions import Permission
from tests.rigs.live_bot import PATIENCE, STARTING, Rig, rig
from tests.rigs.mistakes import MISTAKES, SECRET, environment, only_line
from tests.rigs.preloaded import MAIN, Ended, Launcher, launcher

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def start() -> AsyncIterator[Launcher]:
    async with launcher() as ready:
        yield ready


@pytest.mark.parametrize(
    "name",
    [
        "no token",
        "a config with a syntax error",
        "an unknown model",
        "a database of a newer version",
        "a plugin that raises",
    ],
)
async def test_a_mistake_ends_the_process_with_one_line(start: Launcher, tmp_path: Path, name: str) -> None:
    """Five of the mistakes run in their own processes here; commands/test_mistakes.py has all, in one process."""
    mistake = MISTAKES[name]
    mistake.prepare(tmp_path)
    ended = await start.run(tmp_path, "discord", environment=environment(**mistake.environment))
    line = only_line(ended)
    assert [word for word in mistake.words if word not in line] == [], line


async def test_without_the_short_cut_it_is_the_same(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(MAIN), "discord",
        cwd=tmp_path, env=environment(DISCORD_TOKEN=""), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(process.communicate(), STARTING)
    assert process.returncode is not None
    assert "DISCORD_TOKEN is not set" in only_line(Ended(process.returncode, output.decode(), errors.decode()))


# Discord's refusals


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def discord() -> AsyncIterator[SandboxServer]:
    async with SandboxServer() as server:
        yield server


@asynccontextmanager
async def closing_gateway(code: int) -> AsyncGenerator[str]:
    """Run a gateway that closes the connection with this code when a client identifies."""

    async def serve(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        await websocket.send_json({"op": 10, "d": {"heartbeat_interval": 41250}, "s": None, "t": None})
        async for message in websocket:
            if json.loads(message.data)["op"] == 2:
                await websocket.close(code=code)
        return websocket

    async with serving(serve) as port:
        yield f"ws://127.0.0.1:{port}"


@asynccontextmanager
async def serving(handler: Callable[..., object]) -> AsyncGenerator[int]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)  # type: ignore[arg-type]
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def refused(start: Launcher, folder: Path, discord: SandboxServer, **further: str) -> str:
    addresses = {"DISCORD_API_URL": discord.api_url, "DISCORD_GATEWAY_URL": discord.gateway_url}
    token = {"DISCORD_TOKEN": Plan.token}
    ended = await start.run(folder, "discord", environment=environment(**(addresses | token | further)))
    assert Plan.token not in ended.errors + ended.output
    return only_line(ended)


async def test_a_wrong_token(start: Launcher, tmp_path: Path, discord: SandboxServer) -> None:
    line = await refused(start, tmp_path, discord, DISCORD_TOKEN=SECRET)
    assert "refused the token" in line
    assert "DISCORD_TOKEN" in line
    assert "developers/applications" in line


@pytest.mark.parametrize(("code", "words"), [(4013, "Intents"), (4014, "Intents"), (4004, "DISCORD_TOKEN")])
async def test_a_gateway_that_refuses(
    start: Launcher, tmp_path: Path, discord: SandboxServer, code: int, words: str
) -> None:
    async with closing_gateway(code) as url:
        line = await refused(start, tmp_path, discord, DISCORD_GATEWAY_URL=url)
    assert words in line
    assert "developers/applications" in line


async def test_a_wrong_path_of_the_api(start: Launcher, tmp_path: Path, discord: SandboxServer) -> None:
    line = await refused(start, tmp_path, discord, DISCORD_API_URL=discord.api_url.replace("/api/", "/nowhere/"))
    assert "404" in line
    assert "DISCORD_API_URL" in line


async def test_an_api_that_is_not_discords(start: Launcher, tmp_path: Path, discord: SandboxServer) -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<h1>hello</h1>", content_type="text/html")

    async with serving(page) as port:
        line = await refused(start, tmp_path, discord, DISCORD_API_URL=f"http://127.0.0.1:{port}/api/v10")
        assert "DISCORD_API_URL" in line
        line = await refused(start, tmp_path, discord, DISCORD_GATEWAY_URL=f"ws://127.0.0.1:{port}")
        assert "DISCORD_GATEWAY_URL" in line


async def test_a_gateway_that_is_not_there(start: Launcher, tmp_path: Path, discord: SandboxServer) -> None:
    line = await refused(start, tmp_path, discord, DISCORD_GATEWAY_URL="ws://127.0.0.1:9")
    assert "ws://127.0.0.1:9" in line
    assert "DISCORD_GATEWAY_URL" in line


async def test_a_port_in_use_for_the_sandbox() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "discord_sandbox", "--port", str(port),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, errors = await asyncio.wait_for(process.communicate(), STARTING)
    assert process.returncode == 1
    assert output == b""
    (line,) = errors.decode().splitlines()
    assert "cannot start" in line
    assert str(port) in line


# Missing permissions in a channel


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with rig(tmp_path_factory.mktemp("permissions")) as running:
        yield running


async def channel_without(live: Rig, name: str, denied: Permission) -> str:
    place = await live.sandbox.create_channel(name)
    await live.sandbox.overwrite(place, "Signoff", deny=int(denied))
    return str(place.id)


@pytest.mark.parametrize("denied", [Permission.CREATE_PUBLIC_THREADS, Permission.SEND_MESSAGES_IN_THREADS])
async def test_without_threads_it_asks_and_answers_in_place(live: Rig, denied: Permission) -> None:
    value = f"in-place-{int(denied)}"
    where = await channel_without(live, value, denied)
    await live.ask(f'call record {{"value": "{value}"}}', where=where)
    card = await live.card(int(where))
    assert value in card.text
    await live.people["Ada"].click(card, "Accept")
    await live.sees(int(where), f"recorded {value}")
    assert live.trace.count(f"record {value}") == 1


async def test_a_refused_thread_is_answered_in_place(live: Rig) -> None:
    await live.sandbox.fault("POST", "/messages/[0-9]+/threads", status=403, code=50013)
    place = await live.sandbox.create_channel("refused-thread")
    await live.ask('call free {"value": "anyway"}', where=str(place.id))
    await live.sees(place.id, "free anyway")
    assert live.trace.count("free anyway") == 1


async def test_without_files_a_long_card_offers_no_accept_and_says_why(live: Rig) -> None:
    where = await channel_without(live, "no-files", Permission.ATTACH_FILES)
    asked = await live.ask("please run the test approval tool with a long parameter of 20000 characters", where=where)
    card = await live.people["Ada"].wait_for_message(asked.id, lambda m: m.buttons, timeout=PATIENCE)
    assert [b.label for b in card.buttons] == ["Reject", "More…"]
    assert "Accept is not offered" in card.text
    assert "no file can be attached" in card.text
    await live.people["Ada"].click(card, "Reject")
    await live.people["Ada"].wait_for_change(card, lambda m: not m.buttons, timeout=PATIENCE)
    await live.sees(asked.id, "rejected")


async def test_a_card_that_cannot_be_posted_is_cancelled_and_that_is_said(live: Rig) -> None:
    place = await live.sandbox.create_channel("refused-card")
    await live.sandbox.fault("POST", "/channels/[0-9]+/messages$", status=403, code=50013)
    asked = await live.ask('call record {"value": "no card"}', where=str(place.id))
    await live.sees(asked.id, "could not ask for approval", "The calls that needed it were not run")
    await live.sees(asked.id, "cancelled", "people could not be asked")
    assert "record no card" not in live.trace


async def test_where_it_may_not_write_at_all_the_asker_is_told_privately(live: Rig) -> None:
    mute = Permission.SEND_MESSAGES | Permission.SEND_MESSAGES_IN_THREADS | Permission.CREATE_PUBLIC_THREADS
    where = await channel_without(live, "mute", mute)
    await live.ask('call record {"value": "mute"}', where=where)
    direct = await live.people["Max"].dm("Signoff")
    told = await live.sees(direct.id, "I cannot reply in", who="Max")
    assert "I lack Send Messages there. So I did not start." in told.text
    assert "record mute" not in live.trace
    assert [m.author for m in await live.people["Ada"].messages(where)] == ["Max"]


async def test_an_accept_that_was_not_offered_is_not_taken(live: Rig) -> None:
    where = await channel_without(live, "no-files-forged", Permission.ATTACH_FILES)
    asked = await live.ask("please run the test approval tool with a long parameter of 20000 characters", where=where)
    card = await live.people["Ada"].wait_for_message(asked.id, lambda m: m.buttons, timeout=PATIENCE)
    assert [b.label for b in card.buttons] == ["Reject", "More…"]
    forged = str(card.buttons[0].custom_id).replace("reject", "accept")
    await live.ask("say nothing", where=str(asked.id))
    for message in (card, await live.sees(asked.id, "Queued")):
        answer = await live.people["Ada"].click(message, forged, forged=True)
        assert answer.updated is None
        assert "Nothing was decided" in answer.text
    still = await live.people["Ada"].see(card)
    assert still is not None
    assert [b.label for b in still.buttons] == ["Reject", "More…"]
    await live.people["Ada"].click(card, "Reject")
    await live.sees(asked.id, "rejected")
    assert not any("successfully" in m.text for m in await live.people["Ada"].messages(asked.id))
