"""Tests of a file share one live bot: each begins when all turns before it have ended."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.rigs.live_bot import Rig


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def quiet() -> AsyncIterator[None]:
    """Keep the cards that a file's own fixtures leave open; reject those that a test, such as a failing one, left."""
    for live in Rig.running:
        await live.rests()
    kept = {live: live.open_cards() for live in Rig.running}
    yield
    for live in Rig.running:
        await live.come_to_rest(kept.get(live, set()))
