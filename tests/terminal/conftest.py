from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.rigs.chat import Chat


@pytest_asyncio.fixture(loop_scope="module")
async def chat(live: Chat) -> AsyncIterator[Chat]:
    """The module's own `live` chat, at its prompt."""
    await live.idle()
    yield live
    if not live.text.endswith("you> "):
        # A failed test has left a card open: the others must not wait for it.
        await live.kill()
