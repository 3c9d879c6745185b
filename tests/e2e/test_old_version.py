"""An update from commit dec12ae: today's bot on the old files, with clicks on the old messages' old buttons."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import Rig
from tests.rigs.office import commands_known, order, press
from tests.rigs.old_version import restarted
from tests.rigs.preloaded import Launcher

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPEN = "1572009583180775424"
BATCHED = "1572009583541485568"
TWO_PEOPLE = "1572009584141271040"
DECIDED = "1572009584850108416"
"""These are the threads of the old conversations."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with restarted(tmp_path_factory.mktemp("old")) as running:
        yield running


async def card(live: Rig, thread: str, batch: str) -> SeenMessage:
    """Find the old message as it was posted: its buttons have the custom ids of dec12ae."""
    seen = await live.with_button(int(thread), "Accept")
    assert f"signoff:accept:{batch}:0:0" in [button.custom_id for button in seen.buttons]
    return seen


async def test_the_decided_run_goes_on(live: Rig) -> None:
    await live.wait_for_trace("record decided")
    await live.sees(int(DECIDED), "record decided")
    assert live.trace.count("record decided") == 1


async def test_the_old_accept_button_works(live: Rig) -> None:
    await live.people["Ada"].click(await card(live, OPEN, "06f7e92ef014a7b1"), "signoff:accept:06f7e92ef014a7b1:0:0")
    await live.wait_for_trace("record open")
    await live.sees(int(OPEN), "record open")


async def test_the_old_button_for_the_whole_batch_works(live: Rig) -> None:
    whole = "signoff:accept:18cdff5f6d7ec6ae:0:0"
    await live.people["Ada"].click(await card(live, BATCHED, "18cdff5f6d7ec6ae"), whole)
    for line in ("record batched", "free held", "free held as well"):
        await live.wait_for_trace(line)


async def test_the_old_vote_counts_and_the_second_one_settles(live: Rig) -> None:
    seen = await card(live, TWO_PEOPLE, "062ca0728556a0a9")
    again = await press(live, seen, "Accept", "Olga")
    assert "record two people" not in live.trace, again.text
    await press(live, seen, "Accept", "Nina")
    await live.wait_for_trace("record two people")


async def test_the_old_grant_applies_in_a_new_conversation(live: Rig) -> None:
    before = live.trace.count("record always")
    asked = await live.ask('call record {"value": "always"}', who="Nina")
    await live.ended(asked)
    assert live.trace.count("record always") == before + 1
    assert not live.rows("SELECT 1 FROM batches WHERE turn LIKE ? AND card IS NOT NULL", f"%{asked.id}")


async def test_the_old_pause_holds_until_it_is_lifted(live: Rig) -> None:
    await commands_known(live)
    assert "free queued" not in live.trace
    assert "Resumed" in (await order(live, "resume", who="Otto", where="lobby")).text
    await live.wait_for_trace("free queued")


async def test_the_record_is_intact(live: Rig) -> None:
    database = f"sqlite:///{live.database}"
    checked = await Launcher().run(live.folder, "audit", "verify", "--database", database, environment=os.environ)
    assert checked.code == 0, checked.output + checked.errors
    assert checked.output.startswith("intact: ")
