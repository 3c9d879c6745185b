"""The compatibility bot in interactions.py. See run.py for its tasks."""
# pyright: basic, reportMissingImports=false

import os

import interactions
from interactions.api.http.route import Route

Route.BASE = os.environ["DISCORD_API_URL"]
bot = interactions.Client(intents=interactions.Intents.GUILDS | interactions.Intents.GUILD_MESSAGES)


@interactions.slash_command("echo", description="Says it again")
@interactions.slash_option("text", "What to say", interactions.OptionType.STRING, required=True)
async def echo(ctx: interactions.SlashContext, text: str):
    await ctx.send(f"Echo {text}")


@interactions.listen()
async def on_message_create(event):
    message = event.message
    if message.author.bot or f"<@{bot.user.id}>" not in message.content:
        return
    press = interactions.Button(style=1, label="Press me", custom_id="press")
    form = interactions.Button(style=1, label="Open a form", custom_id="form")
    await message.reply("What next?", components=interactions.ActionRow(press, form))


@interactions.component_callback("press")
async def press(ctx: interactions.ComponentContext):
    await ctx.edit_origin(content=f"Pressed by {ctx.author.id}", components=[])


@interactions.component_callback("form")
async def form(ctx: interactions.ComponentContext):
    reason = interactions.ShortText(label="Why?", custom_id="reason")
    await ctx.send_modal(interactions.Modal(reason, title="Reason", custom_id="why"))


@interactions.modal_callback("why")
async def why(ctx: interactions.ModalContext, reason: str):
    await ctx.send(f"Because {reason}", ephemeral=True)


bot.start(os.environ["DISCORD_TOKEN"])
