"""What people see while a run works: the card, the status message that becomes the reply, and the ways to stop."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import PATIENCE, CrashingRig, rig

pytestmark = pytest.mark.asyncio(loop_scope="module")

FRONT = "signoff.bot.front_end:DiscordFrontEnd"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with rig(tmp_path_factory.mktemp("progress"), kind=CrashingRig) as running:
        yield running


async def accepted(live: CrashingRig, asked: SeenMessage) -> SeenMessage:
    """Accept the card of a mention and return the card."""
    card = await live.card(asked.id)
    assert not (await live.people["Ada"].click(card, "Accept")).failed
    return card


async def status_of(live: CrashingRig, asked: SeenMessage, *words: str) -> SeenMessage:
    return await live.people["Max"].wait_for_message(
        asked.id,
        lambda m: m.content.startswith("Working") and all(word in m.content for word in words),
        timeout=PATIENCE,
    )


async def shows(live: CrashingRig, message: SeenMessage, *words: str) -> SeenMessage:
    return await live.people["Max"].wait_for_change(
        message, lambda m: all(word in m.text for word in words), timeout=PATIENCE
    )


async def by_bot(live: CrashingRig, asked: SeenMessage) -> list[SeenMessage]:
    return [m for m in await live.people["Max"].messages(asked.id) if m.author == "Signoff" and not m.ephemeral]


async def test_a_slow_call_is_running_then_done_and_its_status_becomes_the_reply(live: CrashingRig) -> None:
    release = live.folder / "release"
    release.unlink(missing_ok=True)
    asked = await live.ask('call held {"value": "slowly"}')
    card = await accepted(live, asked)
    running = await shows(live, card, "APPROVED by", "Running, started <t:")
    assert running.buttons == []
    status = await status_of(live, asked, "Running held, started <t:")
    assert [button.label for button in status.buttons] == ["Stop"]
    release.touch()
    await shows(live, card, "APPROVED by", "Done in", "`held slowly`")
    reply = await shows(live, status, "held slowly")
    assert not reply.content.startswith("Working")
    assert reply.buttons == []
    await live.ended(asked)
    assert [m.id for m in await by_bot(live, asked)] == [card.id, status.id], "one card and one reply"


async def test_quick_calls_cost_one_edit_of_the_card_and_no_status(live: CrashingRig) -> None:
    calls = "; ".join(f'call record {{"value": "quick {n}"}}' for n in range(3))
    asked = await live.ask(calls)
    card = await live.card(asked.id)
    before = await live.sandbox.head()
    answer = await live.people["Ada"].click(card, "Accept all")
    assert not answer.failed
    await shows(live, card, "`recorded quick 0`", "`recorded quick 1`", "`recorded quick 2`")
    await live.ended(asked)
    final = "SELECT 1 FROM batches WHERE card = ? AND card_final"
    await live.until(lambda: live.rows(final, str(card.id)), "the final card")
    edits = await live.sandbox.rest_calls("PATCH", f"/messages/{card.id}", after=before)
    assert len(edits) <= 1
    posted = await live.sandbox.rest_calls("POST", "/messages$", after=before)
    assert len(posted) == 1, "the reply and nothing else"


async def test_a_failed_call_says_so_on_its_card(live: CrashingRig) -> None:
    asked = await live.ask('call broken {"value": "x"}; call record {"value": "and this"}')
    card = await live.card(asked.id)
    assert not (await live.people["Ada"].click(card, "Accept all")).failed
    await shows(live, card, "Failed", "x does not work", "Done", "`recorded and this`")


async def test_the_asker_stops_their_run_and_others_cannot(live: CrashingRig) -> None:
    asked = await live.ask('call slow {"value": "long", "seconds": 600}')
    card = await accepted(live, asked)
    status = await status_of(live, asked, "Running slow")
    refused = await live.people["Olga"].click(status, "Stop")
    assert refused.reply is not None
    assert "Only the person who asked" in refused.reply.text
    assert live.state(asked) == "running"
    stopped = await live.people["Max"].click(status, "Stop")
    assert stopped.reply is not None
    assert stopped.reply.text == "Stopped."
    ended = await shows(live, status, "Stopped by Max", "may have had an effect")
    assert ended.buttons == []
    await shows(live, card, "May have run: it was interrupted")
    assert live.state(asked) == "stopped"
    again = await live.people["Max"].click(status, str(status.buttons[0].custom_id), forged=True)
    assert again.reply is not None
    assert "already ended" in again.reply.text
    assert [m.id for m in await by_bot(live, asked)] == [card.id, status.id]


async def test_the_command_stops_only_the_runs_of_the_person_who_uses_it(live: CrashingRig) -> None:
    own = await live.ask('call record {"value": "mine"}')
    other = await live.ask('call record {"value": "theirs"}', "Olga")
    card, kept = await live.card(own.id), await live.card(other.id)
    answer = await live.people["Max"].run("general", "signoff stop", everywhere=True)
    await live.closed(card, "CANCELLED", "stopped by Max")
    assert not answer.failed
    said = await live.people["Max"].wait_for_message("general", lambda m: "of yours" in m.text, timeout=PATIENCE)
    assert said.text == "Stopped 1 run of yours in this server."
    assert live.state(other) == "waiting"
    assert (await live.people["Ada"].see(kept)).buttons  # type: ignore[union-attr]
    refused = await live.people["Max"].run("general", "signoff pause")
    assert refused.reply is not None
    assert "Manage Server" in refused.reply.text


async def test_a_status_message_goes_when_the_run_waits_for_a_card(live: CrashingRig) -> None:
    asked = await live.ask('call peek {"value": "first", "seconds": 3} then call record {"value": "then"}')
    status = await status_of(live, asked, "Running peek")
    await live.card(asked.id)
    await live.until(lambda: not live.rows("SELECT 1 FROM turns WHERE status = ?", str(status.id)), "the removal")
    assert await live.people["Max"].see(status) is None


async def test_a_kill_while_a_call_runs_corrects_the_card_and_leaves_no_status_behind(live: CrashingRig) -> None:
    asked = await live.ask('call stuck {"value": "killed"}')
    card = await accepted(live, asked)
    await shows(live, card, "Running, started")
    status = await status_of(live, asked, "Running stuck")
    await live.until(
        lambda: live.rows("SELECT 1 FROM turns WHERE status = ?", str(status.id)), "the status in the store"
    )
    await live.kill()
    await live.start()
    await shows(live, card, "APPROVED by", "May have run: it was interrupted")
    second = await live.with_button(asked.id, "Run it again")
    await live.until(lambda: not live.rows("SELECT 1 FROM turns WHERE status = ?", str(status.id)), "the removal")
    assert await live.people["Max"].see(status) is None
    assert not (await live.people["Ada"].click(second, "Run it again")).failed
    await shows(live, second, "Done", "`stuck killed`")
    await live.ended(asked)
    assert len(await by_bot(live, asked)) == 3, "two cards and one reply"


async def test_a_kill_between_the_reply_and_its_note_posts_no_second_reply(live: CrashingRig) -> None:
    asked = await live.ask('call peek {"value": "once", "seconds": 3}')
    status = await status_of(live, asked, "Running peek")
    live.arm(f"{FRONT}.reply:after")
    await live.dies()
    await live.start()
    await live.ended(asked)
    (reply,) = await by_bot(live, asked)
    assert reply.id == status.id
    assert "peeked once" in reply.text
