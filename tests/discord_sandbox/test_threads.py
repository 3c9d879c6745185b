"""Threads through discord.py: opening, archiving, locking, joining."""

import discord
import pytest

from discord_sandbox import SandboxClient, SandboxError
from tests.rigs.real_client import Bot, text_channel, until


async def code_of(doing: object) -> tuple[int, int]:
    with pytest.raises(discord.HTTPException) as caught:
        await doing  # type: ignore[misc]
    return caught.value.status, caught.value.code


async def test_thread_of_a_message_has_its_id_and_opens_once(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    said = await max_.say("general", f"{sandbox.mention} do it")
    message = await bot.hears("do it")
    thread = await message.create_thread(name="do it")
    assert thread.id == said.id
    assert await code_of(message.create_thread(name="again")) == (400, 160004)
    await thread.send("working")
    seen = await max_.wait_for_message(said.id, lambda m: m.content == "working")
    assert seen.channel_id == said.id
    again = await text_channel(bot).fetch_message(said.id)
    assert again.thread is not None
    assert again.thread.name == "do it"
    first, second = [m async for m in thread.history(oldest_first=True)]
    assert first.type is discord.MessageType.thread_starter_message
    assert first.reference is not None
    assert isinstance(first.reference.resolved, discord.Message)
    assert first.reference.resolved.id == said.id
    assert second.content == "working"
    await until(lambda: bot.get_channel(said.id) is not None)


async def test_archived_thread_refuses_edits_and_wakes_on_a_message(bot: Bot, sandbox: SandboxClient) -> None:
    thread = await text_channel(bot).create_thread(name="t", type=discord.ChannelType.public_thread)
    sent = await thread.send("card")
    await sandbox.archive(thread.id)
    assert await code_of(sent.edit(content="new")) == (400, 50083)
    await thread.send("wake up")
    assert not (await sandbox.channel(thread.id)).archived
    await sent.edit(content="new")
    await sandbox.archive(thread.id)
    await bot.receives("THREAD_UPDATE", 3)
    await until(lambda: bot.get_channel(thread.id) is None)  # the client forgets archived threads
    await thread.edit(archived=False)
    assert not (await sandbox.channel(thread.id)).archived


async def test_locked_thread_is_for_moderators(bot: Bot, sandbox: SandboxClient) -> None:
    thread = await text_channel(bot).create_thread(name="t", type=discord.ChannelType.public_thread)
    await sandbox.archive(thread.id, False, locked=True)
    assert await code_of(thread.send("hello")) == (403, 160005)
    with pytest.raises(SandboxError, match="locked"):
        await (await sandbox.person("Max")).say(thread.id, "hello")
    await (await sandbox.person("Ada")).say(thread.id, "the owner may")


async def test_quiet_thread_archives_itself(bot: Bot, sandbox: SandboxClient) -> None:
    thread = await text_channel(bot).create_thread(
        name="t", type=discord.ChannelType.public_thread, auto_archive_duration=60
    )
    assert await sandbox.archive_idle() == []
    await sandbox.settings(clock_shift=3700)
    assert await sandbox.archive_idle() == [str(thread.id)]


async def test_thread_permissions(bot: Bot, sandbox: SandboxClient) -> None:
    channel = text_channel(bot)
    thread = await channel.create_thread(name="t", type=discord.ChannelType.public_thread)
    await sandbox.overwrite("general", "Bot", deny=1 << 38)
    assert await code_of(thread.send("x")) == (403, 50013)
    await sandbox.overwrite("general", "Bot", deny=1 << 35)
    said = await channel.send("x")
    assert await code_of(said.create_thread(name="no")) == (403, 50013)
    await sandbox.overwrite("general", "Bot", deny=1 << 10)
    assert await code_of(thread.send("x")) == (403, 50001)
    await sandbox.overwrite("general", "Bot")
    await bot.receives("THREAD_LIST_SYNC")


async def test_private_thread_is_for_its_members(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    thread = await text_channel(bot).create_thread(name="hush", type=discord.ChannelType.private_thread)
    with pytest.raises(SandboxError, match="cannot see"):
        await max_.messages(thread.id)
    await thread.add_user(discord.Object(max_.id))
    await thread.send("between us")
    assert (await max_.messages(thread.id))[-1].content == "between us"
    assert {member.id for member in await thread.fetch_members()} == {max_.id, sandbox.bot_id}


async def test_bot_added_to_a_private_thread_learns_of_it(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    place = await max_.open_thread("general", "hush", type=12)
    assert bot.get_channel(place.id) is None
    await max_.say(place, f"{sandbox.mention} come in")
    assert isinstance((await bot.hears("come in")).channel, discord.Thread)


async def test_person_opens_a_thread_and_the_bot_hears_of_it(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    place = await max_.open_thread("general", "mine")
    await bot.receives("THREAD_CREATE")
    await max_.say(place, f"{sandbox.mention} in here")
    heard = await bot.hears("in here")
    assert isinstance(heard.channel, discord.Thread)
    await bot.receives("THREAD_MEMBERS_UPDATE")  # a mention brings the bot into the thread
    assert heard.channel.guild.get_thread(place.id) is not None
    await heard.channel.send("here")
