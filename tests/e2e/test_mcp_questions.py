"""An MCP server that asks people while its tool runs, with a real bot and a real server process."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.rigs.live_bot import FreshRig, Rig, rig
from tests.rigs.office import submit

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASKING_TOOLS = Path(__file__).parents[1] / "rigs" / "asking_tools.py"
CONFIG = f"""
[[rules]]
tool = "desk_*"
verdict = "allow"

[mcp.desk]
command = {json.dumps([sys.executable, str(ASKING_TOOLS), "desk.txt"])}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with rig(tmp_path_factory.mktemp("questions"), CONFIG, kind=FreshRig) as running:
        yield running


def runs(live: Rig) -> int:
    return (live.folder / "desk.txt").read_text().count('"tool": "ask"')


async def test_killed_while_the_server_waits_the_card_is_cancelled_and_the_call_may_have_run(live: Rig) -> None:
    asked = await live.ask("call desk_ask {}")
    card = await live.sees(asked.id, "desk_ask", "Request ")
    assert runs(live) == 1
    await live.kill()
    await live.start()
    again = await live.with_button(asked.id, "Skip")
    assert "may have run" in again.text
    await live.closed(card, "the bot was restarted")
    await live.people["Ada"].click(again, "Skip")
    await live.sees(asked.id, "it may have run", "not known")
    await live.ended(asked)
    assert runs(live) == 1, "it ran again, although nobody wanted that"


async def test_a_form_on_the_card_answers_the_server_and_the_call_ends_with_its_result(live: Rig) -> None:
    before = runs(live)
    asked = await live.ask("call desk_ask {}")
    card = await live.with_button(asked.id, "Answer…")
    assert "Who are you?" in card.text
    opened = await live.people["Ada"].click(card, "Answer…")
    await submit(live, opened, "Ada", answer_0="Ada Lovelace")
    await live.sees(asked.id, "accept", "Ada Lovelace")
    await live.closed(card, f"ANSWERED by {live.people['Ada'].mention}")
    await live.ended(asked)
    assert runs(live) == before + 1


async def test_the_server_is_told_that_somebody_declined(live: Rig) -> None:
    asked = await live.ask("call desk_ask {}")
    card = await live.with_button(asked.id, "Decline")
    await live.people["Ada"].click(card, "Decline")
    await live.sees(asked.id, "decline")
    await live.ended(asked)


async def test_a_bot_that_is_stopped_while_a_server_waits_ends_and_leaves_no_process_behind(live: Rig) -> None:
    asked = await live.ask("call desk_ask {}")
    await live.sees(asked.id, "desk_ask", "Request ")
    started = [json.loads(line) for line in (live.folder / "desk.txt").read_text().splitlines() if "started" in line]
    assert await live.kill(signal.SIGTERM) == 0
    await live.until(lambda: not Path(f"/proc/{started[-1]['started']}").exists(), "the end of the server")
    assert "Traceback" not in live.output
    await live.start()
    again = await live.with_button(asked.id, "Skip")
    await live.people["Ada"].click(again, "Skip")
    await live.ended(asked)
