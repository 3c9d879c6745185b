"""The inbox: the open cards that a person may decide, in all servers, shown to that person alone, with their buttons.

A private message may be read far from the card's conversation. A press there counts as if the person had pressed the
card itself: they are looked up in the card's server, and the desk checks their rights there as it always does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import discord

from signoff.approvals.approvers import may_decide, objection
from signoff.approvals.desk import Desk
from signoff.approvals.model import Actor, Batch
from signoff.approvals.notify import copy_channels
from signoff.bot import people, quoting
from signoff.bot.buttons import rows
from signoff.bot.card_view import MAX_COMPONENTS, render_off_loop
from signoff.bot.inbox_view import SENTENCE, TOOL, Found, InboxView, back, page_of
from signoff.bot.open_inboxes import OpenInboxes
from signoff.bot.responses import PATIENCE, End, Visit, in_time, redraw, show_privately, tell
from signoff.bot.sending import Failure
from signoff.bot.split import size
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.model import Code, Line
from signoff.errors import CardFailed
from signoff.text.visible import plain

log = logging.getLogger(__name__)

MOST_SERVERS = 20
"""Servers in which one person is looked up for one list."""
PRIVATE = "a private message"
"""Stands for the channel of a message that one person sees: it is not the conversation's."""


class Inbox:
    def __init__(self, desk: Desk, now: Callable[[], float], offers: Offers) -> None:
        self._desk = desk
        self._now = now
        self._offers = offers
        self.opened = OpenInboxes(self.view, now)

    async def at_home(self, visit: Visit | Line, target: str) -> Visit | Line:
        """Return the visit as one to the card's own server and channel, if it came from a private message elsewhere.

        The line says why the person cannot decide anything there.
        """
        if not isinstance(visit, Visit) or not visit.private:
            return visit
        try:
            batch = await self._desk.find(target)
            if batch is None:
                return visit
            near = visit.channel in (batch.place.channel, *copy_channels(batch))
            if near and visit.actor.server == batch.place.server:
                return visit  # an approvals channel may be in another server than the card
            actor = await self._person(batch.place.server, visit.actor)
        except Exception as error:
            log.warning("could not look up %s for a private press: %s", visit.actor.id, error)
            return wording.SLOW
        if actor is None:
            return wording.UNKNOWN_REQUEST
        return replace(visit, actor=actor, channel=batch.place.channel, away=True)

    async def of(self, actor: Actor) -> Found:
        """Return the open cards that this person may decide, those with the nearest deadline first."""
        by_server = await self._desk.open_by_server()
        servers = sorted(by_server, key=lambda server: (server != actor.server, server))[:MOST_SERVERS]
        known = await asyncio.gather(*(self._person(server, actor) for server in servers), return_exceptions=True)
        batches: list[Batch] = []
        for server, person in zip(servers, known, strict=True):
            if isinstance(person, BaseException):
                log.warning("could not look up %s in server %s: %s", actor.id, server, person)
            elif person is not None:
                batches += [b for b in by_server[server] if any(may_decide(person, r, b) for r in b.open_questions)]
        complete = len(servers) == len(by_server) and not any(isinstance(one, BaseException) for one in known)
        return Found(sorted(batches, key=lambda batch: batch.deadline), complete)

    async def view(self, actor: Actor, page: int = 0, said: Line = ()) -> InboxView:
        return InboxView(await self.of(actor), self._now(), self._offers, page, said)

    async def show(self, interaction: discord.Interaction[Any], actor: Actor) -> None:
        """Respond to the command with the first page."""
        view = await in_time(interaction, self.view(actor), PATIENCE)
        await show_privately(interaction, view=view)
        self.opened.note(interaction, actor, view)

    async def turn(self, interaction: discord.Interaction[Any], actor: Actor, page: int, said: Line = ()) -> None:
        """Draw the inbox anew in place of the private message that was pressed."""
        view = await in_time(interaction, self.view(actor, page, said), PATIENCE)
        await redraw(interaction, view, attachments=[])
        self.opened.note(interaction, actor, view)

    async def respond(self, interaction: discord.Interaction[Any], said: Line) -> None:
        """Say why a press did not count: above the inbox that was pressed, drawn anew, or in a message of its own."""
        page, actor = page_of(interaction.message), people.clicker(interaction)
        if page is not None and actor is not None:
            fits = size(quoting.line(said)) <= SENTENCE
            try:
                await self.turn(interaction, actor, page, said if fits else ())
                if fits:
                    return
            except Exception as error:
                log.warning("the inbox of %s could not be drawn again: %s", actor.id, error)
        await tell(interaction, said)

    def end(self, interaction: discord.Interaction[Any], batch: Batch) -> End | None:
        """Return how to respond to a decision about this card that was made in an inbox; None if it was not."""
        if page_of(interaction.message) is None:
            return None

        async def respond(said: Line) -> None:
            try:
                await self.respond(interaction, (*said, " · ", Code(plain(batch.questions[0].shown_tool, TOOL))))
            except Failure as error:
                log.warning("an inbox was not answered: %s", error)

        return respond

    async def show_card(self, interaction: discord.Interaction[Any], visit: Visit, batch: Batch, page: int) -> None:
        """Replace the private message with the whole card, if it is open and the person may still decide it."""
        objections = [objection(visit.actor, request, batch) for request in batch.questions]
        if batch.settled:
            await self.respond(interaction, wording.already_settled(batch))
            return
        if None not in objections:
            await self.respond(interaction, wording.not_allowed(batch, batch.id, next(filter(None, objections), "")))
            return
        try:
            rendering = render_off_loop(batch, self._now(), page=page, offers=self._offers, shown_in=PRIVATE)
            rendered = await in_time(interaction, rendering, PATIENCE)
        except CardFailed as error:
            await self.respond(interaction, (f"This card can't be shown here: {error}",))
            return
        listed = page_of(interaction.message)
        if listed is not None and rendered.view.total_children_count + 2 <= MAX_COMPONENTS:
            for row in rows([back(listed)]):
                rendered.view.add_item(row)
        await redraw(interaction, rendered.view, attachments=rendered.files())

    async def _person(self, server: str, actor: Actor) -> Actor | None:
        """Return the person as they are in this server now; None if they are not in it."""
        if server == actor.server:
            return actor
        return await self._desk.directory.person(server, actor.id) if self._desk.directory else None
