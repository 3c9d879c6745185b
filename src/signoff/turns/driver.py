"""The driver: claims a turn, advances it, waits for a decision, and goes on when the desk's future is resolved.

A waiting turn is rows in the database, plus a future if this process opened its batch. After a restart `recover`
continues the turns that were under way; the others stay in the database until somebody clicks or the deadline comes.
One sweeper serves all deadlines. `delivery` shows cards and replies, and retries that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.approvals.desk import Desk
from signoff.approvals.model import Actor, Batch, Pause, Place
from signoff.approvals.ports import Clock
from signoff.approvals.retention import Retention
from signoff.approvals.votes import Unchecked
from signoff.errors import StoreError, TurnFailed
from signoff.turns import messages, overages
from signoff.turns.activity import Activity, BatchOpened, TurnEnded, TurnStarted
from signoff.turns.activity_log import ActivityLog
from signoff.turns.delivery import Delivery
from signoff.turns.model import Admission, Finished, HistoryEntry, Turn, TurnFile, TurnState, Waiting
from signoff.turns.notifying import Notifier, Notifying
from signoff.turns.ports import FrontEnd, Runner, TurnStore, TurnTx
from signoff.turns.progress import Changes
from signoff.turns.queue import QueueLimits
from signoff.turns.status import StatusMessages

log = logging.getLogger(__name__)

FAREWELL = 1.0
"""Seconds that cancelled steps may take. A tool in a thread cannot be cancelled at all."""
SWEEP_AT_LEAST = 30.0
"""The most seconds between sweeps, so that a changed system clock delays no deadline for long."""
SWEEP_OVERLAP = 60.0
"""A sweep looks again at what was decided so many seconds before the last one, for decisions that were still being
committed then."""
STEP_DELAYS = (1.0, 2.0, 5.0, 10.0)
"""Seconds to wait after each step that failed in the store. After the last one the turn ends."""
END_EVERY = 10.0
"""Seconds between attempts to store the end of such a turn, if the store still fails."""


@dataclass
class Driver:
    store: TurnStore
    desk: Desk
    runner: Runner
    front: FrontEnd
    clock: Clock
    limits: QueueLimits = field(default_factory=QueueLimits)
    retention: Retention | None = None
    notifier: Notifier | None = None
    activity: Activity = field(default_factory=lambda: Activity([ActivityLog()]))
    """Tells what happens to turns. By default it is only logged."""
    _delivery: Delivery = field(init=False)
    _changes: Changes = field(default_factory=Changes)
    _status: StatusMessages = field(init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    _steps: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    """Turn id -> task of its current step."""
    _admitted: dict[str, str] = field(default_factory=dict[str, str])
    """Turn id -> asker whose place is reserved (empty: none), for turns between `submit` and `go`."""
    _new_deadline: asyncio.Event = field(default_factory=asyncio.Event)
    _swept: float | None = None
    """Turns that were decided before this time go on. None: nobody knows, so the sweeper looks at all that wait."""
    _stopping: bool = False

    def __post_init__(self) -> None:
        notifying = Notifying(self.store, self.desk, self.notifier)
        self._delivery = Delivery(self.store, self.desk, self.front, notifying, self._changes)
        self._status = StatusMessages(self.store, self.front, self._delivery, self.clock, self._changes)

    # Taking turns in

    async def submit(self, turn: Turn) -> Admission:
        """Store a mention. It does not run before `go`, so that its thread can be opened first."""
        if turn.id in self._admitted:
            return Admission("duplicate")
        self._admitted[turn.id] = turn.asker.id
        try:
            admission = await self.store.run(lambda tx: self.limits.admit(tx, turn))
        except BaseException:
            del self._admitted[turn.id]
            raise
        if admission.kind == "queued":
            self._admitted[turn.id] = ""
        elif admission.kind != "started":
            del self._admitted[turn.id]
        return admission

    async def relocate(self, turn_id: str, place: Place) -> None:
        """Move a turn to another place, because its thread could not be opened."""
        await self.store.run(lambda tx: tx.relocate(turn_id, place))

    async def enclose(self, turn_id: str, files: Sequence[TurnFile]) -> None:
        """Store the contents of the files that came with a turn."""
        await self.store.run(lambda tx: tx.set_files(turn_id, files, self.clock.now()))

    async def go(self, turn_id: str) -> None:
        self._admitted.pop(turn_id, None)
        await self._start_queued()

    async def _start_queued(self) -> None:
        """Claim and run every turn that may run now."""
        while not self._stopping:
            admitted = dict(self._admitted)
            turn = await self.store.run(lambda tx, admitted=admitted: self.limits.claim(tx, admitted))
            if turn is None:
                return
            self.activity.tell(TurnStarted(turn))
            self._step(turn)

    # One step

    def _step(self, turn: Turn) -> None:
        task = self._spawn(self._drive(turn))
        self._steps[turn.id] = task
        task.add_done_callback(lambda done: self._steps.pop(turn.id) if self._steps.get(turn.id) is done else None)

    async def _drive(self, turn: Turn) -> None:
        """Advance a claimed turn, and try again if the store fails: the journal lets no call run twice."""
        current: Turn | None = turn
        for delay in STEP_DELAYS:
            try:
                current = current or await self.store.run(lambda tx: tx.turn(turn.id))
                if current and current.state is TurnState.RUNNING:
                    await self._advance(current)
                return
            except StoreError as error:
                log.warning("the store failed turn %s, which goes on in %g seconds: %s", turn.id, delay, error)
            current = None  # read it again: only the store knows how far it came
            await asyncio.sleep(delay)
        await self._give_up(turn)

    async def _advance(self, turn: Turn) -> None:
        """Run a claimed turn until it ends or waits. Only a failure of the store leaves it running."""
        try:
            async with self.front.working(turn):
                step = await self.runner.advance(turn, self._status.begin(turn))
            match step:
                case Finished():
                    await self._end(turn, TurnState.DONE, step.text, step.history)
                case Waiting():
                    await self._wait_for_people(turn, step)
        except StoreError:
            raise
        except TurnFailed as failure:
            await self._end(turn, TurnState.FAILED, str(failure), error=failure)
        except Exception as error:
            await self._end(turn, TurnState.FAILED, messages.broken(error), error=error)

    async def _give_up(self, turn: Turn) -> None:
        """End the turn as soon as the store works again."""
        told = False
        while True:
            try:
                return await self._end(turn, TurnState.FAILED, messages.STORE_FAILED)
            except StoreError as error:
                log.error("the end of turn %s is not stored yet: %s", turn.id, error)
            if not told:
                await self._delivery.say(turn, messages.STORE_FAILS)
                told = True
            await asyncio.sleep(END_EVERY)

    async def _wait_for_people(self, turn: Turn, step: Waiting) -> None:
        asked = await self.desk.look_for_approvers(step.batch)
        givers: dict[str, Actor | None] = {}

        def work(tx: TurnTx) -> Batch | None:
            if not tx.move(turn.id, TurnState.RUNNING, TurnState.WAITING):
                return None  # it was stopped meanwhile
            pause = tx.pause_of(turn.place.server)
            reason = f"paused by {pause.by.name}" if pause else ""
            batch = self.desk.open(tx, asked, reason, givers, tx.own_mode(turn.id))
            tx.await_batch(turn.id, batch.id)
            return batch

        while True:
            try:
                batch = await self.store.run(work)
                break
            except Unchecked as unchecked:
                # A grant may apply. Find out whether the people who gave it may still decide.
                givers |= await self.desk.look_up_givers(turn.place.server, unchecked.people)
        if batch is None:
            return
        self.activity.tell(BatchOpened(batch))
        self._changes.ring(turn.id)
        if not batch.settled:
            self._spawn(self._status.remove(turn))
        self.desk.watch(batch).add_done_callback(lambda future: self._settled(future.result()))
        self._new_deadline.set()
        if not batch.settled:
            self._spawn(self._delivery.post_card(batch))
        if notice := messages.missing_approvers_notice(batch):
            await self._delivery.say(turn, notice)

    async def _end(
        self,
        turn: Turn,
        state: TurnState,
        text: str,
        history: tuple[HistoryEntry, ...] = (),
        *,
        error: Exception | None = None,
    ) -> None:
        def work(tx: TurnTx) -> Turn | None:
            if not tx.move(turn.id, TurnState.RUNNING, state):
                return None
            tx.save_history(turn.place.conversation, history)
            tx.finish(turn.id, text, self.clock.now())
            return tx.turn(turn.id)

        if ended := await self.store.run(work):
            await self._announce(ended, error)

    async def _announce(self, ended: Turn, error: Exception | None = None) -> None:
        """Tell of the end of a turn, which the store has already, and start the next ones."""
        self.runner.turn_ended(ended)
        self.activity.tell(TurnEnded(ended, ended.state, self.clock.now() - ended.created, error))
        self._changes.ring(ended.id)
        await self._reply(ended, ended.reply or "")
        await self._start_queued()

    async def _reply(self, turn: Turn, text: str) -> None:
        """Post the end of a turn, in place of its status message."""
        message = await self._status.end(turn)
        await self._delivery.reply(replace(turn, status_message=message), text)

    # Going on after a decision

    def _settled(self, batch: Batch) -> None:
        self._spawn(self._delivery.finish_card(batch))
        self._spawn(self._delivery.tidy(batch.id))
        self._spawn(self._continue(batch.turn))

    async def _continue(self, turn_id: str) -> None:
        def claim(tx: TurnTx) -> Turn | None:
            turn = tx.turn(turn_id)
            batch = tx.batch(turn.batch) if turn and turn.batch else None
            if turn is None or batch is None or not batch.settled or tx.pause_of(turn.place.server):
                return None  # it waits for another decision, or for `resume`
            if turn.state is not TurnState.WAITING:
                return None  # it goes on already
            end = overages.settle(tx, batch, self.clock.now()) if batch.is_overage else self.limits.end_of(tx, batch)
            if end and tx.move(turn_id, TurnState.WAITING, TurnState.STOPPED):
                tx.finish(turn_id, end, self.clock.now())
                return tx.turn(turn_id)
            return tx.turn(turn_id) if tx.move(turn_id, TurnState.WAITING, TurnState.RUNNING) else None

        if self._stopping or (turn := await self.store.run(claim)) is None:
            return
        if turn.state is TurnState.RUNNING:
            self._step(turn)
        else:
            await self._announce(turn)

    # For `pausing` and `administration`

    async def take_up(self, turns: Sequence[Turn]) -> None:
        """Continue the turns that were decided during a pause, and the queue."""
        for turn in turns:
            self._spawn(self._continue(turn.id))
        await self._start_queued()

    async def drop(self, turns: Sequence[Turn], text: str) -> None:
        """End the steps of stopped turns, post that they were stopped, and start the next turns."""
        for turn in turns:
            self.runner.turn_ended(turn)
            ended = TurnEnded(turn, TurnState.STOPPED, self.clock.now() - turn.created)
            if step := self._steps.get(turn.id):
                # The step still tells what it used, so the end is told after it.
                step.add_done_callback(lambda _, ended=ended: self.activity.tell(ended))
                step.cancel()
            else:
                self.activity.tell(ended)
            self._changes.ring(turn.id)
            self._spawn(self._reply(replace(turn, state=TurnState.STOPPED), text))
        await self._start_queued()

    async def repost(self, batch_id: str) -> bool:
        """Post an open card again, at the end of its channel. False if it is no longer open; may raise Refused."""
        return await self._delivery.repost(batch_id)

    # Start, deadlines, stop

    async def recover(self) -> None:
        """Continue the work of the last process: runs, decided batches, unposted cards and replies, the queue."""

        def work(tx: TurnTx) -> tuple[list[Pause], list[Turn], list[Turn], list[Batch], list[Turn], list[Turn]]:
            return (
                list(tx.pauses()),
                list(tx.turns_in(TurnState.RUNNING)),
                list(tx.resumable()),
                list(tx.unfinished_cards()),
                list(tx.unposted_replies()),
                list(tx.left_statuses()),
            )

        pauses, running, decided, cards, replies, statuses = await self.store.run(work)
        for pause in pauses:
            self.runner.pause(pause.server)
        if running or decided or cards or replies:
            log.info("recovering %d runs, %d decided, %d cards", len(running), len(decided), len(cards))
        for turn in running:
            self._step(turn)
        for turn in decided:
            self._spawn(self._continue(turn.id))
        for batch in cards:
            self._spawn(self._delivery.finish_card(batch) if batch.settled else self._delivery.post_card(batch))
        for turn in replies:
            self._spawn(self._reply(turn, turn.reply or ""))
        for turn in statuses:
            self._spawn(self._status.remove(turn))
        untold, outlived = await self.store.run(lambda tx: (tx.untold(), tx.outlived_notices()))
        for batch in untold:
            escalated = any(request.escalated for request in batch.questions)
            self._spawn(self._delivery.escalated(batch) if escalated else self._delivery.tell_approvers(batch))
        for batch in outlived:
            self._spawn(self._delivery.tidy(batch.id))
        self._spawn(self._take_unattended())
        self._spawn(self._sweep())
        await self.desk.cancel_lost_inquiries()
        await self._start_queued()

    async def _take_unattended(self) -> None:
        """Go on with the turns of an earlier process as their batches are settled."""
        while not self._stopping:
            self._settled(await self.desk.unattended.get())

    async def _sweep(self) -> None:
        while not self._stopping:
            self._new_deadline.clear()
            pause = SWEEP_AT_LEAST
            try:
                await self.desk.expire_due()
                for batch in await self.desk.take_reminders():
                    self._spawn(self._delivery.remind(batch))
                for batch in await self.desk.escalate_due():
                    self._spawn(self._delivery.escalated(batch))
                now = self.clock.now()
                # A clock that was set back does not tell what was decided since.
                since = None if self._swept is None or now < self._swept else self._swept - SWEEP_OVERLAP
                self._swept = now
                for turn in await self.store.run(lambda tx, since=since: tx.resumable(since)):
                    self._spawn(self._continue(turn.id))  # in case waking it failed
                await self._start_queued()  # in case starting failed
                if self.retention:
                    await self.retention.prune(self.clock.now())
                deadline = await self.store.run(lambda tx: tx.next_deadline())
                if deadline is not None:
                    pause = min(max(deadline - self.clock.now(), 0.0), SWEEP_AT_LEAST)
            except Exception:
                log.exception("deadlines could not be checked; trying again")
                self._swept = None
                pause = 1.0
            try:
                await asyncio.wait_for(self._new_deadline.wait(), pause)
            except TimeoutError:
                pass

    async def stop(self, grace: float) -> None:
        """Accept no new work, give running tools `grace` seconds, and leave the rest to the next start."""
        self._stopping = True
        await self.runner.quiesce(grace)
        self._status.stop()
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
            log.error("a task failed; the sweeper or the next start will retry it", exc_info=error)
            self._swept = None
