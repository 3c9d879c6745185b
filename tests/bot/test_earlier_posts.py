"""Attack 55: cards and replies that were posted but not noted are found again, also after the nonce is forgotten."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from discord_sandbox import Person
from signoff.approvals.model import Batch, Place
from signoff.bot.earlier_posts import NONCE_SECONDS, is_late
from signoff.bot.front_end import AS_FILE, DiscordFrontEnd
from signoff.cards.actions import Offers
from signoff.errors import CardDelayed
from signoff.turns.progress import RunStatus
from tests.rigs.bot import Rig
from tests.rigs.bot_fakes import make_batch


@pytest.fixture
async def forgetful(rig: Rig) -> AsyncIterator[Rig]:
    """A rig whose Discord forgets every nonce at once."""
    await rig.sandbox.settings(nonce_seconds=0)
    yield rig
    await rig.sandbox.settings(nonce_seconds=300)


def restarted(rig: Rig) -> DiscordFrontEnd:
    """Return the front end of the next process."""
    return DiscordFrontEnd(rig.client, Offers(), time.time)


async def card_batch(rig: Rig) -> Batch:
    return make_batch(await rig.place(), await rig.asker(), opened=time.time())


async def cards(person: Person, where: str | int = "general") -> list[str]:
    return [str(m.id) for m in await person.messages(where) if m.buttons]


async def replies(person: Person, where: str | int = "general") -> list[str]:
    return [m.text for m in await person.messages(where) if m.author == "Signoff"]


async def test_the_card_is_found_again_and_takes_the_decision(forgetful: Rig, ada: Person) -> None:
    batch = await card_batch(forgetful)
    posted = await forgetful.front_end.post_card(batch)
    adopted = await restarted(forgetful).post_card(batch)
    assert adopted == posted
    assert await cards(ada) == [posted]
    forgetful.desk.open(replace(batch, card_message=adopted))
    seen = await ada.wait_for_message("general", lambda m: str(m.id) == posted)
    accepted = await ada.click(seen, "Accept")
    assert accepted.updated is not None
    assert "APPROVED" in accepted.updated.text


async def test_of_several_cards_only_the_newest_keeps_its_buttons(forgetful: Rig, ada: Person) -> None:
    batch = await card_batch(forgetful)
    older, newer = [await forgetful.front_end.post_card(batch) for _ in range(2)]
    assert await cards(ada) == [older, newer]
    assert await restarted(forgetful).post_card(batch) == newer
    assert await cards(ada) == [newer]


async def test_another_card_is_not_taken_for_it(forgetful: Rig, ada: Person) -> None:
    other, batch = await card_batch(forgetful), await card_batch(forgetful)
    posted = await forgetful.front_end.post_card(other)
    assert await restarted(forgetful).post_card(batch) != posted
    assert len(await cards(ada)) == 2


async def test_a_post_in_time_looks_for_nothing(rig: Rig, max_: Person) -> None:
    turn = replace(await rig.turn(max_), ended=time.time())
    before = await rig.sandbox.head()
    await rig.front_end.post_card(await card_batch(rig))
    await rig.front_end.reply(turn, "three")
    assert await rig.sandbox.rest_calls("GET", after=before) == []


async def test_while_it_cannot_look_the_card_is_delayed(rig: Rig) -> None:
    batch = await card_batch(rig)
    await rig.sandbox.fault("GET", "/messages", status=503)
    with pytest.raises(CardDelayed):
        await restarted(rig).post_card(batch)


async def test_without_the_right_to_look_it_is_posted(rig: Rig, ada: Person) -> None:
    batch = await card_batch(rig)
    await rig.sandbox.fault("GET", "/messages", status=403, code=50001)
    assert await restarted(rig).post_card(batch) in await cards(ada)


async def test_a_reply_is_found_again(forgetful: Rig, max_: Person) -> None:
    turn = replace(await forgetful.turn(max_), created=time.time(), ended=time.time())
    await forgetful.front_end.reply(turn, "three")
    await restarted(forgetful).reply(turn, "three")
    assert await replies(max_) == ["three"]


async def test_of_a_long_reply_only_the_missing_parts_are_posted(forgetful: Rig, max_: Person) -> None:
    turn = replace(await forgetful.turn(max_), created=time.time(), ended=time.time())
    text = "\n".join(f"line {number} of a long text" for number in range(300))
    await forgetful.front_end.reply(turn, text)
    whole = await replies(max_)
    assert len(whole) > 2
    for message in [m for m in await max_.messages("general") if m.author == "Signoff"][1:]:
        await forgetful.client.http.delete_message(message.channel_id, message.id)
    assert await replies(max_) == whole[:1]
    await restarted(forgetful).reply(turn, text)
    assert await replies(max_) == whole


async def test_a_reply_as_a_file_is_found_again(forgetful: Rig, max_: Person) -> None:
    turn = replace(await forgetful.turn(max_), created=time.time(), ended=time.time())
    for front_end in (forgetful.front_end, restarted(forgetful)):
        await front_end.reply(turn, "all work and no play\n" * 3000)
    assert await replies(max_) == [AS_FILE]


async def test_the_same_words_of_an_earlier_turn_are_not_taken_for_the_reply(forgetful: Rig, max_: Person) -> None:
    """The reply to another turn, some seconds before this turn ended, has the same text."""
    turn = await forgetful.turn(max_)
    await forgetful.front_end.reply(replace(turn, created=time.time(), ended=time.time()), "three")
    second = replace(turn, id=f"{turn.id}0", created=time.time() - 60, ended=time.time() + 30)
    later = DiscordFrontEnd(forgetful.client, Offers(), lambda: time.time() + 60)
    await later.reply(second, "three")
    assert await replies(max_) == ["three", "three"]


async def test_a_late_reply_that_was_never_tried_is_posted_though_its_words_are_there(rig: Rig, max_: Person) -> None:
    """Another turn of the same process said the same, in a channel where replies name no message."""
    thread = await max_.open_thread("general", "talk", await max_.say("general", "hi"))
    place = Place(rig.server, str(thread.id), str(thread.id))
    clock = [time.time()]
    front_end = DiscordFrontEnd(rig.client, Offers(), lambda: clock[0])
    first = replace(await rig.turn(max_), place=place, ended=clock[0] + 1)
    await front_end.reply(first, "three")
    clock[0] += NONCE_SECONDS + 10
    await front_end.reply(replace(first, id=f"{first.id}0"), "three")
    assert await replies(max_, thread.id) == ["three", "three"]


async def test_what_this_process_posted_for_another_turn_is_not_taken_for_the_reply(
    forgetful: Rig, max_: Person
) -> None:
    """Two runs of a thread were stopped by the same person, and the process ended before it could say so."""
    thread = await max_.open_thread("general", "talk", await max_.say("general", "hi"))
    place = Place(forgetful.server, str(thread.id), str(thread.id))
    ended = time.time()
    turns = [replace(await forgetful.turn(max_), place=place, ended=ended) for _ in range(2)]
    front_end = restarted(forgetful)
    for turn in turns * 2:
        await front_end.reply(turn, "Stopped by Ada.")
    assert await replies(max_, thread.id) == ["Stopped by Ada."] * 2


async def test_a_reply_to_another_message_is_not_taken_for_it(forgetful: Rig, max_: Person) -> None:
    turns = [replace(await forgetful.turn(max_), created=time.time(), ended=time.time()) for _ in range(2)]
    await forgetful.front_end.reply(turns[0], "three")
    for turn in turns:
        await restarted(forgetful).reply(turn, "three")
    assert await replies(max_) == ["three", "three"]


async def test_a_reply_that_this_process_began_is_found_again(forgetful: Rig, max_: Person) -> None:
    """Its storing failed, for example, and the driver repeats it after the nonce is forgotten."""
    clock = [time.time()]
    front_end = DiscordFrontEnd(forgetful.client, Offers(), lambda: clock[0])
    turn = replace(await forgetful.turn(max_), ended=clock[0] + 1)
    await front_end.reply(turn, "three")
    clock[0] += NONCE_SECONDS + 10
    await front_end.reply(turn, "three")
    assert await replies(max_) == ["three"]


async def test_the_file_of_another_turn_leaves_no_status_message(forgetful: Rig, max_: Person) -> None:
    turns = [replace(await forgetful.turn(max_), created=time.time(), ended=time.time()) for _ in range(2)]
    text = "all work and no play\n" * 3000
    thread = await max_.open_thread("general", "talk", await max_.say("general", "hi"))
    place = Place(forgetful.server, str(thread.id), str(thread.id))
    first, second = (replace(turn, place=place) for turn in turns)
    await forgetful.front_end.reply(first, text)
    status = await forgetful.front_end.show_status(second, RunStatus(time.time()))
    await restarted(forgetful).reply(replace(second, status_message=status), text)
    assert await replies(max_, thread.id) == [AS_FILE, AS_FILE]


async def test_a_reply_that_went_to_the_asker_is_found_again_there(forgetful: Rig, max_: Person) -> None:
    turn = replace(await forgetful.turn(max_), created=time.time(), ended=time.time())
    await forgetful.sandbox.fault("POST", f"/channels/{turn.place.channel}/messages", status=403, code=50013, times=9)
    for front_end in (forgetful.front_end, restarted(forgetful)):
        await front_end.reply(turn, "three")
    direct = await max_.dm(forgetful.sandbox.bot_id)
    assert len(await replies(max_, direct.id)) == 1


def test_a_post_is_late_after_a_restart_or_some_time() -> None:
    assert not is_late(100, 99, 101)
    assert is_late(100, 101, 102)
    assert is_late(100, 99, 101 + NONCE_SECONDS)
