"""Modals, selects and commands, with responses by discord.py."""

from typing import Any

import discord
import pytest
from discord import app_commands, ui

from discord_sandbox import SandboxClient, SandboxError
from tests.rigs.press_parts import post, row
from tests.rigs.real_client import Bot


async def test_modal_round_trip(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")

    async def respond(interaction: discord.Interaction) -> None:
        if interaction.type is discord.InteractionType.component:
            modal = ui.Modal(title="Why?", custom_id="why")
            modal.add_item(ui.Label(text="Reason", component=ui.TextInput(custom_id="reason", max_length=10)))
            modal.add_item(
                ui.Label(
                    text="Who",
                    component=ui.Select(custom_id="who", options=[discord.SelectOption(label="me", value="me")]),
                )
            )
            await interaction.response.send_modal(modal)
        else:
            data: Any = interaction.data
            await interaction.response.edit_message(content=str(data["components"]))

    bot.answer = respond
    max_, olga = await sandbox.person("Max"), await sandbox.person("Olga")
    opened = await max_.click(shown, "b")
    assert opened.modal is not None
    assert opened.modal["title"] == "Why?"
    for values, why in (({"reason": "x" * 11, "who": ["me"]}, "11 characters"), ({"nope": "x"}, "no field")):
        with pytest.raises(SandboxError, match=why):
            await max_.submit(opened, values)
    with pytest.raises(SandboxError, match="somebody else"):
        await olga.submit(opened, {"reason": "x"})
    sent = await max_.submit(opened, {"reason": "too risky", "who": ["me"]})
    assert sent.updated is not None
    assert "too risky" in sent.updated.text


async def test_modal_cannot_answer_a_modal_and_has_limits(bot: Bot, sandbox: SandboxClient) -> None:
    shown = await post(bot, sandbox, row(ui.Button(label="b", custom_id="b")), content="x")
    refusals: list[discord.HTTPException] = []

    async def respond(interaction: discord.Interaction) -> None:
        title = "t" * 46 if not refusals else "fine"
        try:
            modal = ui.Modal(title=title, custom_id="m")
            modal.add_item(ui.TextInput(label="l", custom_id="t"))
            await interaction.response.send_modal(modal)
        except discord.HTTPException as refusal:
            refusals.append(refusal)
            if interaction.type is discord.InteractionType.component:
                await respond(interaction)

    bot.answer = respond
    max_ = await sandbox.person("Max")
    opened = await max_.click(shown, "b")
    await max_.submit(opened, {"t": "x"}, wait=0.2)
    assert [refusal.code for refusal in refusals] == [50035, 50035]


async def test_selects_bring_values_and_what_they_stand_for(bot: Bot, sandbox: SandboxClient) -> None:
    olga, role = await sandbox.person("Olga"), await sandbox.role_id("Approvers")
    got: list[Any] = []

    class Choose(ui.View):
        @ui.select(options=[discord.SelectOption(label=x) for x in "abc"], max_values=2, custom_id="letters")
        async def letters(self, interaction: discord.Interaction, select: ui.Select[Any]) -> None:
            got.append(select.values)
            await interaction.response.defer()

        @ui.select(cls=ui.UserSelect, custom_id="who")
        async def who(self, interaction: discord.Interaction, select: ui.UserSelect[Any]) -> None:
            got.append([user.name for user in select.values])
            await interaction.response.defer()

        @ui.select(cls=ui.RoleSelect, custom_id="role")
        async def role(self, interaction: discord.Interaction, select: ui.RoleSelect[Any]) -> None:
            got.append([found.name for found in select.values])
            await interaction.response.defer()

        @ui.select(cls=ui.ChannelSelect, custom_id="where")
        async def where(self, interaction: discord.Interaction, select: ui.ChannelSelect[Any]) -> None:
            got.append([found.name for found in select.values])
            await interaction.response.defer()

    shown = await post(bot, sandbox, Choose(timeout=None), content="choose")
    max_ = await sandbox.person("Max")
    await max_.pick(shown, "letters", ["a", "c"])
    await max_.pick(shown, "who", [olga.id])
    await max_.pick(shown, "role", [role])
    await max_.pick(shown, "where", [(await sandbox.channel("ops")).id])
    assert got == [["a", "c"], ["olga"], ["Approvers"], ["ops"]]
    with pytest.raises(SandboxError, match="does not offer"):
        await max_.pick(shown, "letters", ["z"])
    with pytest.raises(SandboxError, match="is a select"):
        await max_.click(shown, "letters")


async def test_slash_command_with_autocomplete(bot: Bot, sandbox: SandboxClient) -> None:
    group = app_commands.Group(name="signoff", description="Bot", default_permissions=discord.Permissions(32))

    async def letters(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
        return [app_commands.Choice(name=w, value=w) for w in ("alpha", "beta") if w.startswith(current)]

    @group.command(description="rules")
    @app_commands.autocomplete(tool=letters)
    async def rule(
        interaction: discord.Interaction, tool: str, times: app_commands.Range[int, 1, 5], who: discord.Member
    ) -> None:
        await interaction.response.send_message(f"{tool} {times} {who.name}", ephemeral=True)

    bot.tree.add_command(group)
    await bot.tree.sync()
    ada, max_ = await sandbox.person("Ada"), await sandbox.person("Max")
    assert [command["name"] for command in await ada.commands("general")] == ["signoff"]
    offered = await ada.suggest("general", "signoff rule", "tool", tool="al")
    assert [choice["value"] for choice in offered.choices] == ["alpha"]
    answer = await ada.run("general", "signoff rule", tool="alpha", times=2, who=max_.id)
    assert answer.reply is not None
    assert (answer.text, answer.reply.ephemeral) == ("alpha 2 max", True)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"tool": "x", "times": 9, "who": 1}, "out of bounds"),
        ({"tool": "x"}, "needs times"),
    ]
    for options, why in refused:
        with pytest.raises(SandboxError, match=why):
            await ada.run("general", "signoff rule", **options)
    with pytest.raises(SandboxError, match="not offered"):
        await max_.run("general", "signoff rule", tool="x")
    assert len(await bot.tree.fetch_commands()) == 1
    guild = discord.Object(await sandbox.guild_id())
    assert await bot.tree.sync(guild=guild) == []


async def test_menu_commands_on_messages_and_people(bot: Bot, sandbox: SandboxClient) -> None:
    @bot.tree.context_menu(name="Read")
    async def read(interaction: discord.Interaction, message: discord.Message) -> None:
        await interaction.response.send_message(message.content, ephemeral=True)

    @bot.tree.context_menu(name="Greet")
    async def greet(interaction: discord.Interaction, member: discord.Member) -> None:
        await interaction.response.send_message(f"hello {member.name}")

    await bot.tree.sync()
    max_, olga = await sandbox.person("Max"), await sandbox.person("Olga")
    said = await olga.say("general", "words")
    assert (await max_.run_on(said, "Read")).text == "words"
    assert (await max_.run_on(olga, "Greet", "general")).text == "hello olga"
