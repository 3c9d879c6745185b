"""A budget on the running bot: the card that asks for more, an accept after a kill, and `/signoff usage`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.rigs.live_bot import CrashingRig
from tests.rigs.office import asks, commands_known, order, press, shows, staffed

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = """
[budgets]
tokens_per_thread = 30
overage_percent = 1000
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with staffed(tmp_path_factory.mktemp("budgets"), CONFIG) as running:
        yield running


async def test_a_used_up_thread_asks_and_goes_on_after_a_kill_and_an_accept(live: CrashingRig) -> None:
    asked = await live.ask("roll a dice")
    card = await live.card(asked.id, after=asked.id)
    assert "Tool Approval Required" in card.text
    assert "spend_more" in card.text
    assert "This thread has used" in card.text
    assert "of 30 tokens. Go on with 300 tokens more?" in card.text
    assert [button.label for button in card.buttons][:2] == ["Accept", "Reject"]
    await live.kill()
    await live.start()
    await commands_known(live)
    await press(live, card, "Accept")
    await shows(live, card, "APPROVED by", "The limit is")
    await live.ended(asked)
    usage = await order(live, "usage", where=asked.id)
    assert "**This thread**" in usage.text
    assert "**This server today**" in usage.text
    own = await order(live, "usage", who="Max")
    assert "**You today**" in own.text
    assert "server" not in own.text


async def test_a_rejected_overage_ends_the_run_with_a_sentence(live: CrashingRig) -> None:
    asked, card = await asks(live, "roll a dice")
    await press(live, card, "Reject")
    await shows(live, card, "REJECTED by")
    await live.sees(asked.id, "Ada rejected more. Completed calls are kept.")
