"""Attack 53: requests that Discord refuses are few, and stop long before Discord bans the address."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import discord
import pytest

from discord_sandbox import Person, SandboxClient
from discord_sandbox.permissions import Permission
from signoff.approvals.model import Place
from signoff.bot import sending
from signoff.bot.refusals import FEWER, FEWEST, WINDOW, Braked, Refusals, Weight
from signoff.bot.sending import nonce
from signoff.errors import Undeliverable
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_fakes import make_batch

REFUSED = (401, 403, 429)


async def refused(sandbox: SandboxClient) -> list[str]:
    """Return method and path of every request that Discord refused."""
    return [f"{call['method']} {call['path']}" for call in await sandbox.rest_calls() if call["status"] in REFUSED]


async def close(rig: Rig, channel: str = "general") -> None:
    """Let the bot see a channel, but neither write nor open threads there; wait until it knows."""
    denied = Permission.SEND_MESSAGES | Permission.SEND_MESSAGES_IN_THREADS | Permission.CREATE_PUBLIC_THREADS
    await rig.sandbox.overwrite(channel, "Signoff", deny=int(denied))
    here = rig.client.get_channel(int((await rig.place(channel)).channel))
    assert isinstance(here, discord.TextChannel)
    await until(lambda: not here.permissions_for(here.guild.me).send_messages)


async def test_where_the_bot_cannot_reply_the_model_is_not_asked(rig: Rig, max_: Person) -> None:
    await close(rig)
    await max_.say("general", f"{rig.sandbox.mention} count the cats")
    direct = await max_.dm(rig.sandbox.bot_id)
    told = await max_.wait_for_message(direct, lambda m: m.author == "Signoff")
    assert "I lack Send Messages there" in told.text
    assert rig.driver.turns == {}
    assert await refused(rig.sandbox) == []


async def test_two_people_who_mention_it_there_again_and_again_cost_one_refusal_each(rig: Rig, max_: Person) -> None:
    olga = await rig.sandbox.person("Olga")
    for name in ("Max", "Olga"):
        await rig.sandbox.add_person(name, accepts_dms=False)
    await close(rig)
    last = 0
    for _ in range(60):
        for person in (max_, olga):
            last = (await person.say("general", f"{rig.sandbox.mention} count the cats")).id
    await rig.sandbox.overwrite("general", "Signoff")
    here = rig.client.get_channel(int((await rig.place()).channel))
    assert isinstance(here, discord.TextChannel)
    await until(lambda: here.permissions_for(here.guild.me).send_messages)
    heard = await max_.say("general", f"{rig.sandbox.mention} now you may")
    await rig.hears()
    assert heard.id > last
    assert [turn.message for turn in rig.driver.turns.values()] == [str(heard.id)]
    assert len(await refused(rig.sandbox)) == 2


async def test_a_refusal_that_the_permissions_do_not_show_is_not_repeated_either(
    rig: Rig, max_: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discord refuses although the permissions allow it: the reply is tried once, and later mentions are not taken."""
    thread = await max_.open_thread("general", "work", await max_.say("general", "hi"))
    turn = await rig.turn(max_, str(thread.id))
    await rig.sandbox.add_person("Max", accepts_dms=False)
    await rig.sandbox.fault("POST", f"/channels/{thread.id}/", status=403, code=50013, times=1000)
    monkeypatch.setattr("signoff.bot.front_end.TYPING_AFTER", 0.0)
    async with rig.front_end.working(turn):
        await rig.sandbox.wait_for("POST", lambda data: "typing" in data["path"], kind="rest")
        await until(lambda: rig.client.refusals.is_closed(str(thread.id)))
    async with rig.front_end.working(turn):
        await asyncio.sleep(0.1)
    await rig.front_end.notice(turn, "a notice is tried once, because it says why a call was not run")
    with pytest.raises(Undeliverable, match="lack a permission"):
        await rig.front_end.reply(turn, "three")
    await max_.say(thread, f"{rig.sandbox.mention} and now?")
    await until(lambda: rig.bot.mentions._refused)
    assert rig.driver.turns == {}
    here = [path for path in await refused(rig.sandbox) if str(thread.id) in path]
    assert [path.rsplit("/", 1)[1] for path in here] == ["typing", "messages", "messages"]


async def test_closed_direct_messages_are_tried_once(rig: Rig, max_: Person) -> None:
    turn = await rig.turn(max_)
    direct = await max_.dm(rig.sandbox.bot_id)
    await rig.sandbox.add_person("Max", accepts_dms=False)
    await rig.sandbox.overwrite("general", "Signoff", deny=int(Permission.SEND_MESSAGES))
    with pytest.raises(Undeliverable):
        await rig.front_end.reply(turn, "three")
    paths = await refused(rig.sandbox)
    assert [path for path in paths if str(direct.id) in path] == [paths[-1]]
    assert len(paths) == 2


async def test_a_reply_to_closed_direct_messages_and_a_forbidden_change_are_not_sent_again(
    rig: Rig, max_: Person
) -> None:
    direct = str((await max_.dm(rig.sandbox.bot_id)).id)
    turn = replace(await rig.turn(max_), place=Place("dm", direct, direct))
    await rig.sandbox.add_person("Max", accepts_dms=False)
    with pytest.raises(Undeliverable):
        await rig.front_end.reply(turn, "three")
    batch, _ = await show(rig, make_batch(await rig.place(), await rig.asker()))
    await rig.sandbox.fault("PATCH", "/messages/", status=403, code=50001)
    with pytest.raises(Undeliverable):
        await rig.front_end.refresh_card(batch)


async def test_a_refused_message_closes_the_channel_until_one_is_accepted(rig: Rig) -> None:
    channel = (await rig.place()).channel
    await rig.sandbox.fault("POST", "/messages", status=403, code=50013)
    with pytest.raises(discord.Forbidden):
        await sending.send(rig.client, channel, "hi", key=nonce("hi"))
    assert rig.client.refusals.is_closed(channel)
    await sending.send(rig.client, channel, "hi", key=nonce("hi"))
    assert not rig.client.refusals.is_closed(channel)


async def test_every_refused_response_counts_typing_and_commands_too(rig: Rig, max_: Person) -> None:
    place = await rig.place()
    await rig.sandbox.fault("POST", "/typing", status=403, code=50013, times=2)
    for _ in range(2):
        with pytest.raises(discord.Forbidden):
            await rig.client.get_partial_messageable(int(place.channel)).typing()
    await rig.sandbox.fault("POST", "/messages", status=429, retry_after=0.01)
    await rig.sandbox.fault("POST", "/messages", status=429, retry_after=0.01, headers={"X-RateLimit-Scope": "shared"})
    await sending.send(rig.client, place.channel, "hi", key=nonce("hi"))
    assert rig.client.refusals.count == 3


async def test_with_many_refusals_only_what_matters_is_sent(rig: Rig, max_: Person) -> None:
    turn, batch = await rig.turn(max_), make_batch(await rig.place("ops"), await rig.asker())
    for _ in range(FEWER + 1):
        rig.client.refusals.note(403)
    with pytest.raises(Braked):
        await sending.send(rig.client, turn.place.channel, "a word aside", key=nonce("aside"))
    await rig.front_end.notice(turn, "a notice")
    async with rig.front_end.working(turn):
        await asyncio.sleep(0.05)
    assert await rig.sandbox.rest_calls("POST", "/(messages|typing)$") == []
    await rig.front_end.post_card(batch)
    await rig.front_end.reply(turn, "three")
    assert len(await rig.sandbox.rest_calls("POST", "/messages$")) == 2


async def test_with_very_many_refusals_no_mention_is_taken(rig: Rig, max_: Person) -> None:
    for _ in range(FEWEST + 1):
        rig.client.refusals.note(429)
    await max_.say("general", f"{rig.sandbox.mention} count the cats")
    await asyncio.sleep(0.3)
    assert rig.driver.turns == {}
    assert await rig.sandbox.rest_calls("POST") == []


def test_the_brake_is_loud_and_lets_go_after_ten_minutes(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    for _ in range(FEWER):
        refusals.note(403)
    refusals.check(Weight.OPTIONAL)
    refusals.note(200)
    refusals.note(404)
    refusals.check(Weight.OPTIONAL)
    refusals.note(401)
    with pytest.raises(Braked):
        refusals.check(Weight.OPTIONAL)
    refusals.check(Weight.NORMAL)
    for _ in range(FEWEST - FEWER):
        refusals.note(429)
    with pytest.raises(Braked):
        refusals.check(Weight.NORMAL)
    refusals.check(Weight.ESSENTIAL)
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 2
    assert "no longer sent" in errors[0]
    assert "only cards and replies" in errors[1]
    now[0] = WINDOW
    refusals.check(Weight.OPTIONAL)
    assert refusals.count == 0


def test_the_brake_is_far_below_the_ban() -> None:
    assert FEWER < FEWEST <= 1000
