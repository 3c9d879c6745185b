"""A small bot of ordinary discord.py for tests of the page: commands, selects, modals, files."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import discord
from discord import app_commands, ui

from discord_sandbox import SandboxClient, SandboxServer
from discord_sandbox.discord_py import pointed_at, running

ANSWERED_WITHIN = 30.0
"""Seconds for the bot to respond to a press. Discord gives three, which a noisy machine may use up."""
COLOURS = ("red", "green", "greenish blue")


TOOLS = tuple(f"{letter}-tool" for letter in "abcdefghijklmnop")


async def use(interaction: discord.Interaction[Any]) -> None:
    await interaction.response.send_message("used")


class Reason(ui.Modal, title="Why not?"):
    words = ui.TextInput[Any](label="Reason", min_length=3, max_length=100)

    async def on_submit(self, interaction: discord.Interaction[Any]) -> None:
        await interaction.response.send_message(f"Because: {self.words.value}")


class Inputs(ui.Modal, title="All inputs"):
    """One form with each kind of input that only forms have."""

    words: ui.TextDisplay[Any] = ui.TextDisplay("Read **this** first.")
    scope: ui.Label[Any] = ui.Label(
        text="What",
        description="How much is covered",
        component=ui.RadioGroup(
            options=[
                discord.RadioGroupOption(label="This call", value="call", default=True),
                discord.RadioGroupOption(label="This tool", value="tool", description="With the named arguments"),
            ]
        ),
    )
    names: ui.Label[Any] = ui.Label(
        text="Arguments",
        component=ui.CheckboxGroup(
            options=[discord.CheckboxGroupOption(label=name, value=name) for name in ("path", "content")],
            required=True,
            max_values=2,
        ),
    )
    sure: ui.Label[Any] = ui.Label(text="I am sure", component=ui.Checkbox())
    file: ui.Label[Any] = ui.Label(text="Notes", component=ui.FileUpload(required=False, min_values=0))

    async def on_submit(self, interaction: discord.Interaction[Any]) -> None:
        scope, names, sure, file = [
            cast(Any, label.component) for label in (self.scope, self.names, self.sure, self.file)
        ]
        files = [(await one.read()).decode() for one in file.values]
        await interaction.response.send_message(f"Got {scope.value} {names.values} {sure.value} {files}")


class Everything(ui.LayoutView):
    """One message with each kind of component."""

    def __init__(self) -> None:
        super().__init__(timeout=None)
        box = ui.Container[Any](accent_colour=0x248046)
        box.add_item(ui.TextDisplay[Any]("## A box\nwith **bold** text"))
        box.add_item(ui.Separator[Any]())
        ask: ui.Button[Any] = ui.Button(label="Open a form", style=discord.ButtonStyle.primary, custom_id="form")
        ask.callback = self.form
        box.add_item(ui.Section[Any]("A section", accessory=ask))
        box.add_item(ui.File[Any]("attachment://notes.txt"))
        pick: ui.Select[Any] = ui.Select(
            placeholder="A colour", options=[discord.SelectOption(label=c) for c in COLOURS], custom_id="colour"
        )
        pick.callback = self.picked
        box.add_item(ui.ActionRow[Any](pick))
        many: ui.Select[Any] = ui.Select(
            placeholder="Some colours",
            options=[discord.SelectOption(label=c) for c in COLOURS],
            custom_id="colours",
            max_values=2,
        )
        many.callback = self.picked
        box.add_item(ui.ActionRow[Any](many))
        silent: ui.Button[Any] = ui.Button(label="Silent", custom_id="silent")
        silent.callback = self.silence
        quiet: ui.Button[Any] = ui.Button(label="Whisper", custom_id="whisper")
        quiet.callback = self.whisper
        fields: ui.Button[Any] = ui.Button(label="All inputs", custom_id="inputs")
        fields.callback = self.inputs
        box.add_item(ui.ActionRow[Any](silent, quiet, fields, ui.Button(label="Off", custom_id="off", disabled=True)))
        self.add_item(box)

    async def form(self, interaction: discord.Interaction[Any]) -> None:
        await interaction.response.send_modal(Reason())

    async def inputs(self, interaction: discord.Interaction[Any]) -> None:
        await interaction.response.send_modal(Inputs())

    async def picked(self, interaction: discord.Interaction[Any]) -> None:
        values = (interaction.data or {}).get("values", [])
        await interaction.response.send_message(f"Picked {', '.join(values)}")

    async def whisper(self, interaction: discord.Interaction[Any]) -> None:
        await interaction.response.send_message("psst", ephemeral=True)

    async def silence(self, interaction: discord.Interaction[Any]) -> None:
        """Does not respond, so that the interaction fails."""


class FixtureBot(discord.Client):
    def __init__(self) -> None:
        super().__init__(intents=discord.Intents(guilds=True, guild_messages=True))
        self.tree = app_commands.CommandTree(self)
        self._connection.guild_ready_timeout = 0.05
        self.heard: list[discord.Message] = []

        @self.tree.command(description="Paints something")
        @app_commands.describe(what="What to paint", colour="In which colour")
        async def paint(interaction: discord.Interaction[Any], what: str, colour: str) -> None:
            await interaction.response.send_message(f"painted {what} {colour}")

        tools = app_commands.Group(name="tools", description="Many commands")
        self.tree.add_command(tools)
        for name in TOOLS:
            tools.add_command(app_commands.Command(name=name, description=f"Uses the {name}", callback=use))

        @paint.autocomplete("colour")
        async def suggest(interaction: discord.Interaction[Any], typed: str) -> list[app_commands.Choice[str]]:
            return [app_commands.Choice(name=c, value=c.upper()) for c in COLOURS if c.startswith(typed)]

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Skip the pause that Discord requires here; the sandbox does not."""

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    def channel(self, name: str = "general") -> discord.TextChannel:
        return next(c for c in self.get_all_channels() if c.name == name)  # type: ignore[return-value]

    async def show_everything(self) -> discord.Message:
        file = discord.File(io.BytesIO(b"line one\nline two\n"), "notes.txt")
        return await self.channel().send(view=Everything(), files=[file])


World = tuple[SandboxServer, SandboxClient, FixtureBot]
"""A sandbox, a client of it, and the bot in it."""


@asynccontextmanager
async def fixture_world() -> AsyncGenerator[World]:
    """Run a sandbox in this process with the bot in it. discord.py is pointed back afterwards."""
    async with SandboxServer() as server, SandboxClient(server.control_url, server.key) as sandbox:
        await sandbox.rate_limits(enabled=False)
        await sandbox.settings(interaction_deadline=ANSWERED_WITHIN)
        bot = FixtureBot()
        with pointed_at(server.api_url, server.gateway_url):
            async with running(bot, server.token):
                await bot.tree.sync()
                yield server, sandbox, bot
