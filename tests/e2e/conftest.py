"""Tests of a file share one live bot: each begins when the turns of those before it are over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.rigs.live_bot import Rig


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def quiet() -> AsyncIterator[None]:
    """Cards that a file's own fixtures hold open are kept; what a test leaves behind, as a failing one does, is not."""
    for live in Rig.running:
        await live.rests()
    kept = {live: live.open_cards() for live in Rig.running}
    yield
    for live in Rig.running:
        await live.come_to_rest(kept.get(live, set()))
