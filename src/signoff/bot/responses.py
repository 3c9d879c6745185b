"""Interaction responses: within Discord's three seconds, privately or on the message that was pressed, in order.

This module decides nothing and pings nobody. Each function checks whether its response is the first one, because slow
work uses the first one to ask for more time. The card of a batch is drawn by one task at a time, and a task that had to
wait for another one reads the batch again: otherwise two people who decide two calls at the same moment would overwrite
each other's card.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import discord

from signoff.approvals.desk import Desk
from signoff.approvals.model import Actor, Batch
from signoff.bot import panels, people, quoting
from signoff.bot.card_view import render_off_loop
from signoff.bot.sending import NOBODY, Failure, while_open
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.model import Action, Line, Style, Verb
from signoff.cards.wording import explain_refusal
from signoff.dataclass import dataclass
from signoff.errors import CardFailed, SignoffError

log = logging.getLogger(__name__)

T = TypeVar("T")
PATIENCE = 2.0
"""Seconds to wait for the desk before asking Discord for more time. Discord's limit is three seconds."""
BEGAN = "signoff:began"
"""The key in an interaction's extras with the time of its arrival: several slow steps share the same patience."""
BOTS: Line = ("Bots cannot decide.",)
REFUSED_SPACE = 800
"""Characters for the reason of a refusal."""


class Refresh(Protocol):
    """Edits every message that shows the card, except `drawn`, so that it shows this page of the batch."""

    def __call__(self, batch: Batch, page: int = 0, drawn: str | None = None) -> Awaitable[None]: ...


End = Callable[[Line], Awaitable[None]]
"""Replaces a private message once something was decided in it. It gets the line to say, and lets no error escape."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Who pressed something, and where."""

    actor: Actor
    channel: str
    card: str | None
    """The card's message; None for a press on a private panel."""
    private: bool = False
    away: bool = False
    """Whether the private message is far from the card's conversation, as in somebody's inbox."""


class Canvas(asyncio.Lock):
    """The lock to hold while drawing a card. It counts how often the card was drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = 0

    def release(self) -> None:
        self.drawn += 1
        super().release()


class Drawing:
    """Lets one task at a time draw a card, so that an older state is never drawn over a newer one."""

    def __init__(self) -> None:
        self._canvases: WeakValueDictionary[str, Canvas] = WeakValueDictionary()
        """Batch id -> the canvas of its card."""

    def of(self, batch: Batch) -> Canvas:
        return self._canvases.setdefault(batch.id, Canvas())


class Slow(Exception):
    """The store took too long for a response that must be the first one."""


def visit(interaction: discord.Interaction[Any]) -> Visit | Line:
    """Who pressed, and where; or the line to tell them if they cannot decide anything at all."""
    actor = people.clicker(interaction)
    if actor is None or interaction.channel_id is None:
        return wording.UNKNOWN_REQUEST
    if actor.is_bot:
        return BOTS
    message = interaction.message
    private = message is not None and message.flags.ephemeral
    card = None if message is None or private else str(message.id)
    return Visit(actor, str(interaction.channel_id), card, private)


def refusal(error: Exception, visit: Visit, target: str) -> Line:
    """The line for a person whose press or form did not count."""
    if isinstance(error, Slow):
        return wording.SLOW
    if said := explain_refusal(error, target, REFUSED_SPACE):
        return said
    log.error("the desk failed on a click by %s on %s", visit.actor.id, target, exc_info=error)
    return wording.NOT_SAVED


async def tell(interaction: discord.Interaction[Any], said: Line) -> None:
    """Say something that only the person who clicked can see."""
    await whisper(interaction, quoting.line(said))


def time_left(interaction: discord.Interaction[Any], patience: float) -> float:
    """Return the seconds that are left of this patience. They are counted from the first call for an interaction."""
    now = time.monotonic()
    return max(interaction.extras.setdefault(BEGAN, now) + patience - now, 0.0)


async def in_time(interaction: discord.Interaction[Any], work: Awaitable[T], patience: float) -> T:
    """Ask Discord for more time if the work takes longer. The work is never cancelled: it may be half done.

    The patience is counted from the first step of this interaction.
    """
    loop, asking = asyncio.get_running_loop(), list[asyncio.Task[None]]()

    async def ask_for_time() -> None:
        try:
            # For a command the response is a new private message; after a press nothing is seen until the card changes.
            await while_open(interaction.client, interaction.response.defer(ephemeral=True))
        except Failure as error:
            log.warning("could not ask for more time: %s", error)

    def is_slow() -> None:
        if not interaction.response.is_done():
            asking.append(loop.create_task(ask_for_time()))

    # The work runs in this task: the response to a quick decision is on its way before the run that it wakes begins.
    alarm = loop.call_later(time_left(interaction, patience), is_slow)
    try:
        return await work
    finally:
        alarm.cancel()
        for task in asking:
            await task


async def whisper(interaction: discord.Interaction[Any], text: str, file: discord.File | None = None) -> None:
    """Say something that only this person can see."""
    more: dict[str, Any] = {} if file is None else {"file": file}
    await show_privately(interaction, content=text, suppress_embeds=True, **more)


async def show_privately(interaction: discord.Interaction[Any], **what: Any) -> None:
    """Send a message that only this person can see. `what`: keyword arguments for discord.py, such as `view`."""

    async def send() -> None:
        post = interaction.followup.send if interaction.response.is_done() else interaction.response.send_message
        await post(ephemeral=True, allowed_mentions=NOBODY, **what)

    await while_open(interaction.client, send())


async def redraw(interaction: discord.Interaction[Any], view: discord.ui.LayoutView, **more: Any) -> None:
    """Change the message that was pressed."""

    async def edit() -> None:
        late = interaction.response.is_done()
        change = interaction.edit_original_response if late else interaction.response.edit_message
        await change(view=view, allowed_mentions=NOBODY, **more)

    await while_open(interaction.client, edit())


async def open_form(interaction: discord.Interaction[Any], form: discord.ui.Modal) -> None:
    await while_open(interaction.client, interaction.response.send_modal(form))


class Responses:
    def __init__(
        self,
        desk: Desk,
        refresh: Refresh,
        now: Callable[[], float],
        offers: Offers,
        patience: float = PATIENCE,
        drawing: Drawing | None = None,
    ) -> None:
        self._desk = desk
        self._refresh = refresh
        self._now = now
        self._offers = offers
        self.patience = patience
        self._drawing = drawing or Drawing()

    async def in_time(self, interaction: discord.Interaction[Any], work: Coroutine[Any, Any, T]) -> T:
        return await in_time(interaction, work, self.patience)

    async def at_once(self, interaction: discord.Interaction[Any], work: Coroutine[Any, Any, T]) -> T:
        """Await work that leads to a form, which must be the first response. Raises Slow if it takes too long.

        If an earlier step has asked for more time, there is more time: what follows is no form then.
        """
        if interaction.response.is_done():
            return await work
        try:
            return await asyncio.wait_for(work, time_left(interaction, self.patience))
        except TimeoutError as error:
            raise Slow from error

    async def panel(self, interaction: discord.Interaction[Any], visit: Visit, panel: panels.AnyPanel) -> None:
        """Show a private panel: a new one, or in place of the panel that was pressed."""
        if visit.private:
            await redraw(interaction, panel)
        else:
            await show_privately(interaction, view=panel)

    async def show(
        self,
        interaction: discord.Interaction[Any],
        visit: Visit,
        batch: Batch,
        target: str,
        page: int,
        *,
        everywhere: bool = True,
        end: End | None = None,
    ) -> None:
        """Respond to a decision that counted: draw the card and its copies again, and close the panel if there is one.

        The caller has just read or changed `batch`. Without `everywhere`, as for another page, only the message that
        was pressed is drawn. `end` replaces a private message with something else than one line.
        """
        canvas = self._drawing.of(batch)
        # While this task asked for more time, others may have decided and drawn.
        before = None if interaction.response.is_done() else canvas.drawn
        if visit.private:
            said = wording.answer(batch, target)
            await (end(said) if end else self._end_panel(interaction, said, batch if visit.away else None))
        async with canvas:
            # Decisions wake their tasks in the order of their commits: nothing is newer unless somebody has drawn it.
            latest = batch if canvas.drawn == before else await self._latest(visit, batch)
            # A click may come before the store knows which message shows the card.
            posted = visit.card if visit.channel == batch.place.channel else None
            latest = latest if latest.card_message else replace(latest, card_message=posted)
            try:
                if not visit.private:
                    await self._draw(interaction, latest, page, visit.channel)
                if everywhere:
                    await self._refresh(latest, page, visit.card)
            except SignoffError as error:
                # The decision stands. The driver draws a settled card again; the next click redraws an open card.
                log.warning("the card of %s does not show the latest: %s", batch.id, error)
                return
        if latest.ended and not latest.card_final and (everywhere or not latest.copies):
            try:
                await self._desk.mark_card_final(batch.id, latest.copies)
            except SignoffError:
                # The decision stands; recovery will draw the card again.
                log.exception("card of %s not marked as final", batch.id)

    async def _latest(self, visit: Visit, batch: Batch) -> Batch:
        try:
            return await self._desk.look(batch.id, visit.actor, visit.channel, visit.card)
        except Exception as error:
            log.warning("the batch %s could not be read again: %s", batch.id, error)
            return batch

    async def _draw(self, interaction: discord.Interaction[Any], batch: Batch, page: int, channel: str) -> None:
        try:
            await self._edit(interaction, batch, page, channel)
        except (*Failure, CardFailed) as error:
            log.warning("the answer to a click failed, editing the card instead: %s", error)
            await self._refresh(batch, page)

    async def _edit(self, interaction: discord.Interaction[Any], batch: Batch, page: int, channel: str) -> None:
        rendered = await render_off_loop(batch, self._now(), page=page, offers=self._offers, shown_in=channel)
        # Send the files again: a component can only show a file of the same response, and files of another page must
        # be removed.
        await redraw(interaction, rendered.view, attachments=rendered.files())

    async def _end_panel(self, interaction: discord.Interaction[Any], line: Line, decided: Batch | None) -> None:
        """Replace the private message with one line. `decided`: a card that was decided from an inbox."""
        back = [Action(Verb.INBOX, decided.id, "Inbox", Style.PLAIN)] if decided else []
        try:
            await redraw(interaction, panels.said(line, back), attachments=[])
        except Failure as error:
            log.warning("a private panel was not answered: %s", error)
