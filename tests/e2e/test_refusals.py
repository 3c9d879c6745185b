"""Attack 53 with the whole bot: a mention where Discord refuses every message costs a handful of requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discord_sandbox.permissions import Permission
from tests.rigs.live_bot import CrashingRig, rig

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = 7
"""Longer than the first retries of a delivery, which come after one and five seconds."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with rig(tmp_path_factory.mktemp("refusals"), kind=CrashingRig) as running:
        await running.sandbox.add_person("Max", accepts_dms=False)
        yield running


async def refused(live: CrashingRig, after: int) -> list[str]:
    calls = await live.sandbox.rest_calls(after=after)
    return [f"{call['method']} {call['path']}" for call in calls if call["status"] in (401, 403, 429)]


async def test_a_mention_in_a_closed_channel_costs_one_refusal_and_no_model_request(live: CrashingRig) -> None:
    denied = Permission.SEND_MESSAGES | Permission.SEND_MESSAGES_IN_THREADS | Permission.CREATE_PUBLIC_THREADS
    await live.sandbox.overwrite("ops", "Signoff", deny=int(denied))
    before = await live.sandbox.head()
    asked = await live.ask("hello", where="ops")
    await asyncio.sleep(SECONDS)
    assert live.state(asked) == ""
    assert len(await refused(live, before)) == 1


async def test_a_mention_that_discord_refuses_unexpectedly_costs_three_refusals(live: CrashingRig) -> None:
    before = await live.sandbox.head()
    await live.sandbox.fault("POST", r"/channels/\d+/", status=403, code=50013, times=1000)
    asked = await live.ask("hello")
    await asyncio.sleep(SECONDS)
    await live.sandbox.clear_faults()
    paths = await refused(live, before)
    assert [path.rsplit("/", 1)[1] for path in paths] == ["threads", "messages", "messages"]
    assert live.state(asked) == "done"
    before = await live.sandbox.head()
    await live.kill()
    await live.start()
    await asyncio.sleep(1)
    assert await refused(live, before) == []
