"""`/signoff audit`: the record of this server, ten rows at a time, with buttons that work after a restart.

A button's id names its page. Every click checks the person's rights, and shows the record of the server of that click.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import discord
from discord import app_commands, ui
from discord.app_commands import Range

from signoff.approvals.audit import AuditRow
from signoff.approvals.errors import DeskError, Refused
from signoff.bot.admin.authority import admin_of
from signoff.bot.admin.autocomplete import Suggestions
from signoff.bot.admin.record_pages import (
    Filters,
    Page,
    Spot,
    checked_filters,
    newest_page,
    page_at,
    write_id,
)
from signoff.bot.admin.record_wording import ARGUMENTS_SPACE, KINDS, quoted, row_text
from signoff.bot.admin.responses import in_time, inert, tell
from signoff.bot.buttons import OwnButton
from signoff.bot.responses import redraw, show_privately
from signoff.bot.sending import Failure
from signoff.bot.split import sendable, size
from signoff.turns.administration import Administration

log = logging.getLogger(__name__)

Interaction = discord.Interaction[Any]
MOST_TEXT = 4000
FAILED = "This page could not be shown. The reason is in the bot's log. Try again, or use /signoff audit."
UNKNOWN_PAGE = "This page does not exist. Use /signoff audit."
CHOICES = [app_commands.Choice(name=entry.label, value=kind) for kind, entry in KINDS.items()]


class Record:
    def __init__(self, admin: Administration) -> None:
        self._admin = admin

    async def show(self, interaction: Interaction, filters: Filters) -> None:
        """Respond to a command with the newest page. Raises Refused."""
        server = admin_of(interaction).server
        await show_privately(interaction, view=await in_time(interaction, self._view(server, None, filters)))

    async def turn(self, interaction: Interaction, spot: Spot | None) -> None:
        """Respond to a click with another page. Never raises: discord.py would only log it."""
        try:
            server = admin_of(interaction).server
            if spot is None:
                raise Refused(UNKNOWN_PAGE)
            await redraw(interaction, await in_time(interaction, self._view(server, spot, spot.filters)))
        except DeskError as refusal:
            await _say(interaction, str(refusal))
        except Exception:
            log.exception("a page of the record for %s failed", interaction.user.id)
            await _say(interaction, FAILED)

    async def _view(self, server: str, spot: Spot | None, filters: Filters) -> RecordView:
        async def fetch(before: int | None, limit: int) -> Sequence[AuditRow]:
            return await self._admin.audit(
                server,
                before=before,
                limit=limit,
                actor=filters.actor,
                tool=filters.tool,
                kind=filters.kind,
                request=filters.request,
            )

        page = await (page_at(fetch, spot) if spot else newest_page(fetch))
        texts = await asyncio.gather(*(self._text(row) for row in page.rows))
        return RecordView(page, texts, filters)

    async def _text(self, row: AuditRow) -> str | None:
        return await self._admin.audit_text(row.text) if row.text else ""


class RecordView(ui.LayoutView):
    """One page of the record. Each row is a separate text, so that the markup of one row cannot affect another."""

    def __init__(self, page: Page, texts: Sequence[str | None], filters: Filters) -> None:
        super().__init__(timeout=None)
        for text in fitting(page, texts, filters):
            self.add_item(ui.TextDisplay[Any](text))
        spots: dict[str, Spot] = {}
        if page.rows and page.newer:
            spots["Newer"] = Spot(False, page.rows[0].seq, filters)
        if page.rows and page.older:
            spots["Older"] = Spot(True, page.rows[-1].seq, filters)
        buttons = [OwnButton(label=label, custom_id=write_id(spot)) for label, spot in spots.items()]
        if buttons:
            self.add_item(ui.ActionRow[Any](*buttons))


def fitting(page: Page, texts: Sequence[str | None], filters: Filters) -> list[str]:
    """Return the texts of the page within Discord's limit. The arguments are shortened as needed."""
    shown: list[str] = []
    for space in (ARGUMENTS_SPACE, ARGUMENTS_SPACE // 2, ARGUMENTS_SPACE // 4, 0):
        rows = [row_text(row, text, space) for row, text in zip(page.rows, texts, strict=True)]
        shown = [sendable(text) for text in (_title(filters), *(rows or ["No rows match."]))]
        if sum(map(size, shown)) <= MOST_TEXT:
            break
    return shown


def _title(filters: Filters) -> str:
    narrowed = [f"by <@{filters.actor}>"] if filters.actor else []
    narrowed += [f"about {quoted(filters.tool, 64)}"] if filters.tool else []
    narrowed += [KINDS[filters.kind].label] if filters.kind else []
    narrowed += [f"request {quoted(filters.request, 16)}"] if filters.request else []
    return f"**Record of this server**, newest first{''.join(f', {part}' for part in narrowed)}"


async def _say(interaction: Interaction, text: str) -> None:
    try:
        await tell(interaction, inert(text))
    except Failure as error:
        log.warning("a click by %s got no answer: %s", interaction.user.id, error)


def add_record_command(group: app_commands.Group, record: Record, suggestions: Suggestions) -> None:
    @group.command(description="Show the record: who decided what, when, and how it ended")
    @app_commands.describe(
        person="only what this person did",
        tool="only about this tool",
        kind="only rows of this kind",
        request="only about this request (the id is on its card)",
    )
    @app_commands.choices(kind=CHOICES)
    @app_commands.autocomplete(tool=suggestions.tools())
    async def audit(
        interaction: Interaction,
        person: discord.User | None = None,
        tool: Range[str, 1, 64] | None = None,
        kind: str | None = None,
        request: Range[str, 1, 32] | None = None,
    ) -> None:
        actor = str(person.id) if person is not None else None
        await record.show(interaction, checked_filters(actor, tool, kind, request))
