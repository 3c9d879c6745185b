"""The status message in Discord: its text and button, how it becomes the reply, and how it goes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis.strategies import text

from discord_sandbox import Person
from signoff.approvals.model import CallRun, RunState
from signoff.bot.split import LIMIT, sendable, size
from signoff.bot.status import stopped_by, text_of
from signoff.errors import NotDelivered
from signoff.turns.model import Turn, TurnState
from signoff.turns.progress import RunStatus
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_fakes import make_batch

STATUS = RunStatus(1_700_000_000.0, ("read_file",), (), (("write_file", 1_700_000_001.0),))


async def shown(rig: Rig, max_: Person) -> Turn:
    turn = replace(await rig.turn(max_), state=TurnState.DONE)
    return replace(turn, status_message=await rig.front_end.show_status(turn, STATUS))


async def said(max_: Person) -> list[tuple[str, str]]:
    return [(str(m.id), m.content) for m in await max_.messages("general") if m.author == "Signoff"]


async def test_it_names_tools_has_a_stop_button_and_pings_nobody(rig: Rig, max_: Person) -> None:
    turn = await shown(rig, max_)
    (message,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert message.content == "Working. Ran read\\_file. Running write\\_file, started <t:1700000001:R>"
    assert [(b.label, b.custom_id) for b in message.buttons] == [("Stop", f"signoff-stop:{turn.id}")]
    assert stopped_by(f"signoff-stop:{turn.id}") == turn.id
    assert await rig.sandbox.pings() == []


async def test_it_shows_a_reply_that_the_model_is_writing_and_pings_nobody(rig: Rig, max_: Person) -> None:
    turn = await shown(rig, max_)
    await rig.front_end.show_status(turn, replace(STATUS, text="**Once** <@1> @everyone"))
    ((_, text),) = await said(max_)
    assert text == "**Once** <@1> @everyone\n-# Writing: 23 characters so far"
    assert await rig.sandbox.pings() == []


@given(text(alphabet="ab \n`#é😀\x00\ud800", max_size=3 * LIMIT))
def test_any_reply_that_is_being_written_fits_and_ends_with_our_line(written: str) -> None:
    shown = text_of(replace(STATUS, text=written))
    assert 0 < size(shown) <= LIMIT
    assert shown.count("```") % 2 == 0
    if sendable(written).strip():
        assert shown.endswith(f"\n-# Writing: {len(written):,} characters so far")
    else:
        assert shown.startswith("Working.")


async def test_it_is_posted_once_and_edited_after_that(rig: Rig, max_: Person) -> None:
    turn = await shown(rig, max_)
    again = await rig.front_end.show_status(replace(turn, status_message=None), STATUS)
    assert again == turn.status_message, "the nonce leads to the same message"
    await rig.front_end.show_status(turn, RunStatus(1.0, ("read_file", "write_file")))
    ((_, text),) = await said(max_)
    assert text == "Working. Ran read\\_file, write\\_file. Thinking, since <t:1:R>"


async def test_the_reply_takes_its_place_and_a_repeated_reply_changes_nothing(rig: Rig, max_: Person) -> None:
    turn = await shown(rig, max_)
    for _ in range(2):
        await rig.front_end.reply(turn, "**done** <@1>")
    (message,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert (str(message.id), message.content) == (turn.status_message, "**done** <@1>")
    assert message.buttons == []
    assert await rig.sandbox.pings() == []


async def test_further_parts_follow_and_are_posted_once(rig: Rig, max_: Person) -> None:
    turn = await shown(rig, max_)
    long = "\n".join(f"line {n} " + "x" * 90 for n in range(40))
    for _ in range(2):
        await rig.front_end.reply(turn, long)
    parts = await said(max_)
    assert parts[0][0] == turn.status_message
    assert len(parts) == 2
    assert "".join(text for _, text in parts).replace("\n", "") == long.replace("\n", "")


async def test_a_reply_that_is_a_file_is_attached_to_it(rig: Rig, max_: Person) -> None:
    turn = await shown(rig, max_)
    await rig.front_end.reply(turn, "y" * 40_000)
    (message,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert str(message.id) == turn.status_message
    assert "attached" in message.content
    assert [file["filename"] for file in message.raw["attachments"]] == ["reply.md"]


async def test_the_reply_is_a_new_message_if_somebody_deleted_the_status(rig: Rig, ada: Person, max_: Person) -> None:
    turn = await shown(rig, max_)
    (message,) = [m for m in await ada.messages("general") if m.author == "Signoff"]
    await ada.delete(message)
    await rig.front_end.reply(turn, "still here")
    ((posted, text),) = await said(max_)
    assert text == "still here"
    assert posted != turn.status_message


async def test_a_reply_that_discord_does_not_take_now_is_tried_later(rig: Rig, max_: Person) -> None:
    turn = await shown(rig, max_)
    await rig.sandbox.fault("PATCH", r"/messages/", status=400, code=50035, times=1)
    with pytest.raises(NotDelivered):
        await rig.front_end.reply(turn, "later")
    await rig.front_end.reply(turn, "later")
    assert await said(max_) == [(turn.status_message, "later")]


async def test_it_is_deleted_once_and_again_without_harm(rig: Rig, max_: Person) -> None:
    turn = await shown(rig, max_)
    for _ in range(2):
        await rig.front_end.remove_status(turn)
    assert await said(max_) == []


async def test_it_becomes_the_reply_in_an_archived_thread(rig: Rig, max_: Person) -> None:
    thread = await max_.open_thread("general", "work")
    turn = await rig.turn(max_)
    place = replace(turn.place, channel=str(thread.id), conversation=str(thread.id))
    turn = replace(turn, place=place, state=TurnState.DONE)
    turn = replace(turn, status_message=await rig.front_end.show_status(turn, STATUS))
    await rig.sandbox.archive(thread.id)
    await rig.front_end.reply(turn, "back again")
    texts = [m.content for m in await max_.messages(thread.id) if m.author == "Signoff"]
    assert texts == ["back again"]


@pytest.mark.parametrize(
    "custom_id", ["signoff-stop:", "signoff-stop:1-2-3", "signoff-stop:1-2\n", "signoff:stop:1-2", "x", None, 5]
)
def test_only_exact_ids_stop_a_run(custom_id: object) -> None:
    assert stopped_by(custom_id) is None


# The card while its calls run


async def test_an_accept_whose_call_still_runs_leaves_the_card_to_the_driver(rig: Rig, ada: Person) -> None:
    rig.desk.memory.run_of_approved = CallRun(RunState.RUNNING, 1_700_000_000.0)
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    answer = await ada.click(seen, "Accept")
    assert answer.updated is not None
    assert f"APPROVED by <@{ada.id}>" in answer.updated.text
    assert "Running, started <t:1700000000:R>" in answer.updated.text
    assert rig.desk.final == []


async def test_a_slow_response_to_a_click_is_not_drawn_over_the_end(rig: Rig, ada: Person) -> None:
    rig.desk.memory.run_of_approved = None
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    await rig.sandbox.fault("POST", r"/callback", delay=1.0, times=1)
    slow = asyncio.ensure_future(ada.click(seen, "Accept"))
    await until(lambda: rig.desk.batches[batch.id].settled)
    await asyncio.sleep(0.2)  # the response is on its way now
    current = rig.desk.batches[batch.id]
    ended = tuple(replace(r, run=CallRun(RunState.DONE, 1.0, 3.0, "all good")) for r in current.requests)
    await rig.front_end.refresh_card(replace(current, requests=ended))
    await slow
    final = await ada.see(seen)
    assert final is not None
    assert "Done in 2.0 s: `all good`" in final.text
