"""How the driver reaches the person at the terminal. Implements `turns.ports.FrontEnd`.

The front end prints and passes news to the session. It asks no questions: the session asks one at a time, and only the
session reads keys.
"""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from rich.text import Text

from signoff.approvals.model import Actor, Batch
from signoff.cards import wording
from signoff.cards.actions import Offers
from signoff.cards.build import build_card
from signoff.cards.progress import status_line
from signoff.errors import TurnFailed
from signoff.terminal.console import Screen
from signoff.terminal.render import draw_ending, write
from signoff.terminal.replies import render_reply
from signoff.text.visible import one_line
from signoff.turns.model import Turn, TurnState
from signoff.turns.progress import RunStatus

PERSON = "terminal"
"""The id of the person at the terminal. It never changes, so the next session finds the same workspace and grants."""
MOST_ENDED = 1000
CARD_SPACE = 8000
"""Characters of quoted text on a card. A terminal could scroll further, but people should not have to scroll."""
COLUMNS = 80
"""Characters in a line of a card, for folding it."""


class TerminalFrontEnd:
    def __init__(self, screen: Screen, offers: Offers, now: Callable[[], float]) -> None:
        self._screen = screen
        self._offers = offers
        self._now = now
        self.news: asyncio.Queue[Batch | str] = asyncio.Queue()
        """Open cards, and the ids of turns that have ended or cannot go on in this process."""
        self._broken: set[str] = set()
        self._ended: dict[str | tuple[str, int], None] = {}
        """Batch id or (turn id, number of rounds) of each end that was printed, oldest first -> None."""

    async def post_card(self, batch: Batch) -> str:
        # Build the card once now, so that CardFailed is raised while the driver can still report it.
        build_card(batch, now=self._now(), budget=CARD_SPACE, offers=self._offers)
        self.news.put_nowait(batch)
        return card_id(batch)

    async def repost_card(self, batch: Batch) -> str:
        return await self.post_card(batch)

    async def refresh_card(self, batch: Batch) -> None:
        if batch.settled:
            self.close(batch)

    async def retire_card(self, batch: Batch) -> None:
        """Do nothing: a printed card stays. Both postings have the same id, so the driver never calls this."""

    def close(self, batch: Batch) -> None:
        """Print how the card ended. Only the first call for a card prints."""
        if not self._is_first(batch.id):
            return
        now, offers = self._now(), self._offers
        pages = [build_card(batch, now=now, budget=CARD_SPACE, offers=offers, page=n) for n in range(batch.pages)]
        self._screen.show(*(draw_ending(page, now) for page in pages))

    async def remind(self, batch: Batch) -> None:
        self._screen.show(write(wording.reminder(batch), self._now(), "yellow"))

    async def reply(self, turn: Turn, text: str) -> None:
        if self._is_first((turn.id, turn.rounds)):
            self._screen.show(_failure(text) if turn.state is TurnState.FAILED else render_reply(text))
        self.news.put_nowait(turn.id)

    async def show_status(self, turn: Turn, status: RunStatus) -> str:
        """Print what the run is doing. Each change is a new line, since a printed line stays."""
        if status.text:
            return PERSON  # the reply is printed when it is whole
        line = status_line(status.ran, status.failed, status.running, status.since)
        self._screen.show(write(line, self._now(), "dim"))
        return PERSON

    async def remove_status(self, turn: Turn) -> None:
        """Do nothing: a printed line stays."""

    async def notice(self, turn: Turn, text: str) -> None:
        self._screen.show(Text(one_line(text), "yellow"))
        if turn.id in self._broken:
            self._broken.discard(turn.id)
            self.news.put_nowait(turn.id)

    def _is_first(self, end: str | tuple[str, int]) -> bool:
        """Note this end, and return whether it is new. Only the latest are kept: a session may last for weeks."""
        if end in self._ended:
            return False
        self._ended[end] = None
        if len(self._ended) > MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        return True

    def working(self, turn: Turn) -> AbstractAsyncContextManager[None]:
        return self._at_work(turn)

    @asynccontextmanager
    async def _at_work(self, turn: Turn) -> AsyncGenerator[None]:
        self._broken.discard(turn.id)
        try:
            with self._screen.working():
                yield
        except TurnFailed:
            raise  # there will be a reply
        except Exception:
            # The step is tried again later. If a notice comes before that, the session stops waiting for the turn.
            self._broken.add(turn.id)
            raise


def card_id(batch: Batch) -> str:
    """Return the card's id, which is the same for every posting."""
    return f"terminal:{batch.id}"


def person_at_terminal(server: str) -> Actor:
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):  # an account without a name, as in some containers
        name = "you"
    return Actor(PERSON, name, server)


def _failure(text: str) -> Text:
    return Text("\n".join(one_line(line) for line in text.split("\n")), "red")
