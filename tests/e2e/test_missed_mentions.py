"""Mentions that were sent while the bot was down are answered when it is back: late, said to be late, and once."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import Rig, rig

pytestmark = pytest.mark.asyncio(loop_scope="module")

LATE = "You asked this <t:"
UNTIL = "SELECT until FROM listening"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with rig(tmp_path_factory.mktemp("missed")) as running:
        await running.until(lambda: running.rows(UNTIL), "the note that the bot listens")
        yield running


async def back(live: Rig) -> None:
    """Start the bot again, and wait until it has found what it missed."""
    before = live.rows(UNTIL)
    await live.start()
    await live.until(lambda: live.rows(UNTIL) != before, "the end of the search for missed mentions")


async def replies(live: Rig, asked: SeenMessage, word: str) -> list[str]:
    return [m.text for m in await live.people["Ada"].messages(asked.id) if m.author == "Signoff" and word in m.text]


async def test_five_mentions_while_the_bot_was_killed_get_five_late_replies_and_none_twice(live: Rig) -> None:
    await live.kill(signal.SIGKILL)
    people = ["Ada", "Max", "Olga", "Max", "Ada"]
    asked = [await live.ask(f'call free {{"value": "missed{n}"}}', who) for n, who in enumerate(people)]
    await back(live)
    for number, message in enumerate(asked):
        await live.sees(message.id, LATE, "while I was offline", f"free missed{number}")
        await live.ended(message)
    order = [m for (m,) in live.rows("SELECT message FROM turns ORDER BY seq")]
    assert order == [str(message.id) for message in asked]
    for sign in (signal.SIGKILL, signal.SIGTERM):
        await live.kill(sign)
        await back(live)
    await live.rests()
    for number, message in enumerate(asked):
        assert len(await replies(live, message, f"free missed{number}")) == 1
        assert live.trace.count(f"free missed{number}") == 1


async def test_a_live_reply_says_nothing_about_being_late(live: Rig) -> None:
    asked = await live.ask('call free {"value": "live"}')
    reply = await live.sees(asked.id, "free live")
    assert LATE not in reply.text
