"""A backup beside the running bot, and the bot on the restored copy: open cards are closed, and nothing runs twice."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.rigs.live_bot import Rig, rig
from tests.rigs.preloaded import Launcher

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with rig(tmp_path_factory.mktemp("backup")) as running:
        yield running


async def command(live: Rig, *words: str) -> tuple[int, str]:
    ended = await Launcher().run(live.folder, *words, environment=live.environment)
    return ended.code, ended.output + ended.errors


async def test_a_call_that_ran_after_the_backup_does_not_run_again_after_the_restore(live: Rig) -> None:
    asked = await live.ask('call record {"value": "once"}')
    card = await live.card(asked.id)
    await live.until(lambda: live.rows("SELECT card FROM batches WHERE card IS NOT NULL"), "the card in the database")
    code, said = await command(live, "backup", "copy.db")
    assert code == 0, said
    assert (await command(live, "audit", "verify", "--database", "sqlite:///copy.db"))[0] == 0
    assert (await command(live, "backup", "copy.db"))[0] == 1
    code, said = await command(live, "restore", "copy.db", "--replace")
    assert code == 1
    assert "Already running" in said
    await live.people["Ada"].click(card, "Accept")
    await live.ended(asked)
    assert live.trace.count("record once") == 1
    await live.kill(signal.SIGTERM)
    code, said = await command(live, "restore", "copy.db", "--replace")
    assert code == 0, said
    await live.start()
    await live.sees(asked.id, "holds this request as unfinished")
    await live.closed(card, "restored from a backup")
    again = await live.ask('call free {"value": "after"}')
    await live.ended(again)
    assert live.trace.count("record once") == 1
    assert (await command(live, "audit", "verify"))[0] == 0
