"""Who may give orders here: asked anew for every command, every suggestion and every paging click.

Discord hides the commands from others, but that is only a hint which a server can change.
"""

from __future__ import annotations

from typing import Any

import discord

from signoff.approvals.errors import Refused
from signoff.approvals.model import DIRECT, Actor, Place
from signoff.bot import people
from signoff.bot.access import Access

NOT_ADMIN = "You need the Manage Server permission in this server. Nothing was done."
NO_SERVER = "This command works only in a server, not in direct messages."


def admin_of(interaction: discord.Interaction[Any]) -> Actor:
    """Who is asking, as they are at this moment. Raises Refused for everybody without Manage Server."""
    actor = people.clicker(interaction)
    if actor is None or interaction.guild_id is None or interaction.channel_id is None:
        raise Refused(NO_SERVER)
    if actor.is_bot or not actor.manages_server:
        raise Refused(NOT_ADMIN)
    return actor


def owner_of(interaction: discord.Interaction[Any], access: Access) -> Actor:
    """Who may see and revoke what is remembered here: an admin of the server. In a direct conversation whoever is
    listed for them, and the desk shows and revokes nothing but their own. Raises Refused."""
    actor = people.clicker(interaction)
    if actor is not None and actor.server == DIRECT and access.refusal(actor, frozenset()) is None:
        return actor
    return admin_of(interaction)


def place_of(interaction: discord.Interaction[Any], actor: Actor) -> Place:
    """Where they are: a conversation has the id of its channel or thread."""
    here = str(interaction.channel_id)
    return Place(actor.server, here, here)
