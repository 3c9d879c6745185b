"""Sending, editing, uploading and being refused, through discord.py."""

import asyncio
import io

import discord
import pytest
from discord.http import Route, handle_message_parameters

from discord_sandbox import SandboxClient, SandboxServer
from tests.rigs.real_client import Bot, running, text_channel, until

NONE = discord.AllowedMentions.none()


async def test_person_sees_what_the_bot_sends_and_edits(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    sent = await text_channel(bot).send("one")
    await sent.edit(content="two")
    seen = await max_.wait_for_message("general", lambda m: m.content == "two")
    assert (seen.edits, seen.author) == (1, "Bot")
    await sent.delete()
    assert await max_.messages("general") == []


async def test_files_go_up_and_come_back(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    sent = await text_channel(bot).send(file=discord.File(io.BytesIO(b"whole text"), "whole.txt"))
    assert await sent.attachments[0].read() == b"whole text"
    seen = await max_.wait_for_message("general", lambda m: m.files)
    assert await sandbox.fetch(seen.files[0]["url"]) == b"whole text"
    await sent.edit(attachments=[discord.File(io.BytesIO(b"b"), "b.txt")])
    assert [a.filename for a in (await sent.fetch()).attachments] == ["b.txt"]
    said = await max_.say("general", sandbox.mention, files={"notes.md": b"# hi"})
    heard = await bot.hears(sandbox.mention)
    assert heard.id == said.id
    assert await heard.attachments[0].read() == b"# hi"


async def test_file_component_shows_an_upload(bot: Bot, sandbox: SandboxClient) -> None:
    file = discord.File(io.BytesIO(b"args"), "args.json")
    view = discord.ui.LayoutView()
    view.add_item(discord.ui.Container(discord.ui.TextDisplay("see file"), discord.ui.File(file)))
    sent = await text_channel(bot).send(view=view, file=file)
    assert sent.attachments == []
    seen = await (await sandbox.person("Max")).wait_for_message("general", lambda m: m.files)
    assert await sandbox.fetch(seen.files[0]["url"]) == b"args"
    missing = discord.ui.LayoutView()
    missing.add_item(discord.ui.File("attachment://nowhere.txt"))
    await refused(text_channel(bot).send(view=missing), 400, 50035, "referenced attachment was not found")


async def refused(doing: object, status: int, code: int, text: str = "") -> discord.HTTPException:
    with pytest.raises(discord.HTTPException) as caught:
        await doing  # type: ignore[misc]
    assert (caught.value.status, caught.value.code) == (status, code)
    assert text in caught.value.text
    return caught.value


async def test_limits_carry_discords_codes(bot: Bot, sandbox: SandboxClient) -> None:
    channel = text_channel(bot)
    await refused(channel.send("x" * 2001), 400, 50035, "2000 or fewer")
    await refused(channel.send(""), 400, 50006)
    view = discord.ui.LayoutView()
    for _ in range(2):
        view.add_item(discord.ui.TextDisplay("x" * 2001))
    await refused(channel.send(view=view), 400, 50035, "maximum of 4000")
    twins = discord.ui.View()
    for _ in range(2):
        twins.add_item(discord.ui.Button(label="x", custom_id="same"))
    await refused(channel.send("x", view=twins), 400, 50035, "duplicated")
    for button in (
        discord.ui.Button(label="y" * 81, custom_id="a"),
        discord.ui.Button(label="y", custom_id="a" * 101),
    ):
        wrong = discord.ui.View()
        wrong.add_item(button)
        await refused(channel.send("x", view=wrong), 400, 50035)
    await refused(channel.send("x", nonce="n" * 26), 400, 50035)
    await sandbox.settings(attachment_limit=100)
    await refused(channel.send(file=discord.File(io.BytesIO(b"x" * 101), "big")), 413, 40005)
    files = [discord.File(io.BytesIO(b"x"), f"{n}.txt") for n in range(11)]
    raw = bot.http.send_message(channel.id, params=handle_message_parameters(files=files[:10]))
    assert len((await raw)["attachments"]) == 10


async def test_v2_excludes_content_for_ever(bot: Bot) -> None:
    view = discord.ui.LayoutView()
    view.add_item(discord.ui.TextDisplay("layout"))
    sent = await text_channel(bot).send(view=view)
    await refused(sent.edit(content="plain"), 400, 50035, "IS_COMPONENTS_V2")
    await refused(sent.edit(view=None), 400, 50006)
    again = await sent.edit(suppress=True)
    assert again.flags.components_v2


async def test_same_nonce_is_the_same_message(bot: Bot, sandbox: SandboxClient) -> None:
    first = await text_channel(bot).send("card", nonce="turn-1")
    again = await text_channel(bot).send("card", nonce="turn-1")
    other = await text_channel(bot, "ops").send("card", nonce="turn-1")
    assert first.id == again.id != other.id
    await sandbox.settings(clock_shift=600)
    assert (await text_channel(bot).send("card", nonce="turn-1")).id != first.id


async def test_mentions_ping_unless_forbidden(bot: Bot, sandbox: SandboxClient) -> None:
    max_, olga = await sandbox.person("Max"), await sandbox.person("Olga")
    role = await sandbox.role_id("Approvers")
    text = f"{max_.mention} <@&{role}> @everyone"
    quiet = await text_channel(bot).send(text, allowed_mentions=NONE)
    assert (quiet.mentions, quiet.role_mentions, quiet.mention_everyone) == ([], [], False)
    assert await sandbox.pings() == []
    await quiet.edit(content=text + "!", allowed_mentions=NONE)
    assert await sandbox.pings() == []
    await quiet.edit(content=text)
    (ping,) = await sandbox.pings()
    assert (ping["on"], ping["everyone"]) == ("edit", True)
    assert {str(max_.id), str(olga.id)} <= set(ping["users"])
    await text_channel(bot).send(f"`{max_.mention}`")
    assert len(await sandbox.pings()) == 1


async def test_layout_text_pings_too(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    view = discord.ui.LayoutView()
    view.add_item(discord.ui.TextDisplay(max_.mention))
    sent = await text_channel(bot).send(view=view, allowed_mentions=NONE)
    assert await sandbox.pings() == []
    await sent.edit(view=view)
    assert [ping["users"] for ping in await sandbox.pings()] == [[str(max_.id)]]


async def test_links_unfurl_unless_suppressed(bot: Bot, sandbox: SandboxClient) -> None:
    link = "https://example.org/?secret=1"
    await text_channel(bot).send(link, suppress_embeds=True)
    await text_channel(bot).send(f"<{link}> and `{link}`")
    assert await sandbox.unfurls() == []
    await text_channel(bot).send(f"see {link}")
    assert await sandbox.unfurls() == [link]


async def test_reply_pings_its_author_and_carries_the_original(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    await max_.say("general", f"{sandbox.mention} question")
    asked = await bot.hears("question")
    reply = await asked.reply("answer")
    assert reply.reference is not None
    assert isinstance(reply.reference.resolved, discord.Message)
    assert reply.reference.resolved.id == asked.id
    assert [ping["users"] for ping in await sandbox.pings()][-1] == [str(max_.id)]
    await max_.say("general", "thanks", reply_to=(await max_.messages("general"))[-1])
    await bot.hears("thanks")  # a reply that pings the bot arrives with its text


@pytest.mark.parametrize(
    ("permission", "status", "code"),
    [(1 << 10, 403, 50001), (1 << 11, 403, 50013), (1 << 15, 403, 50013)],
)
async def test_missing_permissions(bot: Bot, sandbox: SandboxClient, permission: int, status: int, code: int) -> None:
    channel = text_channel(bot)
    await sandbox.overwrite("general", "Bot", deny=permission)
    await refused(channel.send(file=discord.File(io.BytesIO(b"x"), "x")), status, code)


async def test_unknown_things_and_others_messages(bot: Bot, sandbox: SandboxClient) -> None:
    channel = text_channel(bot)
    await refused(channel.fetch_message(1), 404, 10008)
    await refused(bot.fetch_channel(1), 404, 10003)
    await refused(bot.fetch_user(1), 404, 10013)
    said = await (await sandbox.person("Max")).say("general", f"{sandbox.mention} mine")
    await refused(channel.get_partial_message(said.id).edit(content="yours"), 403, 50005)
    await refused(channel.get_partial_message(said.id).delete(), 403, 50013)
    hidden = await sandbox.channel("lobby")
    await refused(bot.fetch_channel(hidden.id), 403, 50001)
    await refused(bot.http.request(Route("GET", "/nowhere")), 404, 0)
    assert await sandbox.unknown_routes() == ["GET /api/v10/nowhere"]


async def test_private_messages_both_ways(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    place = await max_.dm("Bot")
    await max_.say(place, "psst")
    heard = await bot.hears("psst")
    assert isinstance(heard.channel, discord.DMChannel)
    await heard.channel.send("yes?")
    assert (await max_.wait_for_message(place, lambda m: m.content == "yes?")).author == "Bot"
    await sandbox.add_person("Max", accepts_dms=False)
    user = await bot.fetch_user(max_.id)
    await refused(user.send("still there?"), 403, 50007)
    otto = await bot.fetch_user((await sandbox.person("Otto")).id)
    await refused(otto.send("hello stranger"), 403, 50007)


async def test_reactions_both_ways(discord_py_pointed: None, sandbox: SandboxClient) -> None:
    bot = Bot(discord.Intents(guilds=True, guild_messages=True, guild_reactions=True))
    async with running(bot):
        sent = await text_channel(bot).send("vote")
        await sent.add_reaction("👍")
        max_ = await sandbox.person("Max")
        seen = await max_.wait_for_message("general", lambda m: m.reactions)
        waiting = bot.wait_for("raw_reaction_add", check=lambda event: event.user_id == max_.id, timeout=5)
        pressed = asyncio.ensure_future(waiting)
        await max_.react(seen, "👍")
        assert str((await pressed).emoji) == "👍"
        assert {u.name async for u in (await sent.fetch()).reactions[0].users()} == {"Bot", "max"}
        await max_.react(seen, "👍", remove=True)
        assert bot.user is not None
        await sent.remove_reaction("👍", bot.user)
        assert (await sent.fetch()).reactions == []


async def test_history_pages_in_both_directions(bot: Bot) -> None:
    channel = text_channel(bot)
    sent = [await channel.send(str(number)) for number in range(5)]
    assert [m.content async for m in channel.history(limit=2)] == ["4", "3"]
    assert [m.content async for m in channel.history(after=sent[2])] == ["3", "4"]
    assert [m.content async for m in channel.history(before=sent[2])] == ["1", "0"]
    assert [m.content async for m in channel.history(around=sent[2], limit=3)] == ["3", "2", "1"]
    assert [m.content async for m in channel.history(around=sent[2], limit=1)] == ["2"]


async def test_person_edits_and_deletes_reach_the_bot(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    said = await max_.say("general", f"{sandbox.mention} first")
    await bot.hears("first")
    await max_.edit(said, f"{sandbox.mention} second")
    await bot.receives("MESSAGE_UPDATE")
    await max_.delete(said)
    await bot.receives("MESSAGE_DELETE")
    await max_.type("general")
    assert "TYPING_START" not in bot.events  # the bot did not ask for this intent


async def test_typing_and_server_events(
    discord_py_pointed: None, sandbox: SandboxClient, sandbox_server: SandboxServer
) -> None:
    bot = Bot(discord.Intents(guilds=True, guild_typing=True))
    async with running(bot):
        await (await sandbox.person("Max")).type("general")
        await bot.receives("TYPING_START")
        async with text_channel(bot).typing():
            pass
        await sandbox.create_channel("fresh")
        await until(lambda: any(c.name == "fresh" for c in bot.get_all_channels()))
        await sandbox.delete_channel("fresh")
        await until(lambda: not any(c.name == "fresh" for c in bot.get_all_channels()))
        await sandbox.delete_role("Approvers")
        await until(lambda: not any(r.name == "Approvers" for r in text_channel(bot).guild.roles))
