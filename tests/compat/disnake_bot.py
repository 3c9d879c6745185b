"""The compatibility bot in disnake. See run.py for its tasks."""
# pyright: basic, reportMissingImports=false

import os

import disnake
import disnake.http
from disnake.ext import commands

disnake.http.Route.BASE = os.environ["DISCORD_API_URL"]
bot = commands.InteractionBot(intents=disnake.Intents(guilds=True, guild_messages=True))


@bot.slash_command(description="Says it again")
async def echo(interaction, text: str = commands.Param(description="What to say", max_length=100)):
    await interaction.response.send_message(f"Echo {text}")


@bot.event
async def on_message(message):
    if not message.author.bot and bot.user in message.mentions:
        press = disnake.ui.Button(label="Press me", custom_id="press")
        form = disnake.ui.Button(label="Open a form", custom_id="form")
        await message.reply("What next?", components=[press, form])


@bot.event
async def on_button_click(interaction):
    if interaction.component.custom_id == "press":
        await interaction.response.edit_message(f"Pressed by {interaction.author.id}", components=[])
    else:
        reason = disnake.ui.TextInput(label="Why?", custom_id="reason")
        await interaction.response.send_modal(title="Reason", custom_id="why", components=[reason])


@bot.event
async def on_modal_submit(interaction):
    await interaction.response.send_message(f"Because {interaction.text_values['reason']}", ephemeral=True)


bot.run(os.environ["DISCORD_TOKEN"])
