"""`/signoff inbox`: the open cards that the person who types it may decide. Everybody may use it."""

from __future__ import annotations

from typing import Any

import discord
from discord import app_commands

from signoff.approvals.errors import Refused
from signoff.bot import people
from signoff.bot.inbox import Inbox

NOT_HERE = "I can't tell who you are here. Use the command in a server."


def add_inbox_command(group: app_commands.Group, inbox: Inbox | None) -> None:
    @group.command(name="inbox", description="Show the open cards that you may decide, in all servers")
    async def show_inbox(interaction: discord.Interaction[Any]) -> None:
        actor = people.clicker(interaction)
        if inbox is None or actor is None or actor.is_bot:
            raise Refused(NOT_HERE)
        await inbox.show(interaction, actor)
