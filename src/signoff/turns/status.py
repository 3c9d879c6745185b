"""The status message of a run: posted if a step takes long, edited as the run goes on, replaced by the reply.

A long reply is shown in it while the model writes.

One task per running turn sends it, so the run itself waits for nothing. The store knows the message's id, so that the
next start of the program finds the message again. This module decides nothing about turns.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import field, replace

from signoff.approvals.ports import Clock
from signoff.dataclass import dataclass
from signoff.turns.delivery import Delivery
from signoff.turns.model import Turn
from signoff.turns.ports import FrontEnd, TurnStore
from signoff.turns.progress import EVERY, Changes, RunProgress, RunStatus

log = logging.getLogger(__name__)

APPEARS = 1.5
"""Seconds that a run works before it gets a status message. A quick run gets none."""
THINKS = 5.0
"""The same for a run that has only asked the model so far: most replies come sooner, and typing is shown meanwhile."""


@dataclass
class _Watch:
    """The watch over one running turn."""

    turn: Turn
    progress: RunProgress
    message: str | None
    """The id of the status message; empty while it is posted, None before."""
    task: asyncio.Task[None] | None = None
    sending: asyncio.Task[bool] | None = None


@dataclass
class StatusMessages:
    store: TurnStore
    front: FrontEnd
    delivery: Delivery
    clock: Clock
    changes: Changes
    _watches: dict[str, _Watch] = field(default_factory=dict[str, _Watch])
    """Turn id -> the watch over its run."""
    _removing: set[str] = field(default_factory=set[str])
    """Turns whose last status message is being removed."""

    def begin(self, turn: Turn) -> RunProgress:
        """Watch a step of this turn, and return the object that the run reports to."""
        watch = self._watches.get(turn.id)
        if watch is None:
            message = None if turn.id in self._removing else turn.status_message
            watch = _Watch(turn, RunProgress(turn.id, self.clock, self.changes), message)
            self._watches[turn.id] = watch
            watch.task = asyncio.get_running_loop().create_task(self._show(watch))
        return watch.progress

    async def end(self, turn: Turn) -> str | None:
        """Stop watching, and return the id of the status message if there is one. Nothing changes that message then."""
        watch = self._watches.pop(turn.id, None)
        if watch is None:
            return None if turn.id in self._removing else turn.status_message or None
        if watch.task:
            watch.task.cancel()
        if watch.sending and not watch.sending.done():
            await asyncio.wait({watch.sending})  # otherwise nobody would know the id of a message on its way
        return watch.message or None

    async def remove(self, turn: Turn) -> None:
        """Remove the status message, because a card comes instead: the card shows what ran."""
        self._removing.add(turn.id)
        try:
            watch = self._watches.get(turn.id)
            message = await self.end(turn) if watch else turn.status_message
            if message is not None:
                await self.delivery.remove_status(replace(turn, status_message=message))
        finally:
            self._removing.discard(turn.id)

    def stop(self) -> None:
        """Leave the messages as they are: the next start of the program continues them."""
        for watch in self._watches.values():
            if watch.task:
                watch.task.cancel()
        self._watches.clear()

    async def _show(self, watch: _Watch) -> None:
        # If the last process died while it posted the message, post it at once: the nonce leads to the same message.
        if watch.message != "":
            await self._wait_until_slow(watch)
        shown: RunStatus | None = None
        while True:
            changed = self.changes.next(watch.turn.id)
            status = watch.progress.status()
            if status != shown:
                watch.sending = asyncio.get_running_loop().create_task(self._send(watch, status))
                if not await asyncio.shield(watch.sending):
                    return
                shown = status
                await asyncio.sleep(EVERY)
            await changed.wait()

    async def _wait_until_slow(self, watch: _Watch) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + THINKS
        await asyncio.sleep(APPEARS)
        while not watch.progress.status().has_news:
            changed = self.changes.next(watch.turn.id)
            try:
                await asyncio.wait_for(changed.wait(), max(end - loop.time(), 0.0))
            except TimeoutError:
                return
            await asyncio.sleep(APPEARS)  # if this was a quick tool, the run may be over by then

    async def _send(self, watch: _Watch, status: RunStatus) -> bool:
        """Post or edit the message. Returns False if that failed: then the run gets no further status."""
        turn = watch.turn
        try:
            if watch.message:
                await self.front.show_status(replace(turn, status_message=watch.message), status)
                return True
            if watch.message is None:
                await self.store.run(lambda tx: tx.set_status(turn.id, ""))
            message = watch.message = await self.front.show_status(replace(turn, status_message=None), status)
            await self.store.run(lambda tx: tx.set_status(turn.id, message))
        except Exception as error:
            log.info("the status of turn %s is not shown: %s", turn.id, error)
            return False
        return True
