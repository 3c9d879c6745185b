"""One kill -9 with everything in progress at once, the next start, and other failures around a card."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass

import pytest
import pytest_asyncio

from discord_sandbox.seen import Outcome, SeenMessage
from tests.rigs.live_bot import PATIENCE, Rig, patient, rig

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = """
[[rules]]
tool = "brief"
when = { value = "late" }
verdict = "ask"
timeout = "1h"

[[rules]]
tool = "brief"
when = { value = "quick*" }
verdict = "ask"
timeout = "1s"
"""


@dataclass
class Story:
    """The mentions before the kill, and the outcome of a click while the bot was down."""

    rig: Rig
    kept: SeenMessage
    kept_card: SeenMessage
    queued: SeenMessage
    late: SeenMessage
    late_card: SeenMessage
    batch: SeenMessage
    batch_card: SeenMessage
    click_while_down: Outcome


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def story(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Story]:
    async with rig(tmp_path_factory.mktemp("recovery"), CONFIG) as live:
        ada = live.people["Ada"]
        kept = await live.ask('call record {"value": "kept"}')
        kept_card = await live.card(kept.id)
        queued = await live.ask('call free {"value": "queued"}', where=str(kept.id))
        await live.sees(kept.id, "Queued")
        stuck = "; ".join(f'call stuck {{"value": "{value}"}}' for value in ("ran", "again", "skipped"))
        batch = await live.ask(f'call record {{"value": "sibling"}}; {stuck}; call glance {{"value": "g"}}', "Olga")
        batch_card = await live.card(batch.id)
        await live.accept_all(batch_card)
        for line in ("stuck start ran", "stuck start again", "stuck start skipped", "glance g"):
            await live.wait_for_trace(line)
        done = "SELECT 1 FROM calls WHERE conversation = ? AND tool = 'record' AND state = 'done'"
        await live.until(lambda: live.rows(done, str(batch.id)), "the end of the quick sibling")
        late = await live.ask('call brief {"value": "late"}', "Olga")
        late_card = await live.card(late.id)
        await live.kill()

        an_hour_passes(live, late)
        await live.sandbox.settings(interaction_deadline=0.3)
        click = await ada.click(kept_card, "Accept")
        await live.sandbox.settings(interaction_deadline=PATIENCE)
        await live.start()
        yield Story(live, kept, kept_card, queued, late, late_card, batch, batch_card, click)


def an_hour_passes(live: Rig, asked: SeenMessage) -> None:
    """Move the deadline of this turn's card into the past while the bot is down, regardless of the machine's speed."""
    with closing(sqlite3.connect(live.database)) as database, database:
        sql = "UPDATE batches SET opened = opened - 3601, deadline = deadline - 3601 WHERE turn LIKE ?"
        assert database.execute(sql, (f"%-{asked.id}",)).rowcount == 1


# The kill and the next start


async def test_a_click_while_it_is_down_shows_discords_own_failure(story: Story) -> None:
    assert story.click_while_down.failed
    assert "failed" in (story.click_while_down.error or "")
    assert "record kept" not in story.rig.trace


async def test_the_same_card_works_after_the_restart_and_the_tool_runs_once(story: Story) -> None:
    live = story.rig
    answer = await live.people["Ada"].click(story.kept_card, "Accept")
    assert not answer.failed
    await live.sees(story.kept.id, "recorded kept")
    await live.closed(story.kept_card, f"APPROVED by {live.people['Ada'].mention}", "kept")
    await live.ended(story.kept)
    assert live.trace.count("record kept") == 1
    messages = await live.people["Ada"].messages(story.kept.id)
    assert sum("recorded kept" in m.content for m in messages) == 1
    assert sum(bool(m.components) for m in messages) == 1


async def test_a_mention_queued_before_the_kill_runs_after_the_one_before_it(story: Story) -> None:
    await story.rig.sees(story.kept.id, "free queued")
    trace = [line for line in story.rig.trace if line in ("record kept", "free queued")]
    assert trace == ["record kept", "free queued"]


async def test_a_deadline_that_passed_while_it_was_down_is_a_timeout(story: Story) -> None:
    live = story.rig
    await live.closed(story.late_card, "TIMEOUT - Request expired", "late")
    reply = await live.sees(story.late.id, "The offline demo model reports")
    assert "timed out" in reply.text
    assert "not a person" in reply.text
    assert "brief late" not in live.trace
    # This person's screen still shows the buttons.
    answer = await live.people["Ada"].click(story.late_card, "Accept", forged=True)
    assert "expired" in answer.text
    assert answer.reply is not None
    assert answer.reply.ephemeral


async def test_an_interrupted_read_only_call_simply_runs_again_and_a_finished_sibling_does_not(story: Story) -> None:
    live = story.rig
    card = await live.with_button(story.batch.id, "It ran")
    assert "may have run" in card.text
    assert live.trace.count("glance g") == 2
    assert live.trace.count("record sibling") == 1
    (already,) = (line for line in card.text.splitlines() if line.startswith("Already ran"))
    assert "record" in already
    assert "glance" in already
    assert [b.label for b in card.buttons] == ["It ran", "Run it again", "Skip"] * 3
    await live.sees(story.batch.id, "APPROVED by")


async def test_each_call_that_may_have_run_is_decided_by_itself_and_the_model_is_told(story: Story) -> None:
    live, ada = story.rig, story.rig.people["Ada"]
    card = await live.with_button(story.batch.id, "It ran")
    ids = [b.custom_id or "" for b in card.buttons]
    refused = await live.people["Max"].click(card, ids[1])
    assert "Manage Server" in refused.text
    for button in (ids[0], ids[4], ids[8]):
        answer = await ada.click(card, button)
        assert not answer.failed
        assert answer.updated is not None, answer.text
    reply = await live.sees(story.batch.id, "The offline demo model reports")
    assert "recorded sibling" in reply.text
    assert "glanced g" in reply.text
    assert "Ada says that it ran" in reply.text
    assert "stuck: done: stuck again" in reply.text
    assert "it may have run. Nobody wanted it repeated" in reply.text
    await live.closed(card, "CONFIRMED as run by", "RUN AGAIN approved by", "SKIPPED by")
    assert [live.trace.count(f"stuck start {value}") for value in ("ran", "again", "skipped")] == [1, 2, 1]
    assert [live.trace.count(f"stuck end {value}") for value in ("ran", "again", "skipped")] == [0, 1, 0]
    assert live.trace.count("record sibling") == 1


async def test_a_second_process_names_the_first_and_leaves_it_alone(story: Story) -> None:
    live = story.rig
    assert live.bot is not None
    code, said = await live.launch_another()
    lines = [line for line in said.splitlines() if " INFO " not in line]
    assert code not in (0, None)
    assert len(lines) == 1, said
    assert f"process {live.bot.pid} " in lines[0]
    assert "Already running" in lines[0]
    asked = await live.ask('call free {"value": "undisturbed"}')
    await live.sees(asked.id, "free undisturbed")
    assert live.bot.returncode is None


# Deadlines while the bot runs


async def test_a_timeout_closes_the_card_tells_the_model_and_a_later_click_is_told(story: Story) -> None:
    live = story.rig
    asked = await live.ask('call brief {"value": "quick"}')
    card = await live.sees(asked.id, "Request ", "quick")
    await live.closed(card, "TIMEOUT - Request expired", "quick")
    await live.sees(asked.id, "timed out", "not a person")
    ((batch,),) = live.rows("SELECT id FROM batches WHERE channel = ?", str(asked.id))
    answer = await live.people["Ada"].click(card, f"signoff:accept:{batch}:0:0", forged=True)
    assert answer.reply is not None
    assert answer.reply.ephemeral
    assert "expired" in answer.text
    await live.ended(asked)
    assert "brief quick" not in live.trace


async def test_a_card_that_reaches_discord_after_its_deadline_says_timeout(story: Story) -> None:
    live = story.rig
    thread = await talk(live)
    await live.sandbox.fault("POST", f"/channels/{thread}/messages", delay=1.5)
    asked = await live.ask('call brief {"value": "quick but posted slowly"}', where=str(thread))
    await live.sees(thread, "timed out")
    await live.ended(asked)
    card = await live.sees(thread, "posted slowly", "Request ")
    await live.closed(card, "TIMEOUT - Request expired")


# A connection that fails


async def talk(live: Rig, who: str = "Max") -> int:
    """Return a thread that exists already, so that a test can name its path before the card is posted."""
    asked = await live.ask("say hello", who)
    await live.sees(asked.id, "hello")
    await live.ended(asked)
    return asked.id


async def test_a_dropped_gateway_is_resumed_and_the_open_card_works(story: Story) -> None:
    live = story.rig
    asked = await live.ask('call record {"value": "dropped"}')
    card = await live.card(asked.id)
    before = await live.sandbox.head()
    assert await live.sandbox.drop_sockets() == 1
    await live.sandbox.wait_for("RESUMED", after=before, timeout=PATIENCE, kind="gateway")
    answer = await live.people["Ada"].click(card, "Accept")
    assert not answer.failed
    await live.sees(asked.id, "recorded dropped")
    assert live.trace.count("record dropped") == 1


@pytest.mark.long
async def test_a_session_that_cannot_be_resumed_is_opened_anew_and_the_open_card_works(story: Story) -> None:
    live = story.rig
    asked = await live.ask('call record {"value": "invalidated"}')
    card = await live.card(asked.id)
    before = await live.sandbox.head()
    await live.sandbox.drop_sockets(resumable=False)
    await live.sandbox.wait_for("READY", after=before, timeout=PATIENCE, kind="gateway")
    answer = await live.people["Ada"].click(card, "Accept")
    assert not answer.failed
    await live.sees(asked.id, "recorded invalidated")
    assert live.trace.count("record invalidated") == 1


async def test_a_rate_limited_card_and_a_reply_that_met_an_error_arrive_once(story: Story) -> None:
    live = story.rig
    thread = await talk(live)
    path = f"/channels/{thread}/messages$"
    await live.sandbox.fault("POST", path, status=429, retry_after=0.2)
    asked = await live.ask('call record {"value": "retried"}', where=str(thread))
    card = await live.card(thread)
    await live.sandbox.fault("POST", path, status=500)
    await live.people["Ada"].click(card, "Accept")
    await live.sees(thread, "recorded retried")
    await live.ended(asked)
    messages = await live.people["Ada"].messages(thread)
    assert sum("recorded retried" in m.content for m in messages) == 1
    assert sum(bool(m.components) for m in messages) == 1
    assert live.trace.count("record retried") == 1


async def test_a_reply_whose_confirmation_was_lost_is_there_once(story: Story) -> None:
    live = story.rig
    thread = await talk(live)
    asked = await live.ask('call record {"value": "unconfirmed"}', where=str(thread))
    card = await live.card(thread)
    await live.sandbox.fault("POST", f"/channels/{thread}/messages$", drop=True, after=True)
    await live.people["Ada"].click(card, "Accept")
    await live.ended(asked)
    messages = await live.people["Ada"].messages(thread)
    assert sum("recorded unconfirmed" in m.content for m in messages) == 1


async def test_a_card_that_cannot_be_posted_is_cancelled_and_that_is_said(story: Story) -> None:
    live = story.rig
    thread = await talk(live)
    await live.sandbox.fault("POST", f"/channels/{thread}/messages$", status=403, code=50013)
    asked = await live.ask('call record {"value": "unasked"}', where=str(thread))
    await live.sees(thread, "could not ask for approval", "lack a permission", "The calls that needed it were not run")
    await live.sees(thread, "cancelled", "could not be asked")
    await live.ended(asked)
    assert "record unasked" not in live.trace


@pytest.mark.parametrize("fault", [{"drop": True}, {"status": 503}], ids=["cut", "unavailable"])
async def test_a_card_whose_confirmation_was_lost_is_the_same_card_and_works(
    story: Story, fault: dict[str, int]
) -> None:
    live = story.rig
    value = "lost-" + "-".join(fault)
    thread = await talk(live)
    await live.sandbox.fault("POST", f"/channels/{thread}/messages$", after=True, **fault)
    asked = await live.ask(f'call record {{"value": "{value}"}}', where=str(thread))
    card = await live.sees(thread, value, "Request ")
    noted = "SELECT 1 FROM batches WHERE turn LIKE ? AND (settled OR card IS NOT NULL)"
    await live.until(lambda: live.rows(noted, f"%-{asked.id}"), "the card being noted or given up")
    answer = await live.people["Ada"].click(card, "Accept", forged=True)
    assert not answer.failed
    await live.ended(asked)
    await live.closed(card)
    assert live.trace.count(f"record {value}") == 1, answer.text
    assert sum(bool(m.components) for m in await live.people["Ada"].messages(thread)) == 1


# Floods and repeated events


async def test_a_replayed_event_is_the_same_turn(story: Story) -> None:
    live = story.rig
    asked = await live.ask('call free {"value": "replayed"}')
    await live.sees(asked.id, "free replayed")
    await live.ended(asked)
    events = [e["data"]["d"] for e in await live.sandbox.log(kind="gateway", name="MESSAGE_CREATE")]
    event = next(d for d in events if d["id"] == str(asked.id))
    assert await live.sandbox.inject("MESSAGE_CREATE", event, await live.sandbox.guild_id()) == 1
    await talk(live)
    assert live.trace.count("free replayed") == 1
    assert live.rows("SELECT COUNT(*) FROM turns WHERE message = ?", str(asked.id)) == [(1,)]
    assert sum("free replayed" in m.text for m in await live.people["Ada"].messages(asked.id)) == 1


async def test_a_flood_of_one_person_is_queued_or_refused_and_others_are_served(story: Story) -> None:
    live, ada = story.rig, story.rig.people["Ada"]
    flo = live.people["Flo"] = patient(await live.sandbox.add_person("Flo"))
    await live.sandbox.join(flo)
    asked = await asyncio.gather(*(live.ask(f'call record {{"value": "flood{n}"}}', "Flo") for n in range(12)))
    other = await live.ask('call free {"value": "other person"}')
    await live.sees(other.id, "free other person")

    def active() -> int:
        sql = "SELECT COUNT(*) FROM turns WHERE asker = ? AND state IN ('running', 'waiting')"
        return live.rows(sql, str(flo.id))[0][0]

    await live.until(lambda: active() == 3, "three turns under way")
    taken = [m for m in asked if live.state(m)]
    assert 3 < len(taken) <= 8
    await live.sees("general", "Too many mentions are queued")
    for message in [m for m in taken if live.state(m) == "queued"]:
        await live.sees(message.id, "Queued")
    order = [m for (m,) in live.rows("SELECT message FROM turns WHERE asker = ? ORDER BY created, seq", str(flo.id))]
    for message in sorted(taken, key=lambda m: order.index(str(m.id))):
        card = await live.card(message.id)
        assert active() <= 3
        await ada.click(card, "Accept")
        await live.ended(message)
    assert sum(line.startswith("record flood") for line in live.trace) == len(taken)
    assert active() == 0
