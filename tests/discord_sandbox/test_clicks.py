"""Clicks on buttons, with responses by discord.py."""

import asyncio
import io
import re
from typing import Any

import discord
import pytest
from discord import ui

from discord_sandbox import SandboxClient, SandboxError
from tests.rigs.press_parts import post, row
from tests.rigs.real_client import Bot, running, text_channel, until


class Decide(ui.DynamicItem[ui.Button[Any]], template=r"test:(?P<id>\d+)"):
    """A button that carries an id and works after a restart."""

    def __init__(self, number: int) -> None:
        super().__init__(ui.Button(label="Accept", custom_id=f"test:{number}"))
        self.number = number

    @classmethod
    async def from_custom_id(cls, interaction: Any, item: Any, match: re.Match[str], /) -> "Decide":
        return cls(int(match["id"]))

    async def callback(self, interaction: discord.Interaction) -> None:
        done = ui.LayoutView()
        done.add_item(ui.TextDisplay(f"{self.number} accepted by {interaction.user.name}"))
        await interaction.response.edit_message(view=done, allowed_mentions=discord.AllowedMentions.none())
        await interaction.followup.send("thank you", ephemeral=True)


def card(number: int = 7) -> ui.LayoutView:
    view = ui.LayoutView(timeout=None)
    button: Any = Decide(number)  # a DynamicItem is typed for either kind of view, an ActionRow for one
    view.add_item(ui.Container(ui.TextDisplay("May I?"), ui.Separator(), ui.ActionRow(button)))
    return view


async def test_click_updates_the_card_and_answers_privately(bot: Bot, sandbox: SandboxClient) -> None:
    bot.add_dynamic_items(Decide)
    max_, olga = await sandbox.person("Max"), await sandbox.person("Olga")
    shown = await post(bot, sandbox, card())
    assert (shown.text, [b.label for b in shown.buttons]) == ("May I?", ["Accept"])
    answer = await max_.click(shown, "Accept")
    assert answer.callback_type == 7
    assert answer.updated is not None
    assert answer.updated.text == "7 accepted by max"
    private = await max_.wait_for_message("general", lambda m: m.ephemeral)
    assert private.text == "thank you"
    assert [m.text for m in await olga.messages("general")] == ["7 accepted by max"]
    with pytest.raises(SandboxError, match="no component"):
        await max_.click(answer.updated, "test:7")


async def test_button_works_after_a_restart(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, card(9))
    await bot.close()
    second = Bot()
    second.add_dynamic_items(Decide)
    async with running(second):
        answer = await (await sandbox.person("Max")).click(shown, "Accept")
        assert answer.updated is not None
        assert answer.updated.text == "9 accepted by max"


async def test_click_while_the_bot_is_down_fails(bot: Bot, sandbox: SandboxClient) -> None:
    """It fails at once if no session is left, else at the deadline, because that session might still be resumed."""
    shown = await post(bot, sandbox, card())
    max_ = await sandbox.person("Max")
    await bot.close()
    await sandbox.settings(interaction_deadline=0.1)
    answer = await max_.click(shown, "Accept")
    assert (answer.failed, answer.error) == (True, "This interaction failed")
    await sandbox.settings(interaction_deadline=60, clock_shift=1000)
    assert (await max_.click(shown, "Accept", wait=1)).failed
    await max_.say("general", "life goes on")


async def test_silence_fails_and_a_late_answer_is_unknown(bot: Bot, sandbox: SandboxClient) -> None:
    await sandbox.settings(interaction_deadline=0.1)
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")
    answer = await (await sandbox.person("Max")).click(shown, "b")
    assert answer.error == "This interaction failed"
    with pytest.raises(discord.NotFound) as caught:
        await bot.interactions[0].response.send_message("late")
    assert caught.value.code == 10062


async def test_second_answer_is_refused(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")
    max_ = await sandbox.person("Max")
    clicking = asyncio.create_task(max_.click(shown, "b"))
    await until(lambda: bot.interactions)
    one = bot.interactions[0]
    await one.response.send_message("first")
    one.response._response_type = None  # like a second process, which does not know of the first response
    with pytest.raises(discord.HTTPException) as caught:
        await one.response.send_message("second")
    assert (caught.value.status, caught.value.code) == (400, 40060)
    assert (await clicking).text == "first"


async def test_expired_token_ends_followups(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")
    bot.answer = lambda interaction: interaction.response.defer()
    await (await sandbox.person("Max")).click(shown, "b")
    await bot.interactions[0].followup.send("in time")
    await sandbox.settings(clock_shift=901)
    with pytest.raises(discord.HTTPException) as caught:
        await bot.interactions[0].followup.send("too late")
    assert (caught.value.status, caught.value.code) == (401, 50027)


async def test_deferred_answer_is_filled_in_later(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")
    bot.answer = lambda interaction: interaction.response.defer(thinking=True, ephemeral=True)
    max_ = await sandbox.person("Max")
    answer = await max_.click(shown, "b")
    assert answer.reply is not None
    assert (answer.reply.loading, answer.reply.ephemeral) == (True, True)
    await bot.interactions[0].edit_original_response(content="done")
    later = await sandbox.interaction(answer)
    assert later.reply is not None
    assert (later.reply.loading, later.reply.content) == (False, "done")
    extra = await bot.interactions[0].followup.send("more", wait=True)
    await extra.edit(content="more, changed")
    await bot.interactions[0].delete_original_response()
    assert (await sandbox.interaction(answer)).text == "more, changed"


async def test_answers_carry_files(bot: Bot, sandbox: SandboxClient) -> None:
    plain = ui.LayoutView(timeout=None)
    plain.add_item(ui.ActionRow(ui.Button(label="Show", custom_id="show")))
    shown = await post(bot, sandbox, plain)
    max_ = await sandbox.person("Max")
    bot.answer = lambda i: i.response.send_message(file=discord.File(io.BytesIO(b"private"), "p.txt"), ephemeral=True)
    answer = await max_.click(shown, "Show")
    assert answer.reply is not None
    assert await sandbox.fetch(answer.reply.files[0]["url"]) == b"private"

    async def with_file(interaction: discord.Interaction) -> None:
        file = discord.File(io.BytesIO(b"whole"), "whole.txt")
        view = ui.LayoutView()
        view.add_item(ui.File(file))
        await interaction.response.edit_message(view=view, attachments=[file])

    bot.answer = with_file
    updated = (await max_.click(shown, "Show")).updated
    assert updated is not None
    assert [file["filename"] for file in updated.files] == ["whole.txt"]
    gone = ui.LayoutView()
    gone.add_item(ui.TextDisplay("closed"))
    await text_channel(bot).get_partial_message(shown.id).edit(view=gone, attachments=[])
    now = await max_.see(shown)
    assert now is not None
    assert now.files == []


async def test_member_in_an_interaction_has_roles_and_permissions(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")
    bot.answer = lambda interaction: interaction.response.defer()
    for name in ("Ada", "Olga", "Max"):
        await (await sandbox.person(name)).click(shown, "b")
    ada, olga, max_ = bot.interactions
    assert [i.permissions.manage_guild for i in (ada, olga, max_)] == [True, False, False]
    assert isinstance(olga.user, discord.Member)
    assert [role.name for role in olga.user.roles] == ["@everyone", "Approvers"]
    with pytest.raises(SandboxError, match="cannot see"):
        await (await sandbox.person("Otto")).click(shown, "b")


@pytest.mark.slow
async def test_two_hundred_clicks_at_once_each_get_their_answer(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")
    count = iter(range(1000))
    bot.answer = lambda i: i.response.send_message(f"{next(count)} {i.user.name}", ephemeral=True)
    max_, olga = await sandbox.person("Max"), await sandbox.person("Olga")
    clicks = [person.click(shown, "b") for _ in range(100) for person in (max_, olga)]
    answers = await asyncio.gather(*clicks)
    assert {answer.text.split()[0] for answer in answers} == {str(n) for n in range(200)}
    assert [answer.text.split()[1] for answer in answers] == ["max", "olga"] * 100


async def test_forged_and_replayed_interactions_reach_the_bot(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")
    bot.answer = lambda interaction: interaction.response.send_message("seen", ephemeral=True)
    otto = await sandbox.person("Otto")
    other = await sandbox.guild_id("Other Place")
    answer = await otto.click(shown, "not-there", forged=True, guild_id=other)
    assert (answer.text, answer.raw["forged"]) == ("seen", True)
    assert bot.interactions[0].guild_id == other
    await sandbox.replay(answer)
    await until(lambda: len(bot.interactions) == 2)
    assert bot.interactions[1].id == bot.interactions[0].id


async def test_private_conversation_has_buttons_too(bot: Bot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    user = await bot.fetch_user(max_.id)
    await user.send("x", view=row(ui.Button(label="b", custom_id="b")))
    bot.answer = lambda interaction: interaction.response.send_message(str(interaction.permissions.value))
    place = await max_.dm("Bot")
    shown = await max_.wait_for_message(place, lambda m: m.buttons)
    assert (await max_.click(shown, "b")).text == "0"
    assert bot.interactions[0].guild_id is None
