"""Mentions become turns: in channels, threads and direct messages; and whose mentions are ignored."""

from __future__ import annotations

import asyncio

import pytest

from discord_sandbox import Person
from discord_sandbox.permissions import Permission
from signoff.approvals.model import Place
from signoff.bot.access import Access
from signoff.errors import StoreError
from signoff.turns.model import Admission
from tests.rigs.bot import Rig, until
from tests.rigs.bot_fakes import RecordingDriver
from tests.rigs.discord_markdown import MARKUP, live, shown

QUIET = 0.3
"""Seconds to wait; the bot would have reacted by then."""


async def test_a_mention_in_a_channel_opens_a_thread_after_the_turn_is_stored(rig: Rig, max_: Person) -> None:
    said = await max_.say("general", f"{rig.sandbox.mention} tidy up **the** desk")
    await rig.hears()
    turn = rig.driver.only
    channel = (await rig.place()).channel
    assert (turn.id, turn.message) == (f"{channel}-{said.id}", str(said.id))
    assert turn.place.channel == turn.place.conversation == str(said.id)
    assert turn.place.server == turn.asker.server == rig.server
    assert turn.text == "tidy up **the** desk"
    assert (turn.asker.id, turn.asker.manages_server, turn.asker.is_bot) == (str(max_.id), False, False)
    thread = await rig.sandbox.channel(said.id)
    assert thread.name == "tidy up **the** desk"
    assert rig.driver.order == ["recover", f"submit {said.id}", f"go {said.id}"]


async def test_an_administrator_is_known_as_one(rig: Rig) -> None:
    ada = await rig.sandbox.person("Ada")
    await ada.say("general", f"{rig.sandbox.mention} hi")
    await rig.hears()
    assert rig.driver.only.asker.manages_server
    assert str(await rig.sandbox.role_id("Admins")) in rig.driver.only.asker.roles
    assert rig.server not in rig.driver.only.asker.roles


async def test_a_mention_in_a_thread_continues_there(rig: Rig, max_: Person) -> None:
    thread = await max_.open_thread("general", "work", await max_.say("general", "hi"))
    await max_.say(thread, f"{rig.sandbox.mention} go on")
    await rig.hears()
    assert rig.driver.only.place.channel == rig.driver.only.place.conversation == str(thread.id)


async def test_a_listed_person_needs_no_mention_in_a_direct_message(idle: Rig) -> None:
    max_ = await idle.sandbox.person("Max")
    idle.access = Access(dm_users=frozenset({str(max_.id)}))
    async with idle.running():
        direct = await max_.dm(idle.sandbox.bot_id)
        await max_.say(direct, "hello there")
        await idle.hears()
    turn = idle.driver.only
    assert (turn.place.server, turn.place.channel, turn.text) == ("dm", str(direct.id), "hello there")
    assert turn.asker.server == "dm"
    assert not turn.asker.manages_server


async def test_others_get_one_line_in_a_direct_message(rig: Rig, max_: Person) -> None:
    direct = await max_.dm(rig.sandbox.bot_id)
    await max_.say(direct, "hello")
    await max_.wait_for_message(direct, lambda m: "direct messages" in m.text)
    await max_.say(direct, "hello again")
    await asyncio.sleep(QUIET)
    assert len([m for m in await max_.messages(direct) if m.author == "Signoff"]) == 1
    assert rig.driver.turns == {}


async def test_bots_webhooks_and_everyone_are_not_heard(rig: Rig, max_: Person) -> None:
    """Attack 13, and messages that are not mentions."""
    echo = await rig.sandbox.person("Echo")
    await echo.say("general", f"{rig.sandbox.mention} do it")
    await rig.sandbox.post_as_webhook(f"{rig.sandbox.mention} do it")
    await max_.say("general", "@everyone look")
    await max_.say("general", "no mention at all")
    await asyncio.sleep(QUIET)
    assert rig.driver.turns == {}
    assert await rig.sandbox.rest_calls("POST") == []


async def test_a_mention_of_the_role_gets_a_hint(rig: Rig, max_: Person) -> None:
    role = await rig.sandbox.role_id("Signoff")
    await rig.sandbox.change_role(role, mentionable=True)
    await max_.say("general", f"<@&{role}> do it")
    hint = await max_.wait_for_message("general", lambda m: "not my role" in m.text)
    assert rig.sandbox.mention in hint.text
    assert rig.driver.turns == {}


async def test_an_empty_mention_gets_help(rig: Rig, max_: Person) -> None:
    await max_.say("general", f" {rig.sandbox.mention}  ")
    await max_.wait_for_message("general", lambda m: "say what to do" in m.text)
    assert rig.driver.turns == {}


async def test_a_reply_that_pings_is_a_mention(rig: Rig, max_: Person) -> None:
    await max_.say("general", rig.sandbox.mention)
    helped = await max_.wait_for_message("general", lambda m: "say what to do" in m.text)
    await max_.say("general", "then do this", reply_to=helped)
    await rig.hears()
    assert rig.driver.only.text == "then do this"


@pytest.mark.parametrize("access", ["servers", "channels", "roles"])
async def test_who_may_not_ask_is_refused_once(idle: Rig, access: str) -> None:
    idle.access = Access(**{access: frozenset({"1"})})
    max_ = await idle.sandbox.person("Max")
    async with idle.running():
        for _ in range(3):
            await max_.say("general", f"{idle.sandbox.mention} hi")
        await max_.wait_for_message("general", lambda m: "I " in m.text and "take requests" in m.text)
        await asyncio.sleep(QUIET)
    assert len([m for m in await max_.messages("general") if m.author == "Signoff"]) == 1
    assert idle.driver.turns == {}


async def test_a_thread_counts_as_its_channel(idle: Rig) -> None:
    idle.access = Access(channels=frozenset({(await idle.place()).channel}))
    max_ = await idle.sandbox.person("Max")
    async with idle.running():
        thread = await max_.open_thread("general", "work", await max_.say("general", "hi"))
        await max_.say(thread, f"{idle.sandbox.mention} go on")
        await idle.hears()


async def test_where_threads_are_not_permitted_it_answers_in_place(rig: Rig, max_: Person) -> None:
    await rig.sandbox.overwrite("general", "Signoff", deny=int(Permission.CREATE_PUBLIC_THREADS))
    said = await max_.say("general", f"{rig.sandbox.mention} hi")
    await rig.hears()
    turn = rig.driver.only
    assert turn.place == await rig.place()
    head = await rig.sandbox.head()
    await rig.front_end.reply(turn, "hello")
    answer = await max_.wait_for_message("general", lambda m: m.text == "hello")
    assert answer.raw["message_reference"]["message_id"] == str(said.id)
    assert await rig.sandbox.pings(after=head) == []


async def test_a_refused_thread_moves_the_turn_to_the_channel(rig: Rig, max_: Person) -> None:
    await rig.sandbox.fault("POST", "/threads", status=403, code=50013)
    said = await max_.say("general", f"{rig.sandbox.mention} hi")
    await rig.hears()
    place = await rig.place()
    assert rig.driver.only.place == place
    assert rig.driver.order[1:] == [f"submit {said.id}", f"relocate {place.channel}", f"go {said.id}"]


async def test_a_thread_that_is_there_already_is_taken(rig: Rig, max_: Person) -> None:
    await rig.sandbox.fault("POST", "/threads", status=400, code=160004)
    said = await max_.say("general", f"{rig.sandbox.mention} hi")
    await rig.hears()
    assert rig.driver.only.place.channel == str(said.id)
    assert f"relocate {(await rig.place()).channel}" not in rig.driver.order


async def test_a_queued_mention_is_said_to_be(rig: Rig, max_: Person) -> None:
    """Attack 32."""
    rig.driver.admission = Admission("queued", "Queued: one request is before this one.")
    said = await max_.say("general", f"{rig.sandbox.mention} hi")
    await max_.wait_for_message(said.id, lambda m: m.text == "Queued: one request is before this one.")
    await rig.hears()


async def test_a_mention_over_the_limits_is_refused_in_words(rig: Rig, max_: Person) -> None:
    """Attack 32: also, the bot does not reply to each mention of a flood."""
    rig.driver.admission = Admission("refused", "Too many requests.")
    for _ in range(5):
        await max_.say("general", f"{rig.sandbox.mention} hi")
    await max_.wait_for_message("general", lambda m: m.text == "Too many requests.")
    await asyncio.sleep(QUIET)
    assert len([m for m in await max_.messages("general") if m.author == "Signoff"]) == 1
    assert await rig.sandbox.rest_calls("POST", "/threads") == []


@pytest.mark.parametrize("kind", ["queued", "refused"])
async def test_a_name_in_what_is_said_about_a_mention_has_no_effect(rig: Rig, max_: Person, kind: str) -> None:
    rig.driver.admission = Admission(kind, "Queued: [**free nitro**](https://evil.example) has paused me.")  # type: ignore[arg-type]
    said = await max_.say("general", f"{rig.sandbox.mention} hi")
    where = said.id if kind == "queued" else "general"
    told = await max_.wait_for_message(where, lambda m: "free nitro" in m.text and m.author == "Signoff")
    assert MARKUP.search(live(told.text)) is None
    assert shown(told.text) == rig.driver.admission.text


async def test_a_mention_without_a_thread_or_another_place_is_let_go_all_the_same(idle: Rig, max_: Person) -> None:
    """Otherwise it would use up one of the turns that a person may have at once, until the next start."""

    class Immovable(RecordingDriver):
        async def relocate(self, turn_id: str, place: Place) -> None:
            raise StoreError("disk full")

    idle.driver = Immovable()
    async with idle.running():
        await idle.sandbox.fault("POST", "/threads", status=403, code=50013)
        said = await max_.say("general", f"{idle.sandbox.mention} hi")
        await idle.hears()
        assert idle.driver.order[1:] == [f"submit {said.id}", f"go {said.id}"]


async def test_a_mention_that_is_stored_and_not_started_is_said_to_be(idle: Rig, max_: Person) -> None:
    class Sleepy(RecordingDriver):
        async def go(self, turn_id: str) -> None:
            raise StoreError("disk full")

    idle.driver = Sleepy()
    async with idle.running():
        await max_.say("general", f"{idle.sandbox.mention} hi")
        told = await max_.wait_for_message("general", lambda m: "could not start yet" in m.text)
        assert "stored" in told.text


async def test_a_replayed_event_is_the_same_turn(rig: Rig, max_: Person) -> None:
    said = await max_.say("general", f"{rig.sandbox.mention} hi")
    await rig.hears()
    await rig.sandbox.inject("MESSAGE_CREATE", said.raw | {"guild_id": rig.server}, int(rig.server))
    await asyncio.sleep(QUIET)
    assert len(rig.driver.turns) == 1
    assert rig.driver.order.count(f"go {said.id}") == 1


@pytest.mark.parametrize("kind", [6, 7, 18, 20, 21])
async def test_what_discord_writes_by_itself_is_not_heard(rig: Rig, max_: Person, kind: int) -> None:
    said = await max_.say("general", "hello")
    bot = {"id": str(rig.sandbox.bot_id), "username": "Signoff", "discriminator": "0", "avatar": None, "bot": True}
    text = f"{rig.sandbox.mention} do it"
    data = said.raw | {"guild_id": rig.server, "type": kind, "mentions": [bot], "content": text}
    await rig.sandbox.inject("MESSAGE_CREATE", data, int(rig.server))
    await asyncio.sleep(QUIET)
    assert rig.driver.turns == {}


async def test_a_store_that_fails_is_said(rig: Rig, max_: Person) -> None:
    rig.driver.fails_with = StoreError("disk full")
    await max_.say("general", f"{rig.sandbox.mention} hi")
    told = await max_.wait_for_message("general", lambda m: "could not be stored" in m.text)
    assert "nothing will run" in told.text
    assert await rig.sandbox.rest_calls("POST", "/threads") == []


async def test_hidden_characters_stay_out_of_the_threads_name(rig: Rig, max_: Person) -> None:
    said = await max_.say(
        "general", f"{rig.sandbox.mention} pay \u202eeviL\u200b \U000e0041<@{max_.id}> now " + "x " * 99
    )
    await rig.hears()
    name = (await rig.sandbox.channel(said.id)).name
    assert name.startswith("pay eviL now x x")
    assert len(name) <= 100


async def test_mentions_are_heard_after_the_gateway_dropped(rig: Rig, max_: Person) -> None:
    await rig.sandbox.drop_sockets(resumable=True)
    await max_.say("general", f"{rig.sandbox.mention} hi")
    await until(lambda: rig.driver.turns, 15)
