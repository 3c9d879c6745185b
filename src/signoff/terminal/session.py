"""One session at the terminal: each line becomes a turn, and the next line is read when that turn has ended.

Unfinished turns of an earlier process come first. This module knows neither the agent nor the store.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection

from signoff.approvals.model import Actor, Batch, Place
from signoff.dataclass import dataclass
from signoff.terminal.card_session import CardSession
from signoff.terminal.console import Device, Ended
from signoff.terminal.front_end import TerminalFrontEnd
from signoff.text.visible import one_line
from signoff.turns.driver import Driver
from signoff.turns.model import Turn

PROMPT = "you> "
TURN = "terminal:"
"""The prefix of the ids of turns that begin at a terminal."""
EARLIER = "An earlier session left this unfinished:"


@dataclass
class Session:
    device: Device
    front: TerminalFrontEnd
    cards: CardSession
    driver: Driver
    actor: Actor
    place: Place
    now: Callable[[], float]

    async def run(self, left_over: Collection[str] = ()) -> None:
        """Talk until the input ends. `left_over`: ids of an earlier process's turns that have no reply yet."""
        try:
            if left_over:
                self.device.screen.say(EARLIER, "yellow")
                await self._until_ended(set(left_over))
            while True:
                if text := (await self.device.ask(PROMPT)).strip():
                    await self._turn(text)
        except Ended:
            return

    async def _turn(self, text: str) -> None:
        name = f"{TURN}{secrets.token_hex(8)}"
        turn = Turn(name, self.place, name, self.actor, text, self.now())
        admission = await self.driver.submit(turn)
        if admission.text:
            self.device.screen.say(one_line(admission.text), "yellow")
        if admission.kind in ("started", "queued"):
            await self.driver.go(turn.id)
            await self._until_ended({turn.id})

    async def _until_ended(self, turns: set[str]) -> None:
        while turns:
            news = await self.front.news.get()
            if isinstance(news, Batch):
                await self.cards.serve(news)
            else:
                turns.discard(news)
