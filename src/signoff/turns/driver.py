"""The driver: claims a turn, advances it, shows the card, and goes on when the desk's future is resolved.

Nothing is parked: a waiting turn is rows, plus a future with a callback if this process opened its batch. After a
restart `recover` picks up what was under way and leaves the rest in the database until somebody clicks or the
deadline comes. One sweeper serves all deadlines.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from signoff.approvals.approvers import can_be_met
from signoff.approvals.desk import Desk
from signoff.approvals.model import Batch, Pause, Place
from signoff.approvals.ports import Clock
from signoff.approvals.retention import Retention
from signoff.errors import CardFailed, SignoffError, TurnFailed
from signoff.turns.model import Admission, Finished, HistoryEntry, Paused, Step, Turn, TurnState
from signoff.turns.ports import FrontEnd, Runner, TurnStore, TurnTx

log = logging.getLogger(__name__)

CLICK_GRACE = 4.0
"""How long the click that settled a batch has to update its card before the driver does it."""
REPLY_DELAYS = (0.0, 1.0, 5.0)
FAREWELL = 1.0
"""How long cancelled steps may take; a tool in a thread cannot be cancelled at all."""
SWEEP_AT_LEAST = 30.0
"""A changed system clock must not let a deadline oversleep for long."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    per_person: int = 3
    queued_per_person: int = 5
    queued_per_conversation: int = 5


@dataclass
class Driver:
    store: TurnStore
    desk: Desk
    runner: Runner
    front: FrontEnd
    clock: Clock
    limits: QueueLimits = field(default_factory=QueueLimits)
    retention: Retention | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    _steps: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    """The step that each running turn is in."""
    _held: dict[str, str] = field(default_factory=dict[str, str])
    """Turns between `submit` and `go`, and to whom each has promised a start; an empty name promises nothing."""
    _new_deadline: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: bool = False

    def __post_init__(self) -> None:
        self.desk.unattended = self._settled

    # Taking turns in

    async def submit(self, turn: Turn) -> Admission:
        """Store a mention. It does not run before `go`, so that its thread can be opened first."""
        person, conversation = turn.asker.id, turn.place.conversation

        def work(tx: TurnTx) -> Admission:
            if tx.turn(turn.id):
                return Admission("duplicate")
            ahead = tx.queued(conversation=conversation) + tx.active(conversation=conversation)
            of_person = tx.active(asker=person)
            waiting = tx.queued(asker=person)
            if of_person + waiting >= self.limits.per_person + self.limits.queued_per_person or (
                tx.queued(conversation=conversation) >= self.limits.queued_per_conversation
            ):
                return Admission(
                    "refused", ahead, "Too much is waiting already. I did not take this one: ask again later."
                )
            tx.insert_turn(turn)
            if pause := tx.pause_of(turn.place.server):
                return Admission("queued", ahead, f"Queued: {pause.by.name} has paused me in this server.")
            if ahead:
                return Admission("queued", ahead, f"Queued: {ahead} before it in this conversation.")
            if of_person + waiting >= self.limits.per_person:
                return Admission("queued", waiting, f"Queued: {self.limits.per_person} of your requests are under way.")
            return Admission("started")

        if turn.id in self._held:
            return Admission("duplicate")
        self._held[turn.id] = person
        try:
            admission = await self.store.run(work)
        except BaseException:
            del self._held[turn.id]
            raise
        if admission.kind == "queued":
            self._held[turn.id] = ""
        elif admission.kind != "started":
            del self._held[turn.id]
        return admission

    async def relocate(self, turn_id: str, place: Place) -> None:
        """The thread could not be opened: the turn takes place elsewhere."""
        await self.store.run(lambda tx: tx.relocate(turn_id, place))

    async def go(self, turn_id: str) -> None:
        self._held.pop(turn_id, None)
        await self._start_queued()

    async def _start_queued(self) -> None:
        """Claim whatever may run now, by compare-and-set, and run it."""

        def claim(tx: TurnTx, held: dict[str, str]) -> Turn | None:
            promised = Counter(held.values())
            skip = set(held)
            while turn := tx.next_startable(self.limits.per_person, skip):
                # A place that was promised to a turn whose thread is still being opened is not given away.
                if tx.active(asker=turn.asker.id) + promised[turn.asker.id] < self.limits.per_person:
                    return turn if tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING) else None
                skip.add(turn.id)
            return None

        while not self._stopping:
            held = dict(self._held)
            turn = await self.store.run(lambda tx, held=held: claim(tx, held))
            if turn is None:
                return
            self._step(turn)

    # One step

    def _step(self, turn: Turn) -> None:
        task = self._spawn(self._advance(turn))
        self._steps[turn.id] = task
        task.add_done_callback(lambda done: self._steps.pop(turn.id) if self._steps.get(turn.id) is done else None)

    async def _advance(self, turn: Turn) -> None:
        """Run a claimed turn to its next stop."""
        try:
            async with self.front.working(turn):
                step = await self.runner.advance(turn)
        except TurnFailed as failure:
            await self._end(turn, TurnState.FAILED, str(failure))
        except SignoffError as error:
            log.exception("turn %s was interrupted; it is taken up again at the next start", turn.id)
            await self._say(turn, f"Something failed on my side: {error}. Nothing was approved by it.")
        else:
            await self._keep(turn, step)

    async def _keep(self, turn: Turn, step: Step) -> None:
        try:
            match step:
                case Finished():
                    await self._end(turn, TurnState.DONE, step.text, step.history)
                case Paused():
                    await self._pause(turn, step)
        except SignoffError:
            raise  # the store failed: the next start takes it up
        except Exception as error:
            log.exception("what turn %s came to cannot be kept", turn.id)
            words = f"Something failed on my side ({type(error).__name__}). Nothing was approved by it."
            await self._end(turn, TurnState.FAILED, f"{words} Please tell the operator.")

    async def _pause(self, turn: Turn, step: Paused) -> None:
        asked = await self.desk.look_for_approvers(step.batch)

        def work(tx: TurnTx) -> Batch | None:
            if not tx.move(turn.id, TurnState.RUNNING, TurnState.WAITING):
                return None  # it was stopped meanwhile
            pause = tx.pause_of(turn.place.server)
            batch = self.desk.open(tx, asked, f"paused by {pause.by.name}" if pause else "")
            tx.save_history(turn.place.conversation, step.history)
            tx.await_batch(turn.id, batch.id)
            return batch

        batch = await self.store.run(work)
        if batch is None:
            return
        self.desk.watch(batch).add_done_callback(lambda future: self._settled(future.result()))
        self._new_deadline.set()
        if not batch.settled:
            self._spawn(self._post_card(batch))
        if words := gone_approvers(batch):
            await self._say(turn, words)

    async def _end(self, turn: Turn, state: TurnState, text: str, history: tuple[HistoryEntry, ...] = ()) -> None:
        def work(tx: TurnTx) -> bool:
            if not tx.move(turn.id, TurnState.RUNNING, state):
                return False
            tx.save_history(turn.place.conversation, history)
            tx.finish(turn.id, text)
            return True

        if await self.store.run(work):
            ended = await self.store.run(lambda tx: tx.turn(turn.id))
            await self._post_reply(ended or turn, text)
            await self._start_queued()

    # Going on after a decision

    def _settled(self, batch: Batch) -> None:
        self._spawn(self._finish_card(batch))
        self._spawn(self._continue(batch.turn))

    async def _continue(self, turn_id: str) -> None:
        def claim(tx: TurnTx) -> Turn | None:
            turn = tx.turn(turn_id)
            batch = tx.batch(turn.batch) if turn and turn.batch else None
            if turn is None or batch is None or not batch.settled or tx.pause_of(turn.place.server):
                return None  # it waits for another decision, or for `resume`
            return tx.turn(turn_id) if tx.move(turn_id, TurnState.WAITING, TurnState.RUNNING) else None

        if not self._stopping and (turn := await self.store.run(claim)):
            self._step(turn)

    # Cards and replies

    async def _post_card(self, batch: Batch) -> None:
        try:
            card = await self.front.post_card(batch)
        except CardFailed as failure:
            await self.desk.cancel(batch.id, str(failure))
            if turn := await self.store.run(lambda tx: tx.turn(batch.turn)):
                await self._say(turn, f"I could not ask for approval: {failure}. Nothing was run.")
        else:
            await self._note_card(batch.id, card)

    async def _note_card(self, batch_id: str, card: str) -> None:
        def note(tx: TurnTx) -> Batch | None:
            tx.set_card(batch_id, card)
            return tx.batch(batch_id)

        current = await self.store.run(note)
        if current and current.settled:  # settled while the card was on its way
            await self._finish_card(current)

    async def _finish_card(self, batch: Batch) -> None:
        """Show the end on the card, unless the click that settled it does so itself."""
        if any(r.settlement and r.settlement.by for r in batch.requests):
            await asyncio.sleep(CLICK_GRACE)
        for delay in REPLY_DELAYS:
            await asyncio.sleep(delay)
            current = await self.store.run(lambda tx: tx.batch(batch.id))
            if current is None or current.card is None or current.card_final:
                return
            try:
                await self.front.refresh_card(current)
            except SignoffError:
                log.exception("card of %s could not be changed", batch.id)
            else:
                await self.desk.mark_card_final(batch.id)
                return

    async def _post_reply(self, turn: Turn, text: str) -> None:
        for delay in REPLY_DELAYS:
            await asyncio.sleep(delay)
            try:
                await self.front.reply(turn, text)
            except Exception:
                log.exception("the reply of turn %s could not be posted; it is kept", turn.id)
            else:
                await self.store.run(lambda tx: tx.set_reply_posted(turn.id))
                return

    async def _remind(self, batch: Batch) -> None:
        try:
            await self.front.remind(batch)
        except Exception:
            log.exception("the reminder of %s was not posted", batch.id)

    async def repost(self, batch_id: str) -> bool:
        """Post an open card once more, at the end of its channel. False if it is no longer open."""
        batch = await self.store.run(lambda tx: tx.batch(batch_id))
        if batch is None or batch.settled:
            return False
        await self._note_card(batch_id, await self.front.repost_card(batch))
        return True

    async def _say(self, turn: Turn, text: str) -> None:
        try:
            await self.front.notice(turn, text)
        except Exception:
            log.exception("could not say to %s: %s", turn.place.channel, text)

    # For `halts`

    async def take_up(self, turns: Sequence[Turn]) -> None:
        """Go on with what was decided while nothing might start, and with the queue."""
        for turn in turns:
            self._spawn(self._continue(turn.id))
        await self._start_queued()

    async def drop(self, turns: Sequence[Turn], text: str) -> None:
        """These were stopped: end their steps, say so, and let the next ones start."""
        for turn in turns:
            if step := self._steps.get(turn.id):
                step.cancel()
            self._spawn(self._post_reply(turn, text))
        await self._start_queued()

    # Start, deadlines, stop

    async def recover(self) -> None:
        """Take up what the last process left: runs, decided batches, unposted cards and replies, the queue."""

        def work(tx: TurnTx) -> tuple[list[Pause], list[Turn], list[Turn], list[Batch], list[Turn]]:
            return (
                list(tx.pauses()),
                list(tx.turns_in(TurnState.RUNNING)),
                list(tx.resumable()),
                list(tx.unfinished_cards()),
                list(tx.unposted_replies()),
            )

        pauses, running, decided, cards, replies = await self.store.run(work)
        for pause in pauses:
            self.runner.pause(pause.server)
        if running or decided or cards or replies:
            log.info("recovering %d runs, %d decided, %d cards", len(running), len(decided), len(cards))
        for turn in running:
            self._step(turn)
        for turn in decided:
            self._spawn(self._continue(turn.id))
        for batch in cards:
            self._spawn(self._finish_card(batch) if batch.settled else self._post_card(batch))
        for turn in replies:
            self._spawn(self._post_reply(turn, turn.reply or ""))
        self._spawn(self._sweep())
        await self._start_queued()

    async def _sweep(self) -> None:
        while not self._stopping:
            self._new_deadline.clear()
            pause = SWEEP_AT_LEAST
            try:
                await self.desk.expire_due()
                for batch in await self.desk.take_reminders():
                    self._spawn(self._remind(batch))
                for turn in await self.store.run(lambda tx: tx.resumable()):
                    self._spawn(self._continue(turn.id))  # whose waking has failed
                if self.retention:
                    await self.retention.prune(self.clock.now())
                deadline = await self.store.run(lambda tx: tx.next_deadline())
                if deadline is not None:
                    pause = min(max(deadline - self.clock.now(), 0.0), SWEEP_AT_LEAST)
            except Exception:
                log.exception("deadlines could not be checked; trying again")
                pause = 1.0
            try:
                await asyncio.wait_for(self._new_deadline.wait(), pause)
            except TimeoutError:
                pass

    async def stop(self, grace: float = 18.0) -> None:
        """Take nothing new, give running tools their time, and leave the rest to the next start."""
        self._stopping = True
        await self.runner.quiesce(grace)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=FAREWELL)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a step failed; its turn is taken up again at the next start", exc_info=error)


def gone_approvers(batch: Batch) -> str:
    """What the admins are told where a role or a person who may decide is gone; empty if nobody is."""
    gone = sorted({spec for request in batch.requests for spec in request.missing})
    if not gone:
        return ""
    named = f"For the admins: {', '.join(gone)} may decide here by a rule, and is gone."
    if not all(can_be_met(request, batch) for request in batch.requests):
        return f"{named} So nobody may decide. Change the rule with /signoff protect, or in signoff.toml."
    return f"{named} Others still may decide. Change the rule with /signoff protect, or in signoff.toml."
