"""`/signoff` pause, resume and stop, with many runs in progress and many cards open, and across kill -9."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import PATIENCE, CrashingRig
from tests.rigs.office import PEOPLE, asks, order, press, staffed

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANY = 10
CONFIG = f"""{PEOPLE}
[access]
dm_users = ["{{max}}"]

[limits]
turns_per_person = 30
queue_per_person = 30

[[rules]]
tool = "held"
verdict = "allow"
"""
"""The tool `held` runs without asking until a test releases it, so a run lasts as long as a test wants."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with staffed(tmp_path_factory.mktemp("orders"), CONFIG) as running:
        yield running


@pytest.fixture(autouse=True)
def unreleased(live: CrashingRig) -> None:
    (live.folder / "release").unlink(missing_ok=True)


def release(live: CrashingRig) -> None:
    (live.folder / "release").touch()


async def run_under_way(live: CrashingRig, name: str) -> SeenMessage:
    """Start a run that is inside a tool and would call another one afterwards."""
    asked = await live.ask(f'call held {{"value": "{name}"}}; then call free {{"value": "{name}"}}')
    await live.wait_for_trace(f"held start {name}")
    return asked


async def card_open(live: CrashingRig, name: str) -> tuple[SeenMessage, SeenMessage]:
    return await asks(live, f'call record {{"value": "{name}"}}', who="Olga")


def started_between(live: CrashingRig, since: float, until: float) -> list[str]:
    """Return the calls that began between two times, according to the bot's own record."""
    rows = live.rows("SELECT tool FROM audit WHERE kind = 'started' AND at > ? AND at < ?", since, until)
    return [tool for (tool,) in rows]


def moment(live: CrashingRig, kind: str) -> float:
    ((at,),) = live.rows("SELECT MAX(at) FROM audit WHERE kind = ?", kind)
    return at


async def elsewhere(live: CrashingRig, name: str) -> None:
    """Make a whole run where nothing is paused, so that anything else that could run has run by then."""
    max_ = live.people["Max"]
    direct = await max_.dm(live.sandbox.bot_id)
    await max_.say(direct, f'call peek {{"value": "{name}"}}; then call peek {{"value": "{name} again"}}')
    await max_.wait_for_message(direct, lambda m: f"{name} again" in m.text and m.author == "Signoff", timeout=PATIENCE)


@pytest.mark.long
async def test_pause_halts_ten_runs_and_ten_cards_and_resume_brings_them_back(live: CrashingRig) -> None:
    runs = await asyncio.gather(*(run_under_way(live, f"run {n}") for n in range(MANY)))
    cards = await asyncio.gather(*(card_open(live, f"card {n}") for n in range(MANY)))

    answer = await order(live, "pause")
    assert f"{MANY} open cards cancelled" in answer.text
    await asyncio.gather(*(live.closed(card, "CANCELLED - paused by Ada") for _, card in cards))
    late = await press_absent(live, cards[0][1])
    assert "paused by Ada" in late

    release(live)
    await asyncio.gather(*(live.wait_for_trace(f"held end run {n}") for n in range(MANY)))
    queued = [await live.ask(f'call free {{"value": "queued {n}"}}', who="Nina") for n in range(3)]
    for asked in queued:
        await live.sees(asked.id, "Queued: Ada has paused me")
    await live.until(
        lambda: live.rows("SELECT COUNT(*) FROM calls WHERE tool = 'held' AND state = 'done'") == [(MANY,)],
        "all ten runs at their next step",
    )
    await elsewhere(live, "paused there")
    assert not [line for line in live.trace if line.startswith(("free", "record"))]
    assert "**Paused**" in (await order(live, "policy")).text

    assert "Resumed" in (await order(live, "resume")).text
    for n in range(MANY):
        await live.wait_for_trace(f"free run {n}")
    for asked in (*runs, *queued, *(asked for asked, _ in cards)):
        await live.ended(asked)
    for asked, _ in cards:
        await live.sees(asked.id, "record: cancelled", "paused by Ada")
    assert sorted(line for line in live.trace if line.startswith(("free", "record"))) == sorted(
        [*(f"free run {n}" for n in range(MANY)), *(f"free queued {n}" for n in range(3))]
    )
    assert set(started_between(live, moment(live, "paused") + 1.0, moment(live, "resumed"))) <= {"peek"}
    assert "was not paused" in (await order(live, "resume")).text


async def press_absent(live: CrashingRig, card: SeenMessage) -> str:
    """Click a button that has just been removed from the card; return the response."""
    accept = next(button.custom_id for button in card.buttons if button.label == "Accept")
    answer = await live.people["Ada"].click(card, str(accept), forged=True)
    assert not answer.failed
    return answer.text


async def test_pause_catches_runs_between_two_steps(live: CrashingRig) -> None:
    rounds = 12
    busy = [
        await live.ask("; then ".join(f'call free {{"value": "busy {run} {n}"}}' for n in range(rounds)))
        for run in range(4)
    ]
    await live.until(lambda: [line for line in live.trace if "busy" in line], "the first call")
    await order(live, "pause")
    await live.until(lambda: not live.rows("SELECT 1 FROM calls WHERE state = 'started'"), "the calls under way")
    halted = live.trace
    late = await live.ask('call free {"value": "late"}', who="Nina")
    await live.sees(late.id, "Queued: Ada has paused me")
    await elsewhere(live, "halted there")
    assert [line for line in live.trace if "there" not in line] == [line for line in halted if "there" not in line]
    assert len([line for line in halted if "busy" in line]) < 4 * rounds, "it came too late to show anything"
    await order(live, "resume")
    for asked in (*busy, late):
        await live.ended(asked)
    everything = sorted(f"free busy {run} {n}" for run in range(4) for n in range(rounds))
    assert sorted(line for line in live.trace if "busy" in line) == everything


async def test_a_pause_outlives_kill_9(live: CrashingRig) -> None:
    runs = [await run_under_way(live, f"kept {n}") for n in range(2)]
    asked, card = await card_open(live, "kept card")
    await order(live, "pause")
    await live.closed(card, "CANCELLED - paused by Ada")
    release(live)
    for n in range(2):
        await live.wait_for_trace(f"held end kept {n}")
    await live.until(
        lambda: not live.rows("SELECT 1 FROM calls WHERE state = 'started'"), "the results of both being kept"
    )
    before = await live.ask('call free {"value": "kept before"}', who="Nina")
    await live.sees(before.id, "Queued: Ada has paused me")

    await live.kill()
    await live.start()

    after = await live.ask('call free {"value": "kept after"}', who="Nina")
    await live.sees(after.id, "Queued: Ada has paused me")
    await elsewhere(live, "restarted there")
    assert not [line for line in live.trace if line.startswith("free kept")]
    await order(live, "resume")
    for turn in (*runs, asked, before, after):
        await live.ended(turn)
    assert sorted(line for line in live.trace if line.startswith("free kept")) == [
        *("free kept 0", "free kept 1", "free kept after", "free kept before"),
    ]
    assert live.trace.count("held start kept 0") == 1
    assert "record kept card" not in live.trace


async def test_stop_ends_the_run_of_a_thread_and_the_conversation_goes_on(live: CrashingRig) -> None:
    stopped = await run_under_way(live, "stopped")
    other = await run_under_way(live, "spared")
    assert "Nothing was running here" in (await order(live, "stop")).text
    answer = await order(live, "stop", where=stopped.id)
    assert "Stopped 1 run here" in answer.text
    await live.sees(stopped.id, "Stopped by Ada")
    assert live.state(stopped) == "stopped"
    release(live)
    await live.ended(other)
    assert "free stopped" not in live.trace
    assert "free spared" in live.trace
    onward = await live.ask('call free {"value": "after a stop"}', where=str(stopped.id))
    await live.sees(stopped.id, "free after a stop")
    await live.ended(onward)
    assert "free stopped" not in live.trace


async def test_stop_cancels_a_waiting_card_and_the_conversation_goes_on(live: CrashingRig) -> None:
    asked, card = await card_open(live, "waiting")
    assert "Stopped 1 run here" in (await order(live, "stop", where=asked.id)).text
    await live.closed(card, "CANCELLED - stopped by Ada")
    await live.sees(asked.id, "Stopped by Ada")
    assert "stopped by Ada" in await press_absent(live, card)
    _, again = await asks(live, 'call record {"value": "asked anew"}', who="Olga", where=str(asked.id))
    await press(live, again, "Accept")
    await live.sees(asked.id, "recorded asked anew")
    assert "record waiting" not in live.trace


async def test_stop_everywhere_ends_what_runs_waits_and_is_queued(live: CrashingRig) -> None:
    running = await run_under_way(live, "everywhere")
    waiting, card = await card_open(live, "everywhere card")
    queued = await live.ask('call free {"value": "everywhere queued"}', where=str(running.id))
    await live.sees(running.id, "Queued: 1 before it")
    answer = await order(live, "stop", everywhere=True)
    assert "Stopped 3 runs in this server" in answer.text
    await live.closed(card, "CANCELLED - stopped by Ada")
    for thread in (running, waiting):
        await live.sees(thread.id, "Stopped by Ada")
    assert [live.state(asked) for asked in (running, waiting, queued)] == ["stopped"] * 3
    release(live)
    fresh = await live.ask('call free {"value": "fresh start"}', where=str(running.id))
    await live.ended(fresh)
    assert [line for line in live.trace if "everywhere" in line and not line.startswith("held")] == []
    assert "free fresh start" in live.trace
    kinds = live.rows("SELECT COUNT(*) FROM audit WHERE kind = 'stopped'")
    assert kinds >= [(3,)]
