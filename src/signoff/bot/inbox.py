"""The inbox: the open cards that a person may decide, in all servers, shown to that person alone, with their buttons.

A private message may be read far from the card's conversation. A press there counts as if the person had pressed the
card itself: they are looked up in the card's server, and the desk checks their rights there as it always does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import discord
from discord import ui

from signoff.approvals.approvers import may_decide, objection
from signoff.approvals.desk import Desk
from signoff.approvals.large_values import is_large
from signoff.approvals.model import Actor, Batch
from signoff.approvals.notify import copy_channels
from signoff.bot import quoting
from signoff.bot.buttons import rows
from signoff.bot.card_view import MAX_TEXT, render, render_off_loop
from signoff.bot.linked_cards import link
from signoff.bot.responses import PATIENCE, Visit, in_time, redraw, tell
from signoff.bot.split import size
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.model import Action, Card, Line, Moment, Style, Verb
from signoff.errors import CardFailed
from signoff.text.visible import plain

log = logging.getLogger(__name__)

MOST_SHOWN = 6
"""Cards in one list. A message takes 40 components, and each card here takes up to five."""
MOST_SERVERS = 20
"""Servers in which one person is looked up for one list."""
SHORT = 450
"""A call whose text is longer is shown only when its card is opened."""
TOOL = 64
PRIVATE = "a private message"
"""Stands for the channel of a message that one person sees: it is not the conversation's."""
EMPTY = "No open card waits for your decision."
SLOW_SERVERS = "-# Some servers could not be asked who you are there. Try again in a moment."


@dataclass(frozen=True, slots=True)
class Found:
    """The open cards that a person may decide, and whether every server could be asked."""

    batches: Sequence[Batch]
    complete: bool = True


class InboxView(ui.LayoutView):
    """A list of cards. Each has its link, and buttons that open it or, if its call is short, decide it."""

    def __init__(self, inbox: Found, now: float, offers: Offers) -> None:
        super().__init__(timeout=None)
        shown, texts = inbox.batches[:MOST_SHOWN], [_headline(inbox)]
        self.add_item(ui.TextDisplay[Any](texts[0]))
        for batch in shown:
            text, actions = _entry(batch, now, offers, MAX_TEXT // MOST_SHOWN - 100)
            self.add_item(ui.Separator[Any]())
            self.add_item(ui.TextDisplay[Any](text))
            for row in rows(actions):
                self.add_item(row)


class Inbox:
    def __init__(self, desk: Desk, now: Callable[[], float], offers: Offers) -> None:
        self._desk = desk
        self._now = now
        self._offers = offers

    async def at_home(self, visit: Visit | Line, target: str) -> Visit | Line:
        """Return the visit as one to the card's own server and channel, if it came from a private message elsewhere.

        The line says why the person cannot decide anything there.
        """
        if not isinstance(visit, Visit) or not visit.private:
            return visit
        batch = await self._desk.find(target)
        if batch is None:
            return visit
        near = visit.channel in (batch.place.channel, *copy_channels(batch))
        if near and visit.actor.server == batch.place.server:
            return visit  # an approvals channel may be in another server than the card
        try:
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

    async def view(self, actor: Actor) -> InboxView:
        return InboxView(await self.of(actor), self._now(), self._offers)

    async def show_card(self, interaction: discord.Interaction[Any], visit: Visit, batch: Batch, page: int) -> None:
        """Replace the private message with the whole card, if the person may still decide it."""
        objections = [objection(visit.actor, request, batch) for request in batch.questions]
        if None not in objections:
            await tell(interaction, wording.not_allowed(batch, batch.id, next(filter(None, objections), "")))
            return
        try:
            rendering = render_off_loop(batch, self._now(), page=page, offers=self._offers, shown_in=PRIVATE)
            rendered = await in_time(interaction, rendering, PATIENCE)
        except CardFailed as error:
            await tell(interaction, (f"This card can't be shown here: {error}",))
            return
        await redraw(interaction, rendered.view, attachments=rendered.files())

    async def _person(self, server: str, actor: Actor) -> Actor | None:
        """Return the person as they are in this server now; None if they are not in it."""
        if server == actor.server:
            return actor
        return await self._desk.directory.person(server, actor.id) if self._desk.directory else None


def _headline(inbox: Found) -> str:
    cards = len(inbox.batches)
    line = EMPTY if not cards else f"**{cards} open card{'s' if cards > 1 else ''}** for you, nearest deadline first"
    if cards > MOST_SHOWN:
        line += f"\n-# The first {MOST_SHOWN} are listed. Use /signoff inbox again after you have decided some."
    return line if inbox.complete else f"{line}\n{SLOW_SERVERS}"


def _entry(batch: Batch, now: float, offers: Offers, budget: int) -> tuple[str, list[Action]]:
    """Return the text and the buttons of one card in the list. Only a call that is shown whole can be accepted here."""
    tools = list(dict.fromkeys(plain(request.call.tool, TOOL) for request in batch.open_questions))
    named = ", ".join(map(quoting.code, tools[:3])) + (f" and {len(tools) - 3} more" if len(tools) > 3 else "")
    about: Line = (" for ", wording.person(batch.asker), ", ends ", Moment(batch.deadline))
    head = f"{named}{quoting.line(about)}\n{link(batch)}"
    opening = Action(Verb.OPEN, batch.id, "Open…", Style.PLAIN, batch.revision)
    if is_large(batch):  # not short enough for the list, and laying it out would delay everybody
        return head, [opening]
    try:
        rendered = render(batch, now, offers=offers)
    except CardFailed as error:
        log.info("the card of %s is not listed whole: %s", batch.id, error)
        return head, []
    whole = _short_call(rendered.card)
    if whole is None or size(f"{head}\n{whole}") > budget:
        return head, [opening]
    deciding = [action for action in rendered.card.buttons if action.verb in (Verb.ACCEPT, Verb.REJECT)]
    return f"{head}\n{whole}", [*deciding, opening]


def _short_call(card: Card) -> str | None:
    """Return the only call of a card as text, if all of it is short; None if it is not."""
    if len(card.calls) != 1 or card.files or card.pages > 1 or card.model_text:
        return None
    call = card.calls[0]
    if call.warnings or any(quote.note for quote in call.quotes):
        return None
    parts = [quoting.line(fact) for fact in call.facts]
    for quote in call.quotes:
        block, note = quoting.block(quote.text)
        if note:
            return None
        parts += [quoting.code(" ".join(quote.label.split())), block]
    text = "\n".join(parts)
    return text if size(text) <= SHORT else None
