"""SIGTERM: nothing new starts, running tools get their time, the process ends in time, the next start continues."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import PATIENCE, Rig, rig

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_MOST = 20.0
"""The bot promises to end within this many seconds after SIGTERM, whatever is in progress."""
NOISE = 15.0
"""Seconds that a busy machine may add. The limit still catches a lost signal, or waiting for a call of a minute."""


@dataclass(frozen=True)
class Departure:
    code: int
    seconds: float


async def terminate(live: Rig, patience: float = AT_MOST + NOISE) -> Departure:
    """Send SIGTERM and wait. A process that does not end is killed, and its exit code shows that."""
    assert live.bot
    begun = time.monotonic()
    if live.bot.returncode is None:
        live.bot.send_signal(signal.SIGTERM)
    return await departure(live, begun, patience)


async def departure(live: Rig, begun: float, patience: float = AT_MOST + NOISE) -> Departure:
    assert live.bot
    try:
        code = await asyncio.wait_for(live.bot.wait(), patience)
    except TimeoutError:
        code = await live.kill()
    return Departure(code, time.monotonic() - begun)


# A tool that ends in time


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with rig(tmp_path_factory.mktemp("leaving")) as running:
        yield running


async def test_a_tool_that_ends_in_time_keeps_its_result_and_whatever_waited_goes_on(live: Rig) -> None:
    ada = live.people["Ada"]
    waiting = await live.ask('call record {"value": "waiting"}')
    waiting_card = await live.card(waiting.id)
    clicked = await live.ask('call record {"value": "clicked"}')
    clicked_card = await live.card(clicked.id)
    running = await live.ask('call held {"value": "short"}', "Olga")
    await ada.click(await live.card(running.id), "Accept")
    await live.wait_for_trace("held start short")

    begun = time.monotonic()
    assert live.bot
    live.bot.send_signal(signal.SIGTERM)
    await live.until(lambda: "stopping" in live.output, "the farewell")
    answer = await ada.click(clicked_card, "Accept")
    assert not answer.failed
    meanwhile = await live.ask('call free {"value": "meanwhile"}', "Ada")
    opened = str(meanwhile.id)
    await live.sandbox.wait_for("thread.create", lambda data: opened in str(data), kind="world", timeout=PATIENCE)
    (live.folder / "release").touch()
    left = await departure(live, begun)
    assert left.code == 0, live.output[-2000:]
    assert left.seconds < AT_MOST + NOISE
    assert live.trace == ["held start short", "held end short"]
    assert live.rows("SELECT state FROM calls WHERE tool = 'held'") == [("done",)]

    await live.start()
    await live.sees(running.id, "held short")
    await live.sees(clicked.id, "recorded clicked")
    await live.sees(meanwhile.id, "free meanwhile")
    await ada.click(waiting_card, "Accept")
    await live.sees(waiting.id, "recorded waiting")
    for asked in (running, clicked, waiting):
        await live.ended(asked)
    await live.closed(clicked_card, "APPROVED by")
    await live.closed(waiting_card, "APPROVED by")
    assert all(live.trace.count(line) == 1 for line in live.trace), live.trace


async def test_with_nothing_under_way_it_leaves_at_once(live: Rig) -> None:
    left = await terminate(live)
    assert left.code == 0
    assert left.seconds < 15  # less than the grace that a running tool would get
    assert "Traceback" not in live.output
    assert "never retrieved" not in live.output


async def test_a_mention_in_the_last_instant_is_answered_in_its_thread_by_the_next_start(live: Rig) -> None:
    if not live.up:
        await live.start()
    before = len(live.output)
    await live.sandbox.fault("POST", "/threads", delay=60)
    asked = await live.ask('call free {"value": "at last"}')
    await live.until(lambda: live.state(asked) == "running", "the stored mention")
    left = await terminate(live)
    assert left.code == 0
    assert left.seconds < 15
    assert "Traceback" not in live.output[before:], live.output[before:]
    assert live.state(asked) == "running"
    await live.start()
    await live.sees(asked.id, "free at last")
    await live.ended(asked)


# A tool that takes too long


@dataclass(frozen=True)
class Overlong:
    """A bot that got SIGTERM during a call of a minute."""

    rig: Rig
    asked: SeenMessage
    card: SeenMessage
    left: Departure


@asynccontextmanager
async def overlong(folder_of: pytest.TempPathFactory, tool: str) -> AsyncGenerator[Overlong]:
    async with rig(folder_of.mktemp(tool)) as live:
        asked = await live.ask(f'call {tool} {{"value": "long", "seconds": 60}}')
        await live.people["Ada"].click(await live.card(asked.id), "Accept")
        await live.wait_for_trace(f"{tool} start long")
        waiting = await live.ask('call record {"value": "waiting"}')
        card = await live.card(waiting.id)
        yield Overlong(live, asked, card, await terminate(live))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def overlong_calls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Overlong]]:
    """Run both kinds at once, because most of the time is waiting."""
    async with AsyncExitStack() as stack:
        slow, blocking = await asyncio.gather(
            *(stack.enter_async_context(overlong(tmp_path_factory, tool)) for tool in ("slow", "blocking"))
        )
        yield {"slow": slow, "blocking": blocking}


@pytest.mark.parametrize("tool", ["slow", "blocking"])
async def test_it_leaves_within_twenty_seconds_whatever_runs(overlong_calls: dict[str, Overlong], tool: str) -> None:
    left = overlong_calls[tool].left
    assert left.code == 0
    assert left.seconds < AT_MOST + NOISE


@pytest.mark.parametrize("tool", ["slow", "blocking"])
async def test_a_call_cut_off_by_leaving_may_have_run_and_an_open_card_still_works(
    overlong_calls: dict[str, Overlong], tool: str
) -> None:
    live, card = overlong_calls[tool].rig, overlong_calls[tool].card
    await live.start()
    again = await live.with_button(overlong_calls[tool].asked.id, "Skip")
    assert "may have run" in again.text
    await live.people["Ada"].click(again, "Skip")
    await live.sees(overlong_calls[tool].asked.id, "it may have run")
    await live.people["Ada"].click(card, "Accept")
    await live.sees(card.channel_id, "recorded waiting")
    assert live.trace == [f"{tool} start long", "record waiting"]


# A model that does not respond


async def test_a_request_to_the_model_is_given_up_at_once_and_made_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    asked_model = asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked_model.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(never_answer, "127.0.0.1", 0)
    address = "http://{}:{}/v1".format(*server.sockets[0].getsockname())
    model = {"SIGNOFF_MODEL": "openai-chat:some-model", "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none"}
    async with server, rig(tmp_path_factory.mktemp("model"), start=False) as live:
        await live.start(**model)
        asked = await live.ask('call free {"value": "asked twice"}')
        await asyncio.wait_for(asked_model.wait(), PATIENCE)
        left = await terminate(live)
        assert left.code == 0, live.output[-2000:]
        assert left.seconds < 15  # less than the grace that a running tool would get
        assert live.state(asked) == "running"
        await live.start()
        await live.sees(asked.id, "free asked twice")
        assert live.trace == ["free asked twice"]
