"""kill -9 at every step of a turn: no approval is lost, nothing runs twice, nothing is posted twice."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import PATIENCE, CrashingRig, rig

pytestmark = pytest.mark.asyncio(loop_scope="module")

DRIVER = "signoff.turns.driver:Driver"
SHOWING = "signoff.turns.delivery:Delivery"
DESK = "signoff.approvals.desk:Desk"
JOURNAL = "signoff.gate.journal:Journal"
RUNNER = "signoff.agent.runner:AgentRunner"
FRONT = "signoff.bot.front_end:DiscordFrontEnd"

CONFIG = """
[[rules]]
tool = "brief"
verdict = "ask"
timeout = "1500ms"
"""

BEFORE_THE_CARD = {
    "mention_stored": f"{DRIVER}.submit:after",
    "thread_opened": "signoff.bot.sending:open_thread:after",
    "turn_claimed": f"{RUNNER}.advance:before",
    "response_saved": "signoff.gate.gate:Gate.after_tool_validate:before",
    "call_ruled_to_ask": f"{DRIVER}._wait_for_people:before",
    "batch_opened": f"{DESK}.watch:before",
    "card_posted": f"{FRONT}.post_card:after",
    "card_id_stored": f"{SHOWING}.post_card:after",
}
AFTER_THE_CLICK = {
    "turn_claimed_with_the_decision": f"{DESK}._wake:before",
    "decision_committed": f"{DESK}.decide:after",
    "turn_claimed_again": f"{RUNNER}.advance:before",
    "call_about_to_start": f"{JOURNAL}.enter:before",
    "tool_noted_as_done": f"{JOURNAL}.done:after",
    "answer_known": f"{DRIVER}._end:before",
    "turn_finished": f"{FRONT}.reply:before",
    "reply_posted": f"{FRONT}.reply:after",
    "reply_noted": f"{SHOWING}.reply:after",
}
WHERE_IT_CANNOT_BE_KNOWN = {
    "call_started": f"{JOURNAL}.enter:after",
    "tool_ran_but_was_not_noted": f"{JOURNAL}.done:before",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with rig(tmp_path_factory.mktemp("crash"), CONFIG, kind=CrashingRig) as running:
        yield running


async def dies_and_starts_again(live: CrashingRig) -> None:
    await live.dies()
    await live.start()


async def decide_until_the_end(live: CrashingRig, asked: SeenMessage, choice: str = "Skip") -> list[SeenMessage]:
    """Press Accept, or `choice` on a card about a call that may have run, until the reply; return the cards."""
    pressed: dict[int, SeenMessage] = {}

    def next_step(message: SeenMessage) -> bool:
        return is_reply(message) or bool(message.buttons and message.id not in pressed)

    while True:
        found = await live.people["Ada"].wait_for_message(asked.id, next_step, timeout=PATIENCE)
        if not found.buttons:
            break
        labels = [button.label for button in found.buttons]
        pressed[found.id] = found
        await live.people["Ada"].click(found, "Accept" if "Accept" in labels else choice)
    await live.ended(asked)
    return [m for m in await live.people["Ada"].messages(asked.id) if "Request " in m.text and m.components]


def is_reply(message: SeenMessage) -> bool:
    return message.author == "Signoff" and "The offline demo model reports" in message.text


async def check_the_end(live: CrashingRig, asked: SeenMessage, cards: int) -> SeenMessage:
    """Check for one thread, one reply, closed cards and a finished turn; return the reply."""
    messages = await live.people["Ada"].messages(asked.id)
    replies = [m for m in messages if is_reply(m)]
    assert len(replies) == 1, [m.text for m in messages]
    found = [m for m in messages if m.components]
    assert len(found) == cards, [m.text for m in messages]
    for card in found:
        await live.closed(card)
    assert live.rows("SELECT state FROM turns WHERE message = ?", str(asked.id)) == [("done",)]
    opened = await live.sandbox.log(kind="world", name="thread.create")
    assert len([entry for entry in opened if str(asked.id) in str(entry["data"])]) == 1
    return replies[0]


@pytest.mark.parametrize("step", BEFORE_THE_CARD)
async def test_killed_on_the_way_to_the_card_the_turn_still_asks_once(live: CrashingRig, step: str) -> None:
    live.arm(BEFORE_THE_CARD[step])
    asked = await live.ask(f'call record {{"value": "{step}"}}')
    await dies_and_starts_again(live)
    assert f"record {step}" not in live.trace
    await decide_until_the_end(live, asked)
    reply = await check_the_end(live, asked, cards=1)
    assert f"recorded {step}" in reply.text
    assert live.trace.count(f"record {step}") == 1


@pytest.mark.parametrize("step", AFTER_THE_CLICK)
async def test_killed_after_the_click_the_tool_runs_once_and_nobody_is_asked_again(
    live: CrashingRig, step: str
) -> None:
    asked = await live.ask(f'call record {{"value": "{step}"}}')
    card = await live.card(asked.id)
    live.arm(AFTER_THE_CLICK[step])
    await live.people["Ada"].click(card, "Accept", wait=0)
    await dies_and_starts_again(live)
    await live.sees(asked.id, f"recorded {step}")
    await live.ended(asked)
    await live.closed(card, f"APPROVED by {live.people['Ada'].mention}")
    await check_the_end(live, asked, cards=1)
    assert live.trace.count(f"record {step}") == 1


@pytest.mark.parametrize("step", ["turn_claimed_with_the_decision", "decision_committed", "turn_claimed_again"])
async def test_killed_after_a_rejection_the_model_is_told_and_the_card_shows_it(live: CrashingRig, step: str) -> None:
    asked = await live.ask(f'call record {{"value": "rejected {step}"}}')
    card = await live.card(asked.id)
    live.arm(AFTER_THE_CLICK[step])
    await live.people["Ada"].click(card, "Reject", wait=0)
    await live.dies()
    assert live.rows("SELECT state FROM turns WHERE message = ?", str(asked.id)) == [("running",)]
    await live.start()
    await live.sees(asked.id, "Rejected by user Ada")
    await live.ended(asked)
    await live.closed(card, f"REJECTED by {live.people['Ada'].mention}")
    await check_the_end(live, asked, cards=1)
    assert f"record rejected {step}" not in live.trace


@pytest.mark.parametrize("step", WHERE_IT_CANNOT_BE_KNOWN)
async def test_killed_inside_the_call_the_card_says_it_may_have_run_and_skip_leaves_it(
    live: CrashingRig, step: str
) -> None:
    asked = await live.ask(f'call record {{"value": "{step}"}}')
    card = await live.card(asked.id)
    live.arm(WHERE_IT_CANNOT_BE_KNOWN[step])
    await live.people["Ada"].click(card, "Accept", wait=0)
    await dies_and_starts_again(live)
    again = await live.with_button(asked.id, "Skip")
    assert "may have run" in again.text
    assert [b.label for b in again.buttons] == ["It ran", "Run it again", "Skip"]
    await live.people["Ada"].click(again, "Skip")
    reply = await live.sees(asked.id, "it may have run", "not known")
    assert is_reply(reply)
    await live.ended(asked)
    await live.closed(again, "SKIPPED by")
    await check_the_end(live, asked, cards=2)
    assert live.trace.count(f"record {step}") == (step == "tool_ran_but_was_not_noted")


async def test_a_card_posted_but_not_noted_whose_deadline_passed_meanwhile_says_timeout(live: CrashingRig) -> None:
    live.arm(f"{FRONT}.post_card:after")
    asked = await live.ask('call brief {"value": "unnoted"}')
    card = await live.card(asked.id)
    await live.dies()
    ((deadline,),) = live.rows("SELECT deadline FROM batches ORDER BY opened DESC LIMIT 1")
    await live.until(lambda: time.time() > deadline, "the deadline")
    # The bot notices the deadline at once and learns the card's id a moment later.
    await live.sandbox.fault("POST", f"/channels/{asked.id}/messages", delay=0.5)
    await live.start()
    await live.sees(asked.id, "timed out")
    await live.ended(asked)
    await live.closed(card, "TIMEOUT - Request expired")
    await check_the_end(live, asked, cards=1)
    assert "brief unnoted" not in live.trace


@pytest.mark.parametrize("step", ["card_posted", "reply_posted"])
async def test_a_post_that_was_not_noted_is_found_again_after_discord_forgot_its_nonce(
    live: CrashingRig, step: str
) -> None:
    """Attack 55: killed between posting and noting. The first card takes the decision, and there is one reply."""
    await live.sandbox.settings(nonce_seconds=0)
    try:
        value = f"forgotten {step}"
        live.arm(BEFORE_THE_CARD.get(step) or AFTER_THE_CLICK[step])
        asked = await live.ask(f'call record {{"value": "{value}"}}')
        if step == "reply_posted":
            await live.people["Ada"].click(await live.card(asked.id), "Accept")
        await dies_and_starts_again(live)
        await decide_until_the_end(live, asked)
        reply = await check_the_end(live, asked, cards=1)
        assert f"recorded {value}" in reply.text
        assert live.trace.count(f"record {value}") == 1
    finally:
        await live.sandbox.settings(nonce_seconds=300)
