"""A schedule on the running bot: it is added with the command, runs once through a kill, and is recorded as it was."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing

import pytest
import pytest_asyncio

from tests.rigs.live_bot import CrashingRig
from tests.rigs.office import commands_known, order, staffed

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANAGE_SERVER, SEND_MESSAGES, OPEN_THREADS = 1 << 5, 1 << 11, 1 << 35
CONFIG = """
[schedules]
allow = true

[access]
channels = ["{ops}"]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with staffed(tmp_path_factory.mktemp("schedules"), CONFIG) as running:
        yield running


async def come_due(live: CrashingRig) -> None:
    """Let every schedule come due while the bot is down, and start the bot again."""
    await live.kill()
    with closing(sqlite3.connect(live.database)) as db, db:
        db.execute("UPDATE schedules SET due = ?", (time.time() - 5,))
    await live.start()
    await commands_known(live)


async def test_a_schedule_runs_once_by_its_own_mode_and_the_record_says_so(live: CrashingRig) -> None:
    channel = (await live.sandbox.channel("ops")).id
    prompt = 'please run the test approval tool with parameter "nightly"'
    options = {"cron": "0 3 * * *", "prompt": prompt, "channel": channel, "mode": "auto_deny"}
    added = await order(live, "schedule add", **options)
    assert "**Schedule 1**" in added.text
    assert "At 03:00 every day (UTC)" in added.text
    assert "Next run: <t:" in added.text
    await come_due(live)
    begun = await live.sees(channel, "Schedule 1 of", "nightly", "Mode auto_deny")
    await live.sees(begun.id, "rejected")
    (rejected,) = live.rows("SELECT actor, data FROM audit WHERE kind = 'rejected'")
    assert rejected[0] == "signoff"
    assert "mode auto_deny of schedule 1" in rejected[1]
    assert len(live.rows("SELECT 1 FROM scheduled_turns")) == 1
    listed = await order(live, "schedule list")
    assert "Last run: <t:" in listed.text
    assert "Removed" in (await order(live, "schedule remove", number=1)).text
    assert "no schedules" in (await order(live, "schedule list")).text


async def test_a_schedule_of_somebody_who_lost_manage_server_is_paused_and_admins_are_told(live: CrashingRig) -> None:
    channel = (await live.sandbox.channel("ops")).id
    await live.sandbox.create_role("Managers", MANAGE_SERVER)
    await live.sandbox.grant(live.people["Max"], "Managers")
    await order(live, "schedule add", who="Max", cron="0 4 * * *", prompt="roll a dice", channel=channel)
    await live.sandbox.revoke(live.people["Max"], "Managers")
    await come_due(live)
    await live.sees(channel, "For the admins: Schedule 2 is paused", "Max no longer has Manage Server")
    assert "Paused: Max no longer has Manage Server" in (await order(live, "schedule list")).text
    assert len(live.rows("SELECT 1 FROM scheduled_turns")) == 1, "only the run of the first schedule"


async def test_a_schedule_needs_a_channel_where_its_maker_and_the_bot_may_write(live: CrashingRig) -> None:
    """When it is added and when it runs."""
    ops, quiet = (await live.sandbox.channel("ops")).id, (await live.sandbox.create_channel("quiet")).id
    options = {"cron": "0 5 * * *", "prompt": "roll a dice"}
    await live.sandbox.create_role("Planners", MANAGE_SERVER)
    await live.sandbox.grant(live.people["Max"], "Planners")
    await live.sandbox.overwrite(quiet, "Planners", deny=SEND_MESSAGES)
    refused = await order(live, "schedule add", who="Max", channel=quiet, **options)
    assert "You may not write in that channel" in refused.text
    await live.sandbox.overwrite(quiet, live.sandbox.bot_id, deny=SEND_MESSAGES | OPEN_THREADS)
    refused = await order(live, "schedule add", channel=quiet, **options)
    assert "Not added, because I lack Send Messages in that channel." in refused.text
    await live.sandbox.overwrite(quiet, live.sandbox.bot_id)
    refused = await order(live, "schedule add", channel=quiet, **options)
    assert "each run would be refused: I don't take requests in this channel." in refused.text
    await order(live, "schedule add", who="Max", channel=ops, **options)
    await live.sandbox.overwrite(ops, "Planners", deny=SEND_MESSAGES)
    await come_due(live)
    await live.sees(ops, "For the admins: Schedule 3 is paused", "Max may no longer write in its channel")
