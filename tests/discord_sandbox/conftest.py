"""A sandbox in this process, its people, and an unmodified discord.py client pointed at it."""

from collections.abc import AsyncIterator

import pytest

from tests.rigs.real_client import Bot, running
from tests.rigs.sandboxed import plan, pointed, sandbox, server  # noqa: F401 - fixtures


@pytest.fixture
async def bot(pointed: None) -> AsyncIterator[Bot]:  # noqa: F811
    client = Bot()
    async with running(client):
        yield client
