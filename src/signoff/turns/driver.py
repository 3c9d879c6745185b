"""The driver: claims a turn, advances it, waits for a decision, and goes on when the desk's future is resolved.

A waiting turn is rows in the database, plus a future if this process opened its batch. After a restart `recover`
continues the turns that were under way; the others stay in the database until somebody clicks or the deadline comes.
One sweeper serves all deadlines. `delivery` shows cards and replies, and retries that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextvars import Context, copy_context
from dataclasses import field, replace
from typing import Any, cast

from signoff.approvals.desk import Desk, GoOn, Woken
from signoff.approvals.model import Actor, Batch, Pause, Place
from signoff.approvals.ports import Clock, DeskTx
from signoff.approvals.retention import Retention
from signoff.approvals.votes import Unchecked
from signoff.dataclass import dataclass
from signoff.errors import StoreError, TurnFailed
from signoff.turns import messages, overages
from signoff.turns.activity import Activity, BatchOpened, TurnEnded, TurnStarted
from signoff.turns.activity_log import ActivityLog
from signoff.turns.delivery import Delivery, ReplyFacts
from signoff.turns.model import Admission, Finished, StepInput, Turn, TurnFile, TurnState, Waiting
from signoff.turns.notifying import Notifier, Notifying
from signoff.turns.ports import FrontEnd, Runner, TurnStore, TurnTx
from signoff.turns.progress import Changes
from signoff.turns.queue import QueueLimits
from signoff.turns.status import StatusMessages

log = logging.getLogger(__name__)

Claimed = tuple[Turn, StepInput]
"""A turn that this process has claimed, and what its step reads."""
Ended = tuple[Turn, ReplyFacts]
"""A turn that has ended, and what its reply says besides its text."""

FAREWELL = 1.0
"""Seconds that cancelled steps may take. A tool in a thread cannot be cancelled at all."""
SWEEP_AT_LEAST = 30.0
"""The most seconds between sweeps, so that a changed system clock delays no deadline for long."""
STRAY = 20.0
"""Seconds after which the sweeper takes the step of a running turn that has none."""
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
    _claimed: dict[str, Claimed] = field(default_factory=dict[str, Claimed])
    """Turn id -> the turn, if `submit` has claimed it, until `go`."""
    _has_queued: bool = True
    """Whether a turn may be queued, so that the end of another one has to look for it."""
    _sweep_now: asyncio.Event = field(default_factory=asyncio.Event)
    _sweeps_at: float = float("inf")
    """When the sweeper looks at the deadlines again. A card with an earlier one wakes it."""
    _strays: dict[str, float] = field(default_factory=dict[str, float])
    """Running turn without a step -> when the sweeper first saw it. A turn that was just claimed may be one."""
    _context: Context = field(default_factory=copy_context)
    """The context in which turns go on after a decision: that of an earlier step would stay in memory as long."""
    _stopping: bool = False

    def __post_init__(self) -> None:
        notifying = Notifying(self.store, self.desk, self.notifier)
        self._delivery = Delivery(self.store, self.desk, self.front, notifying, self._changes)
        self._status = StatusMessages(self.store, self.front, self._delivery, self.clock, self._changes)

    # Taking turns in

    async def submit(self, turn: Turn) -> Admission:
        """Store a mention, and claim it if it may run now. Its step begins with `go`: its thread is opened first."""
        if turn.id in self._admitted:
            return Admission("duplicate")
        self._admitted[turn.id] = turn.asker.id

        def work(tx: TurnTx) -> tuple[Admission, Claimed | None]:
            admission = self.limits.admit(tx, turn)
            # The step of a turn with files reads them after they were downloaded.
            if admission.kind != "started" or turn.files or self._stopping:
                return admission, None
            running = replace(turn, state=TurnState.RUNNING)
            moved = tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING)
            return admission, (running, tx.step_input(running)) if moved else None

        try:
            admission, claimed = await self.store.run(work)
        except BaseException:
            del self._admitted[turn.id]
            raise
        if claimed:
            self._admitted[turn.id] = ""
            self._claimed[turn.id] = claimed
            await self.runner.begin(*claimed)  # so that the model thinks while the thread is opened
        elif admission.kind == "queued":
            self._admitted[turn.id] = ""
            self._has_queued = True
        elif admission.kind != "started":
            del self._admitted[turn.id]
        return admission

    async def relocate(self, turn_id: str, place: Place) -> None:
        """Move a turn to another place, because its thread could not be opened. There it has to be claimed anew."""
        claimed = self._claimed.get(turn_id)

        def work(tx: TurnTx) -> None:
            if claimed:
                tx.move(turn_id, TurnState.RUNNING, TurnState.QUEUED)
            tx.relocate(turn_id, place)

        await self.store.run(work)
        if self._claimed.pop(turn_id, None) and claimed:  # not before: if that failed, the turn runs where it is
            self._admitted[turn_id] = claimed[0].asker.id
            self.runner.turn_ended(claimed[0])  # there, it begins anew

    async def enclose(self, turn_id: str, files: Sequence[TurnFile]) -> None:
        """Store the contents of the files that came with a turn."""
        await self.store.run(lambda tx: tx.set_files(turn_id, files, self.clock.now()))

    async def go(self, turn_id: str) -> None:
        self._admitted.pop(turn_id, None)
        if claimed := self._claimed.pop(turn_id, None):
            self._begin(*claimed)
        else:
            await self._start_queued()

    async def _start_queued(self) -> None:
        """Claim and run every turn that may run now."""
        if self._stopping:
            return
        admitted = dict(self._admitted)

        def work(tx: TurnTx) -> tuple[list[Claimed], bool]:
            claimed: list[Claimed] = []
            while turn := self.limits.claim(tx, admitted):
                claimed.append((turn, tx.step_input(turn)))
            return claimed, tx.queued() > 0

        claimed, self._has_queued = await self.store.run(work)
        for turn, given in claimed:
            self._begin(turn, given)

    # One step

    def _begin(self, turn: Turn, given: StepInput) -> None:
        self.activity.tell(TurnStarted(turn))
        self._step(turn, given)

    def _step(self, turn: Turn, given: StepInput | None = None) -> None:
        if self._stopping:
            return  # the next start takes it
        task = self._spawn(self._drive(turn, given))
        self._steps[turn.id] = task
        task.add_done_callback(lambda done: self._steps.pop(turn.id) if self._steps.get(turn.id) is done else None)

    async def _drive(self, turn: Turn, given: StepInput | None) -> None:
        """Advance a claimed turn, and try again if the store fails: the journal lets no call run twice."""
        current: Turn | None = turn
        await asyncio.sleep(0)  # the response to the click that woke this turn goes out first
        for delay in STEP_DELAYS:
            try:
                current = current or await self.store.run(lambda tx: tx.turn(turn.id))
                if current and current.state is TurnState.RUNNING:
                    await self._advance(current, given)
                return
            except StoreError as error:
                log.warning("the store failed turn %s, which goes on in %g seconds: %s", turn.id, delay, error)
            current = given = None  # read it again: only the store knows how far it came
            await asyncio.sleep(delay)
        await self._give_up(turn)

    async def _advance(self, turn: Turn, given: StepInput | None) -> None:
        """Run a claimed turn until it ends or waits. Only a failure of the store leaves it running."""
        try:
            async with self.front.working(turn):
                step = await self.runner.advance(turn, self._status.begin(turn), given)
            match step:
                case Finished():
                    await self._end(turn, TurnState.DONE, step)
                case Waiting():
                    await self._wait_for_people(turn, step)
        except StoreError:
            raise
        except TurnFailed as failure:
            await self._end(turn, TurnState.FAILED, Finished(str(failure)), failure)
        except Exception as error:
            await self._end(turn, TurnState.FAILED, Finished(messages.broken(error)), error)

    async def _give_up(self, turn: Turn) -> None:
        """End the turn as soon as the store works again."""
        told = False
        while True:
            try:
                return await self._end(turn, TurnState.FAILED, Finished(messages.STORE_FAILED))
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
        self.desk.watch(batch, self._claim_with).add_done_callback(self._woken, context=self._context)
        if _first_moment(batch) < self._sweeps_at:
            self._sweep_now.set()
        if not batch.settled:
            self._spawn(self._delivery.post_card(batch))
        if notice := messages.missing_approvers_notice(batch):
            await self._delivery.say(turn, notice)

    async def _end(self, turn: Turn, state: TurnState, step: Finished, error: Exception | None = None) -> None:
        def work(tx: TurnTx) -> Ended | None:
            for use in step.uses:
                tx.add_use(turn, use())
            if not tx.finish(turn.id, TurnState.RUNNING, state, step.text, self.clock.now()):
                return None
            tx.save_history(turn.place.conversation, step.history)
            return _ended(tx, turn.id)

        if ended := await self.store.run(work):
            await self._announce(ended, error)

    async def _announce(self, ended: Ended, error: Exception | None = None) -> None:
        """Tell of the end of a turn, which the store has already, and start the next ones."""
        turn, facts = ended
        self.runner.turn_ended(turn)
        self.activity.tell(TurnEnded(turn, turn.state, self.clock.now() - turn.created, error))
        self._changes.ring(turn.id)
        await self._reply(turn, turn.reply or "", facts)
        if self._has_queued:
            await self._start_queued()

    async def _reply(self, turn: Turn, text: str, facts: ReplyFacts | None = None) -> None:
        """Post the end of a turn, in place of its status message."""
        message = await self._status.end(turn)
        await self._delivery.reply(replace(turn, status_message=message), text, facts)

    # Going on after a decision

    def _woken(self, future: asyncio.Future[Woken]) -> None:
        self._settled(future.result())

    def _settled(self, woken: Woken) -> None:
        if not woken.claimed:
            self._spawn(self._continue(woken.batch.turn))
            self._spawn(self._delivery.tidy(woken.batch.id))
        self._spawn(self._delivery.finish_card(woken.batch))

    async def _continue(self, turn_id: str) -> None:
        if not self._stopping and (go_on := await self.store.run(lambda tx: self._claim(tx, turn_id))):
            go_on()

    def _claim_with(self, tx: DeskTx, batch: Batch) -> GoOn | None:
        """Claim the turn inside the transaction that settles its batch, which saves a commit and a second look."""
        if self._stopping:
            return None
        rows = cast(TurnTx, tx)  # one store implements both ports
        claimed, has_notices = self._claim(rows, batch.turn, batch), bool(rows.notices_of(batch.id))

        def go_on() -> None:
            if claimed:
                claimed()
            if has_notices:
                self._spawn(self._delivery.tidy(batch.id))

        return go_on

    def _claim(self, tx: TurnTx, turn_id: str, settled: Batch | None = None) -> GoOn | None:
        """Claim a turn whose batch is settled. Returns what to do after the commit; None if the turn does not go on.

        `settled`: a batch of the turn, if it is at hand.
        """
        turn = tx.turn(turn_id)
        if turn is None or turn.batch is None or turn.state is not TurnState.WAITING:
            return None  # it goes on already
        batch = settled if settled and settled.id == turn.batch else tx.batch(turn.batch)
        if batch is None or not batch.settled or tx.pause_of(turn.place.server):
            return None  # it waits for another decision, or for `resume`
        end = overages.settle(tx, batch, self.clock.now()) if batch.is_overage else self.limits.end_of(tx, batch)
        if end and tx.finish(turn_id, TurnState.WAITING, TurnState.STOPPED, end, self.clock.now()):
            ended = _ended(tx, turn_id)
            return lambda: self._spawn(self._announce(ended))
        if not tx.move(turn_id, TurnState.WAITING, TurnState.RUNNING):
            return None
        running = replace(turn, state=TurnState.RUNNING)
        given = tx.step_input(running)
        return lambda: self._step(running, given)

    # For `pausing` and `administration`

    async def take_up(self, turns: Sequence[Turn]) -> None:
        """Continue the turns that were decided during a pause, and the queue."""
        for turn in turns:
            self._spawn(self._continue(turn.id))
        await self._start_queued()

    async def drop(self, turns: Sequence[Turn], text: str) -> None:
        """End the steps of stopped turns, post that they were stopped, and start the next turns."""
        for turn in turns:
            self._claimed.pop(turn.id, None)
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
            self._settled(Woken(await self.desk.unattended.get()))

    async def _sweep(self) -> None:
        while not self._stopping:
            self._sweep_now.clear()
            self._sweeps_at = float("inf")  # a card that is opened during this sweep may be missed by it
            pause = SWEEP_AT_LEAST
            try:
                await self.desk.expire_due()
                for batch in await self.desk.take_reminders():
                    self._spawn(self._delivery.remind(batch))
                for batch in await self.desk.escalate_due():
                    self._spawn(self._delivery.escalated(batch))
                decided, running = await self.store.run(lambda tx: (tx.resumable(), tx.turns_in(TurnState.RUNNING)))
                for turn in decided:
                    self._spawn(self._continue(turn.id))  # in case waking it failed
                self._take_strays(running)
                await self._start_queued()  # in case starting failed
                if self.retention:
                    await self.retention.prune(self.clock.now())
                deadline = await self.store.run(lambda tx: tx.next_deadline())
                if deadline is not None:
                    pause = min(max(deadline - self.clock.now(), 0.0), SWEEP_AT_LEAST)
            except Exception:
                log.exception("deadlines could not be checked; trying again")
                pause = 1.0
            self._sweeps_at = self.clock.now() + pause
            try:
                await asyncio.wait_for(self._sweep_now.wait(), pause)
            except TimeoutError:
                pass

    def _take_strays(self, running: Sequence[Turn]) -> None:
        """Take the step of each turn that was claimed some time ago and that nobody has woken since."""
        now = self.clock.now()
        stepless = [turn.id for turn in running if turn.id not in self._steps and turn.id not in self._claimed]
        self._strays = {id: self._strays.get(id, now) for id in stepless}
        for turn in running:
            if now - self._strays.get(turn.id, now) >= STRAY:
                self._step(turn)

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
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a task failed; the sweeper or the next start will retry it", exc_info=error)


def _ended(tx: TurnTx, turn_id: str) -> Ended:
    turn = tx.turn(turn_id)
    assert turn is not None, "it has just been changed"
    return turn, ReplyFacts.read(tx, turn_id)


def _first_moment(batch: Batch) -> float:
    """Return when something has to happen about an open batch: its deadline, a reminder or an escalation."""
    moments = [batch.deadline, batch.remind_at, *(request.escalate_at for request in batch.pending)]
    return min(moment for moment in moments if moment is not None)
