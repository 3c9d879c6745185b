"""Questions to people with the real bot over sockets: a form on a card, and kill -9 at every step."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import CrashingRig
from tests.rigs.office import press, staffed, submit

pytestmark = pytest.mark.asyncio(loop_scope="module")

DRIVER = "signoff.turns.driver:Driver"
DESK = "signoff.approvals.desk:Desk"
JOURNAL = "signoff.gate.journal:Journal"
RUNNER = "signoff.agent.runner:AgentRunner"
FRONT = "signoff.bot.front_end:DiscordFrontEnd"
BEFORE_THE_CARD = {
    "call_started": f"{JOURNAL}.enter:after",
    "call_withdrawn": f"{JOURNAL}.withdraw:after",
    "batch_opened": f"{DESK}.watch:before",
    "card_posted": f"{FRONT}.post_card:after",
}
AFTER_THE_ANSWER = {
    "answer_committed": f"{DESK}.decide:after",
    "turn_claimed_again": f"{RUNNER}.advance:before",
    "answer_about_to_be_used": f"{JOURNAL}.enter:before",
    "answer_used": f"{JOURNAL}.enter:after",
    "reply_known": f"{DRIVER}._end:before",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with staffed(tmp_path_factory.mktemp("questions")) as running:
        yield running


def ask(*names: str) -> str:
    questions = [{"name": name, "question": f"What about {name}?"} for name in names]
    return f"call ask_user {json.dumps({'questions': questions})}"


async def answer(live: CrashingRig, card: SeenMessage, who: str, **values: str) -> Any:
    return await submit(live, await press(live, card, "Answer…", who), who, **values)


async def asks(live: CrashingRig, text: str) -> tuple[SeenMessage, SeenMessage]:
    asked = await live.ask(text)
    return asked, await live.with_button(asked.id, "Answer…")


@pytest.mark.parametrize("step", BEFORE_THE_CARD)
async def test_killed_on_the_way_to_the_card_it_still_asks_once(live: CrashingRig, step: str) -> None:
    live.arm(BEFORE_THE_CARD[step])
    asked = await live.ask(ask(step))
    await live.dies()
    await live.start()
    card = await live.with_button(asked.id, "Answer…")
    await answer(live, card, "Max", answer_0=f"answer to {step}")
    await live.sees(asked.id, f"answer to {step}", "ask_user: done")
    await live.ended(asked)
    await live.closed(card, f"ANSWERED by {live.people['Max'].mention}")
    cards = [m for m in await live.people["Ada"].messages(asked.id) if m.components and "Request " in m.text]
    assert len(cards) == 1


@pytest.mark.parametrize("step", AFTER_THE_ANSWER)
async def test_killed_after_the_answer_nobody_is_asked_again(live: CrashingRig, step: str) -> None:
    asked, card = await asks(live, ask(step))
    opened = await press(live, card, "Answer…", "Max")
    live.arm(AFTER_THE_ANSWER[step])
    await live.people["Max"].submit(opened, {"answer-0": f"answer to {step}"}, wait=0)
    await live.dies()
    await live.start()
    await live.sees(asked.id, f"answer to {step}", "ask_user: done")
    await live.ended(asked)
    await live.closed(card, f"ANSWERED by {live.people['Max'].mention}", f"answer to {step}")
    assert live.rows(
        "SELECT COUNT(*) FROM requests WHERE batch = (SELECT batch FROM turns WHERE message = ?)", str(asked.id)
    ) == [(1,)]


async def test_others_may_not_answer_and_the_second_answer_is_too_late(live: CrashingRig) -> None:
    asked, card = await asks(live, ask("colour"))
    refused = await press(live, card, "Answer…", "Olga")
    assert refused.modal is None
    assert "You may not answer this" in refused.text
    mine, hers = await press(live, card, "Answer…", "Max"), await press(live, card, "Answer…", "Ada")
    await submit(live, mine, "Max", answer_0="blue")
    late = await submit(live, hers, "Ada", answer_0="red")
    assert "ANSWERED by" in late.text
    reply = await live.sees(asked.id, "ask_user: done", "blue")
    assert "red" not in reply.text


async def test_the_model_learns_why_somebody_declined(live: CrashingRig) -> None:
    asked, card = await asks(live, ask("budget"))
    panel = await press(live, card, "More…", "Max")
    assert panel.reply is not None
    opened = await press(live, panel.reply, "Decline with a reason…", "Max")
    await submit(live, opened, "Max", reason="Ask the treasurer.")
    await live.sees(asked.id, "Max declined to answer", "Ask the treasurer.")
    await live.closed(card, f"DECLINED by {live.people['Max'].mention}", "Ask the treasurer.")
