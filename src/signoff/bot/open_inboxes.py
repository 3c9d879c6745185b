"""Inboxes that people have open: when one of their cards is settled elsewhere, the list is drawn anew.

Discord lets the bot change a private message for fifteen minutes after the last press. Only the inbox that a person
drew last is known, and only in memory: after that time or a restart, a press on the inbox draws it anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any

import discord

from signoff.approvals.model import DIRECT, Actor, RequestState
from signoff.bot.inbox_view import InboxView
from signoff.bot.sending import NOBODY, while_open
from signoff.cards.model import Code, Line, Person
from signoff.dataclass import dataclass
from signoff.text.visible import clip

log = logging.getLogger(__name__)

LIFE = 14 * 60.0
"""Seconds after a press in which the message is changed; a little less than Discord's limit."""
MOST = 500
"""Inboxes that are known at a time. The oldest is forgotten first."""
TOOL = 64

Draw = Callable[[Actor, int, Line], Awaitable[InboxView]]


@dataclass(slots=True)
class _Opened:
    interaction: discord.Interaction[Any]
    actor: Actor
    until: float
    view: InboxView
    due: list[Line] = field(default_factory=list[Line])
    """What happened since the list was drawn."""
    refreshing: bool = False


class OpenInboxes:
    def __init__(self, draw: Draw, now: Callable[[], float]) -> None:
        self._draw = draw
        self._now = now
        self._opened: dict[str, _Opened] = {}
        """Person id -> the inbox that they drew last."""
        self._refreshing: set[asyncio.Task[None]] = set()

    def note(self, interaction: discord.Interaction[Any], actor: Actor, view: InboxView) -> None:
        """Remember that this person sees this list, in the message of this interaction."""
        self.forget(actor.id)
        self._opened[actor.id] = _Opened(interaction, actor, self._now() + LIFE, view)
        if len(self._opened) > MOST:
            del self._opened[next(iter(self._opened))]

    def forget(self, person: str) -> None:
        """Change nothing more for this person: they pressed the list, and the response takes its place."""
        self._opened.pop(person, None)

    def settled(self, event: dict[str, Any]) -> None:
        """Subscribe to the desk with this: draw the lists anew that show the settled request."""
        for person, opened in list(self._opened.items()):
            if self._now() >= opened.until:
                self.forget(person)
            elif event["request"] in opened.view.requests:
                opened.due.append(_worded(event))
                if not opened.refreshing:
                    opened.refreshing = True
                    task = asyncio.get_running_loop().create_task(self._refresh(opened))
                    self._refreshing.add(task)
                    task.add_done_callback(self._refreshing.discard)

    async def _refresh(self, opened: _Opened) -> None:
        person = opened.actor.id
        try:
            while opened.due and self._opened.get(person) is opened:
                said = opened.due[-1]
                opened.due.clear()
                view = await self._draw(_looked_up_again(opened.actor), opened.view.page, said)
                if self._opened.get(person) is not opened:
                    return
                opened.view = view
                change = opened.interaction.edit_original_response(view=view, allowed_mentions=NOBODY)
                await while_open(opened.interaction.client, change)
        except Exception as error:
            # The list is out of date now. A press on it draws it anew, so nothing more is tried.
            log.info("the open inbox of %s was not refreshed: %s", person, error)
            if self._opened.get(person) is opened:
                self.forget(person)
        opened.refreshing = False


def _looked_up_again(actor: Actor) -> Actor:
    """Return the person without the rights that they had at the press, so that each server is asked anew."""
    return Actor(actor.id, actor.name, DIRECT)


def _worded(event: dict[str, Any]) -> Line:
    """Say in one line how a request was settled."""
    tool, state = Code(clip(str(event["tool"]), TOOL)[0]), str(event["state"])
    happened = "expired" if state == RequestState.EXPIRED else f"was {state}"
    by: Line = (" by ", Person(str(event["by"]), "somebody")) if event["by"] else ()
    return ("Just now: ", tool, f" {happened}", *by)
