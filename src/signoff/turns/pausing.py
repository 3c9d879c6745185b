"""Pauses a server, resumes it, or stops its runs. Each is one transaction and leaves a row in the record.

Runs of a paused server wait before their next model request or tool, and its open cards are cancelled. Decided and
queued turns continue when the server is resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field

from signoff.approvals.desk import Desk
from signoff.approvals.errors import Refused
from signoff.approvals.model import Actor, Pause
from signoff.approvals.ports import Clock
from signoff.approvals.server_rules import must_manage
from signoff.approvals.settling import Ended
from signoff.dataclass import dataclass
from signoff.turns.driver import Driver
from signoff.turns.model import LIVE, Turn, TurnState
from signoff.turns.ports import Runner, TurnStore, TurnTx

UNKNOWN_RUN = "This run belongs to another place or no longer exists. Nothing was stopped."
NOT_YOURS = "Only the person who asked, or somebody with Manage Server, can stop this run. Nothing was stopped."


@dataclass(frozen=True)
class Pausing:
    store: TurnStore
    desk: Desk
    runner: Runner
    driver: Driver
    clock: Clock
    _switch: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Keeps the runner and the store in agreement if a pause and a resume overlap."""

    async def pause(self, actor: Actor) -> int:
        """Cancel every open card of the actor's server and start nothing more there. Returns the number of cards."""
        must_manage(actor)
        now = self.clock.now()

        def work(tx: TurnTx) -> list[Ended]:
            if tx.pause_of(actor.server) is None:
                tx.set_pause(Pause(actor.server, actor, now))
                tx.audit("paused", actor.server, actor.server, actor.id, {"who": actor.name}, now)
            reason = f"paused by {actor.name}"
            return [self.desk.cancel_in(tx, batch, now, reason) for batch in tx.open_of(actor.server)]

        async with self._switch:
            # Pause the runner before the commit: if the commit fails, nothing starts until somebody resumes.
            self.runner.pause(actor.server)
            ended = await self.store.run(work)
        self.desk.cancelled(ended)
        return len(ended)

    async def resume(self, actor: Actor) -> bool:
        """Let the server run again. Return False if it was not paused."""
        must_manage(actor)
        now = self.clock.now()

        def work(tx: TurnTx) -> list[Turn] | None:
            if not tx.clear_pause(actor.server):
                return None
            tx.audit("resumed", actor.server, actor.server, actor.id, {"who": actor.name}, now)
            return [turn for turn in tx.resumable() if turn.place.server == actor.server]

        async with self._switch:
            decided = await self.store.run(work)
            self.runner.resume(actor.server)
        await self.driver.take_up(decided or ())
        return decided is not None

    async def stop(self, actor: Actor, conversation: str | None = None) -> int:
        """End the runs of a conversation or of the whole server, waiting ones included. Returns their number.

        People without Manage Server end only their own runs.
        """

        def meant(tx: TurnTx) -> list[Turn]:
            here = [turn for turn in tx.turns_in(*LIVE) if _is_meant(turn, actor.server, conversation)]
            return [turn for turn in here if _may_stop(actor, turn)]

        return len(await self._stop(actor, meant))

    async def stop_turn(self, actor: Actor, turn_id: str) -> bool:
        """End one run. Returns False if it had ended already. Raises Refused if this person may not end it."""

        def meant(tx: TurnTx) -> list[Turn]:
            turn = tx.turn(turn_id)
            if turn is None or turn.place.server != actor.server:
                raise Refused(UNKNOWN_RUN)
            if not _may_stop(actor, turn):
                raise Refused(NOT_YOURS)
            return [turn] if turn.state in LIVE else []

        return bool(await self._stop(actor, meant))

    async def _stop(self, actor: Actor, meant: Callable[[TurnTx], list[Turn]]) -> list[Turn]:
        if actor.is_bot:
            raise Refused("Bots cannot stop runs.")
        now = self.clock.now()

        def farewell(turn: Turn) -> str:
            # The prompt is stored with the first response, before any call of it starts.
            may_run = turn.state is TurnState.RUNNING and turn.prompted
            effect = " A tool that was running may have had an effect." if may_run else ""
            return f"Stopped by {actor.name}.{effect} Nothing further will run."

        def work(tx: TurnTx) -> tuple[list[Turn], list[Ended]]:
            stopped: list[Turn] = []
            cards: list[Ended] = []
            for turn in meant(tx):
                tx.finish(turn.id, turn.state, TurnState.STOPPED, farewell(turn), now)
                tx.audit("stopped", actor.server, turn.id, actor.id, {"who": actor.name, "was": turn.state}, now)
                batch = tx.batch(turn.batch) if turn.batch and turn.state is TurnState.WAITING else None
                if batch and not batch.settled:
                    cards.append(self.desk.cancel_in(tx, batch, now, f"stopped by {actor.name}"))
                stopped.append(tx.turn(turn.id) or turn)
            return stopped, cards

        turns, cards = await self.store.run(work)
        self.desk.cancelled(cards)
        for turn in turns:
            await self.driver.drop([turn], turn.reply or "")
        return turns


def _may_stop(actor: Actor, turn: Turn) -> bool:
    """Whether this person may end the run: the asker, and those who manage the server."""
    return actor.manages_server or actor.id == turn.asker.id


def _is_meant(turn: Turn, server: str, conversation: str | None) -> bool:
    return turn.place.server == server and conversation in (None, turn.place.conversation)
