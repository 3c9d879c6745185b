"""The compatibility bot in hikari. See run.py for its tasks."""
# pyright: basic, reportMissingImports=false

import os

import hikari

bot = hikari.GatewayBot(
    os.environ["DISCORD_TOKEN"],
    intents=hikari.Intents.GUILDS | hikari.Intents.GUILD_MESSAGES,
    rest_url=os.environ["DISCORD_API_URL"],
    banner=None,
)


@bot.listen()
async def register(event: hikari.StartedEvent) -> None:
    servers = await bot.rest.fetch_my_guilds()  # hikari asks for counts; without them nothing is registered
    assert all(server.approximate_member_count for server in servers)
    application = await bot.rest.fetch_application()
    command = bot.rest.slash_command_builder("echo", "Says it again")
    option = hikari.CommandOption(
        type=hikari.OptionType.STRING, name="text", description="What to say", is_required=True, max_length=100
    )
    await bot.rest.set_application_commands(application.id, [command.add_option(option)])


@bot.listen()
async def hear(event: hikari.GuildMessageCreateEvent) -> None:
    me = bot.get_me()
    if event.is_bot or me is None or me.id not in (event.message.user_mentions_ids or ()):
        return
    row = bot.rest.build_message_action_row()
    row.add_interactive_button(hikari.ButtonStyle.PRIMARY, "press", label="Press me")
    row.add_interactive_button(hikari.ButtonStyle.PRIMARY, "form", label="Open a form")
    await event.message.respond("What next?", component=row, reply=True)


@bot.listen()
async def interact(event: hikari.InteractionCreateEvent) -> None:
    interaction = event.interaction
    if isinstance(interaction, hikari.ComponentInteraction) and interaction.custom_id == "press":
        text = f"Pressed by {interaction.user.id}"
        await interaction.create_initial_response(hikari.ResponseType.MESSAGE_UPDATE, text, components=[])
    elif isinstance(interaction, hikari.ComponentInteraction):
        row = bot.rest.build_modal_action_row().add_text_input("reason", "Why?")
        await interaction.create_modal_response("Reason", "why", component=row)
    elif isinstance(interaction, hikari.ModalInteraction):
        text = f"Because {interaction.components[0].components[0].value}"
        flags = hikari.MessageFlag.EPHEMERAL
        await interaction.create_initial_response(hikari.ResponseType.MESSAGE_CREATE, text, flags=flags)
    elif isinstance(interaction, hikari.CommandInteraction) and interaction.options:
        text = f"Echo {interaction.options[0].value}"
        await interaction.create_initial_response(hikari.ResponseType.MESSAGE_CREATE, text)


bot.run(check_for_updates=False)
