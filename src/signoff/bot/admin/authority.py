"""Who may use the commands: checked for every command, every suggestion and every click on a page of the record.

Discord hides the commands from others, but a server can change that, so it is no protection.
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
    """Return the admin who uses the command, with their current rights. Raises Refused without Manage Server."""
    actor = people.clicker(interaction)
    if actor is None or interaction.guild_id is None or interaction.channel_id is None:
        raise Refused(NO_SERVER)
    if actor.is_bot or not actor.manages_server:
        raise Refused(NOT_ADMIN)
    return actor


def owner_of(interaction: discord.Interaction[Any], access: Access) -> Actor:
    """Return the person, if they may see and revoke grants here. Raises Refused otherwise.

    That is an admin of the server or, in direct messages, a person listed in `dm_users`. In direct messages people see
    only their own grants.
    """
    actor = people.clicker(interaction)
    if actor is not None and actor.server == DIRECT and access.refusal(actor, frozenset()) is None:
        return actor
    return admin_of(interaction)


def member_of(interaction: discord.Interaction[Any], access: Access) -> Actor:
    """Return the person who uses a command that is for everybody: a member, or in direct messages a listed person.

    Raises Refused otherwise.
    """
    actor = people.clicker(interaction)
    if actor is None or actor.is_bot or interaction.channel_id is None:
        raise Refused(NO_SERVER)
    return owner_of(interaction, access) if actor.server == DIRECT else actor


def place_of(interaction: discord.Interaction[Any], actor: Actor) -> Place:
    """Return the place of the command. A conversation has the id of its channel or thread."""
    here = str(interaction.channel_id)
    return Place(actor.server, here, here)
