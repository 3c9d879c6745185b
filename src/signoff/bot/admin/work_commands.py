"""`/signoff grants`, `revoke`, `pending`, `pause`, `resume` and `stop`: grants, open cards and runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import discord
from discord import app_commands
from discord.app_commands import Range

from signoff.approvals.errors import DeskError
from signoff.approvals.model import Actor
from signoff.bot.access import Access
from signoff.bot.admin import listing
from signoff.bot.admin.authority import admin_of, member_of, owner_of, place_of
from signoff.bot.admin.autocomplete import Suggestions
from signoff.bot.admin.responses import in_time, inert, tell
from signoff.bot.admin.rule_commands import checked_id
from signoff.errors import CardFailed
from signoff.turns.administration import Administration

log = logging.getLogger(__name__)

Interaction = discord.Interaction[Any]
MOST_REPOSTED = 10
"""The most cards to post again at once: more would flood the channels, and Discord would limit the rate."""


def add_work_commands(
    group: app_commands.Group,
    admin: Administration,
    suggestions: Suggestions,
    mask: listing.Mask,
    now: Callable[[], float],
    access: Access,
) -> None:
    @group.command(description="List the remembered decisions")
    async def grants(interaction: Interaction) -> None:
        actor = owner_of(interaction, access)
        remembered = await in_time(interaction, admin.grants(actor))
        standing = [one for one in remembered if one.stands(now())]
        await tell(interaction, listing.grants_text(standing, mask), name="grants")

    @group.command(description="Forget a remembered decision, so that such calls ask again")
    @app_commands.describe(grant="the grant's id, as /signoff grants shows it")
    @app_commands.autocomplete(grant=suggestions.grants())
    async def revoke(interaction: Interaction, grant: Range[str, 1, 100]) -> None:
        actor = owner_of(interaction, access)
        revoked = await in_time(interaction, admin.revoke(checked_id("grant", grant), actor))
        by, tool = listing.who(revoked.by), listing.quoted(revoked.tool)
        said = f"Revoked: grant {listing.quoted(revoked.id)} of {by} for {tool}."
        await tell(interaction, f"{said} Such calls ask again, starting with the next one.")

    @group.command(description="List the open cards of this server and post them again")
    @app_commands.describe(repost="post them again at the end of their channels (default: True)")
    async def pending(interaction: Interaction, repost: bool = True) -> None:
        actor = admin_of(interaction)
        text = await in_time(interaction, _pending(admin, actor, repost=repost is not False))
        await tell(interaction, text, name="pending")

    @group.command(description="Pause this server: cancel the open cards and start nothing new")
    async def pause(interaction: Interaction) -> None:
        actor = admin_of(interaction)
        cancelled = await in_time(interaction, admin.pause(actor))
        cards = "No card was open" if not cancelled else f"{cancelled} open card{_s(cancelled)} cancelled"
        await tell(interaction, f"Paused. {cards}. Nothing new starts in this server until /signoff resume.")

    @group.command(description="Let runs start again after /signoff pause")
    async def resume(interaction: Interaction) -> None:
        actor = admin_of(interaction)
        was_paused = await in_time(interaction, admin.resume(actor))
        said = "Resumed. New runs start again. Cancelled cards stay cancelled."
        await tell(interaction, said if was_paused else "This server was not paused. Nothing has changed.")

    @group.command(description="Stop your runs in this channel or thread; with Manage Server, everybody's")
    @app_commands.describe(everywhere="stop them in the whole server (default: False)")
    async def stop(interaction: Interaction, everywhere: bool = False) -> None:
        actor = member_of(interaction, access)
        whole = everywhere is True
        own = "" if actor.manages_server else " of yours"
        here = None if whole else place_of(interaction, actor).conversation
        count = await in_time(interaction, admin.stop(actor, here))
        if count:
            said = f"Stopped {count} run{_s(count)}{own} {'in this server' if whole else 'here'}."
        elif whole:
            said = f"Nothing{own} was running in this server."
        else:
            said = f"Nothing{own} was running here. Use this command in the run's thread, or set everywhere:True."
        await tell(interaction, said)


async def _pending(admin: Administration, actor: Actor, *, repost: bool) -> str:
    batches = sorted(await admin.pending(actor.server), key=lambda batch: batch.deadline)
    if not repost or not batches:
        return listing.pending_text(batches, {})
    notes = {batch.id: "not posted again: too many at once" for batch in batches[MOST_REPOSTED:]}
    for batch in batches[:MOST_REPOSTED]:
        notes[batch.id] = await _repost(admin, batch.id, actor)
    # A card that was posted again is a new message, and some may have been decided meanwhile.
    batches = sorted(await admin.pending(actor.server), key=lambda batch: batch.deadline)
    return listing.pending_text(batches, notes)


async def _repost(admin: Administration, batch_id: str, actor: Actor) -> str:
    try:
        await admin.repost(batch_id, actor)
    except (DeskError, CardFailed) as error:
        return f"not posted again: {inert(str(error))}"
    except Exception:
        log.exception("card of %s was not posted again", batch_id)
        return "not posted again: the reason is in the bot's log"
    return "posted again"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
