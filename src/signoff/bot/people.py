"""Turn Discord users into Actors for the desk, and choose the approvers that a message pings.

If Discord sent less about a person than usual, they get less authority, never more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

import discord

from signoff.approvals.approvers import ASKER, parts, remaining_specs
from signoff.approvals.model import DIRECT, Actor, ApprovalRequest, Batch
from signoff.cards.model import Person, RoleRef

MOST_PINGS = 20
"""The most roles and people that one message pings."""


def asker(message: discord.Message, server: str) -> Actor:
    """Return the author of a message, with the roles that Discord sent along with it.

    The rights of these roles are known only once the server's data have arrived; see `knows_rights`.
    """
    author = message.author
    is_bot = author.bot or message.webhook_id is not None
    plain = Actor(id=str(author.id), name=author.display_name, server=server, is_bot=is_bot)
    if server == DIRECT or not isinstance(author, discord.Member):
        return plain
    if not knows_rights(message):
        return replace(plain, roles=_roles(author))
    return replace(member(author), server=server, is_bot=is_bot)


def knows_rights(message: discord.Message) -> bool:
    """Whether the data of the message's server have arrived, so that the rights of its author are known."""
    return message.guild is not None and not message.guild.unavailable


def member(user: discord.Member) -> Actor:
    """Return a member as an Actor, with the rights that their roles give them."""
    rights = user.guild_permissions
    return Actor(
        id=str(user.id),
        name=user.display_name,
        server=str(user.guild.id),
        roles=_roles(user),
        manages_server=rights.manage_guild or rights.administrator,
        is_bot=user.bot,
    )


def clicker(interaction: discord.Interaction[Any]) -> Actor | None:
    """Return the person who clicked, with the roles and permissions that Discord sent along with the click."""
    user: object = interaction.user
    if isinstance(user, discord.Member) and interaction.guild_id is not None:
        rights = interaction.permissions
        return Actor(
            id=str(user.id),
            name=user.display_name,
            server=str(interaction.guild_id),
            roles=_roles(user),
            manages_server=rights.manage_guild or rights.administrator,
            is_bot=user.bot,
        )
    if isinstance(user, discord.User) and interaction.guild_id is None:
        return Actor(id=str(user.id), name=user.display_name, server=DIRECT, is_bot=user.bot)
    return None


def _roles(member: discord.Member) -> frozenset[str]:
    # @everyone is left out: its id is the server's, and naming it as an approver must not mean everybody.
    # `member.roles` has only roles of servers whose data have arrived; the ids come with every event about a member.
    ids: Iterable[int] = member._roles  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownVariableType]
    server = cast("discord.Guild | None", member.guild)
    return frozenset(str(role) for role in ids if server is None or role != server.id)


def escalated_specs(request: ApprovalRequest) -> tuple[str, ...]:
    """Return the specifications of those who may decide only since the escalation, without missing approvers."""
    return tuple(spec for spec in remaining_specs(request) if request.escalated and spec in request.escalate_to)


def pings(
    batch: Batch, specs_of: Callable[[ApprovalRequest], Iterable[str]] = remaining_specs
) -> tuple[Person | RoleRef, ...]:
    """Return the roles and people to ping: the named approvers of open requests, without missing approvers.

    Manage Server names nobody to ping.
    """
    pinged: dict[Person | RoleRef, None] = {}
    for request in batch.open_questions:
        for spec in specs_of(request):
            pinged |= dict.fromkeys(_named(spec, request, batch))
    return tuple(pinged)[:MOST_PINGS]


def mentions(whom: Iterable[Person | RoleRef]) -> discord.AllowedMentions:
    """Allow a message to ping exactly these."""
    named = tuple(whom)
    return discord.AllowedMentions(
        everyone=False,
        replied_user=False,
        users=[discord.Object(int(one.id)) for one in named if isinstance(one, Person)],
        roles=[discord.Object(int(one.id)) for one in named if isinstance(one, RoleRef)],
    )


def _named(spec: str, request: ApprovalRequest, batch: Batch) -> list[Person | RoleRef]:
    named: list[Person | RoleRef] = []
    for part in parts(spec):
        kind, _, identifier = f"user:{batch.asker.id}".partition(":") if part == ASKER else part.partition(":")
        if not identifier.isascii() or not identifier.isdecimal():
            continue
        if kind == "role" and identifier != batch.place.server:
            named.append(RoleRef(identifier))
        elif kind == "user" and not (request.four_eyes and identifier == batch.asker.id):
            named.append(Person(identifier, identifier))
    return named[-1:]  # parts joined with `&` must all hold, so a ping for one part reaches everybody who qualifies
