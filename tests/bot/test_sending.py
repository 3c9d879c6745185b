"""The driver's messages through Discord: replies, notices, typing; and Discord's refusals."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from discord_sandbox import Person
from discord_sandbox.permissions import Permission
from signoff.approvals.model import Place
from signoff.errors import NotDelivered
from signoff.turns.model import Turn
from tests.rigs.bot import Rig, until
from tests.rigs.bot_fakes import make_batch


async def unopened(rig: Rig, person: Person) -> Turn:
    """Return a turn that was stored just before a crash: its thread was never opened."""
    turn = await rig.turn(person, text="count the cats")
    return replace(turn, place=Place(rig.server, turn.message, turn.message))


async def from_bot(person: Person, where: str | int) -> list[str]:
    return [m.text for m in await person.messages(where) if m.author == "Signoff"]


async def test_links_do_not_unfurl_and_mentions_do_not_ping(rig: Rig, max_: Person) -> None:
    """Attacks 3 and 31."""
    ada = await rig.sandbox.person("Ada")
    role = await rig.sandbox.role_id("Approvers")
    hostile = f"@everyone @here <@{ada.id}> <@&{role}> https://evil.example/?q=secret [x](https://evil.example/2)"
    turn = await rig.turn(max_)
    await rig.front_end.reply(turn, hostile)
    await rig.front_end.notice(turn, hostile)
    await rig.front_end.reply(replace(turn, rounds=1), hostile * 30)
    assert await rig.sandbox.unfurls() == []
    assert await rig.sandbox.pings() == []
    for call in await rig.sandbox.rest_calls("POST", "/messages"):
        assert call["body"]["flags"] & 4
        assert call["body"]["allowed_mentions"]["parse"] == []
        assert not call["body"]["allowed_mentions"].get("replied_user")


async def test_a_long_reply_comes_in_parts_and_repeating_it_adds_nothing(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    text = "```py\n" + "print(1)\n" * 500 + "```"
    await rig.front_end.reply(turn, text)
    await rig.front_end.reply(turn, text)
    parts = await from_bot(max_, "general")
    assert len(parts) == 3
    assert all(part.startswith("```py\n") and part.endswith("```") for part in parts)


async def test_a_giant_reply_is_attached(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    text = "all work and no play\n" * 3000
    await rig.front_end.reply(turn, text)
    (message,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    (file,) = message.files
    assert file["filename"] == "reply.md"
    assert (await rig.sandbox.fetch(file["url"])).decode() == text.strip()


async def test_an_empty_reply_is_said_to_be(rig: Rig, max_: Person) -> None:
    await rig.front_end.reply(await rig.turn(max_), " \n\x00")
    assert await from_bot(max_, "general") == ["Done. The model gave no reply text."]


async def test_the_reply_of_a_later_round_is_another_message(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    await rig.front_end.reply(turn, "one")
    await rig.front_end.reply(replace(turn, rounds=1), "two")
    assert await from_bot(max_, "general") == ["one", "two"]


@pytest.mark.parametrize("what", ["reply", "notice", "working", "card"])
async def test_a_thread_that_was_never_opened_is_opened_now(rig: Rig, max_: Person, what: str) -> None:
    turn = await unopened(rig, max_)
    front_end = rig.front_end
    if what == "reply":
        await front_end.reply(turn, "three")
    elif what == "notice":
        await front_end.notice(turn, "three")
    elif what == "card":
        await front_end.post_card(make_batch(turn.place, turn.asker, turn=turn.id))
    else:
        async with front_end.working(turn):
            await rig.sandbox.wait_for("thread.create")
    thread = await rig.sandbox.channel(turn.message)
    assert thread.name == ("A request" if what == "card" else "count the cats")
    if what != "working":
        assert len(await from_bot(max_, turn.message)) == 1


async def test_recovery_speaks_before_the_gateway_is_connected(idle: Rig) -> None:
    max_ = await idle.sandbox.person("Max")
    turn = replace(await unopened(idle, max_), text="count")
    batch = make_batch(await idle.place("ops"), turn.asker)

    async def recover() -> None:
        assert not idle.client.is_ready()
        await idle.front_end.reply(turn, "three")
        await idle.front_end.post_card(batch)

    idle.driver.recover = recover  # type: ignore[method-assign]
    async with idle.running():
        assert await from_bot(max_, turn.message) == ["three"]
        assert [m for m in await max_.messages("ops") if m.buttons]


async def test_a_thread_that_somebody_deleted_is_not_opened_again(rig: Rig, max_: Person) -> None:
    turn = await unopened(rig, max_)
    data = {"id": turn.message, "guild_id": rig.server, "parent_id": turn.id.split("-")[0], "type": 11}
    await rig.sandbox.inject("THREAD_DELETE", data, int(rig.server))
    await until(lambda: turn.message in rig.front_end.deleted)
    await rig.front_end.reply(turn, "three")
    direct = await max_.dm(rig.sandbox.bot_id)
    (told,) = await from_bot(max_, direct.id)
    assert "the channel or thread no longer exists" in told
    assert told.endswith("three")
    assert await rig.sandbox.rest_calls("POST", "/threads") == []


async def test_a_reply_that_is_not_permitted_reaches_the_asker_privately(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    await rig.sandbox.overwrite("general", "Signoff", deny=int(Permission.SEND_MESSAGES))
    await rig.front_end.reply(turn, "three")
    direct = await max_.dm(rig.sandbox.bot_id)
    (told,) = await from_bot(max_, direct.id)
    assert "lack a permission" in told
    assert told.endswith("three")


async def test_a_reply_that_automod_refuses_reaches_the_asker_privately(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    await rig.sandbox.fault("POST", f"/channels/{turn.place.channel}/messages", status=400, code=200000)
    await rig.front_end.reply(turn, "three")
    (told,) = await from_bot(max_, (await max_.dm(rig.sandbox.bot_id)).id)
    assert "AutoMod" in told


async def test_a_reply_that_reaches_nobody_is_kept_for_later(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    await rig.sandbox.add_person("Max", accepts_dms=False)
    await rig.sandbox.overwrite("general", "Signoff", deny=int(Permission.SEND_MESSAGES))
    with pytest.raises(NotDelivered, match="lack a permission"):
        await rig.front_end.reply(turn, "three")
    await rig.front_end.notice(turn, "nobody hears this, and nothing breaks")


async def test_a_passing_failure_is_not_taken_for_a_refusal(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    await rig.sandbox.fault("POST", "/messages", drop=True, times=5)
    with pytest.raises(NotDelivered, match="could not be reached"):
        await rig.front_end.reply(turn, "three")
    await rig.sandbox.clear_faults()
    await rig.front_end.reply(turn, "three")
    assert await from_bot(max_, "general") == ["three"]


async def test_an_answer_lost_on_the_way_is_not_posted_twice(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    await rig.sandbox.fault("POST", "/messages", status=502, after=True)
    await rig.front_end.reply(turn, "three")
    assert await from_bot(max_, "general") == ["three"]


async def test_without_the_right_to_read_history_it_answers_without_a_reference(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    await rig.sandbox.fault("POST", "/messages", status=400, code=160002)
    await rig.front_end.reply(turn, "three")
    (answer,) = [m for m in await max_.messages("general") if m.author == "Signoff"]
    assert not answer.raw.get("message_reference")


async def test_a_deleted_question_is_still_answered(rig: Rig, max_: Person) -> None:
    said = await max_.say("general", "hello")
    place = await rig.place()
    turn = Turn(f"{place.channel}-{said.id}", place, str(said.id), await rig.asker(), "hello", 0.0)
    await max_.delete(said)
    await rig.front_end.reply(turn, "three")
    assert "three" in await from_bot(max_, "general")


async def test_typing_is_shown_and_never_stops_the_run(rig: Rig, max_: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = await rig.turn(max_)
    async with rig.front_end.working(turn):
        pass
    assert await rig.sandbox.rest_calls("POST", "/typing") == [], "a quick step shows no typing"
    async with rig.front_end.working(turn):
        await rig.sandbox.wait_for("POST", lambda data: "typing" in data["path"], kind="rest")
    monkeypatch.setattr("signoff.bot.front_end.TYPING_AFTER", 0.0)
    await rig.sandbox.fault("POST", "/typing", status=403, code=50013, times=5)
    async with asyncio.timeout(20), rig.front_end.working(turn):
        await asyncio.sleep(0.1)
    await rig.sandbox.fault("POST", "/typing", delay=60, times=5)
    async with asyncio.timeout(20), rig.front_end.working(turn):
        pass
    with pytest.raises(ZeroDivisionError):
        async with rig.front_end.working(turn):
            _ = 1 / 0
