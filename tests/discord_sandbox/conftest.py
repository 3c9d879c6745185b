"""An unmodified discord.py client, pointed at a sandbox in this process and running there."""

from collections.abc import AsyncIterator

import pytest

from tests.rigs.real_client import Bot, running


@pytest.fixture
async def bot(discord_py_pointed: None) -> AsyncIterator[Bot]:
    client = Bot()
    async with running(client):
        yield client
