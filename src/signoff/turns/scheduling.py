"""Runs the schedules: claims each due time once, and starts a turn asked by the person who made the schedule.

The claim is stored before anything is posted, and the turn's id comes from the posted message, so a crash at any line
starts a run at most once. A run that was missed is made up for only if it is the last one and within the grace.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import field, replace
from typing import Protocol

from signoff.approvals.model import Actor
from signoff.approvals.ports import Clock
from signoff.dataclass import dataclass
from signoff.turns.model import Turn
from signoff.turns.schedules import Schedule, ScheduleBook, ScheduleStore, ScheduleTx

log = logging.getLogger(__name__)

LOOK_AT_LEAST = 30.0
"""The most seconds between two looks, so that a changed system clock delays no run for long."""
LEFT = "{name} is no longer in this server"
NOT_ADMIN = "{name} no longer has Manage Server"
MODE = "the operator no longer permits the mode {mode}"
REMEDY = "An admin can remove it with /signoff schedule remove and add it again."


class CannotRun(Exception):
    """This schedule cannot run before somebody changes something. The text says why."""


class Starter(Protocol):
    """The way to a chat that schedules need. Any other error than CannotRun may pass: the run is tried again."""

    async def person(self, server: str, person: str) -> Actor | None:
        """Return the person as they are now; None if they are not in the server."""
        ...

    async def check(self, schedule: Schedule, asker: Actor) -> None:
        """Raise CannotRun if this person may not ask in the schedule's channel."""
        ...

    async def begin(self, schedule: Schedule, asker: Actor) -> str:
        """Post the message that begins a run, once for each due time, and return its id. May raise CannotRun."""
        ...

    def turn(self, schedule: Schedule, message: str, asker: Actor, now: float) -> Turn:
        """Return the turn that this message begins. The same message always gives the same id."""
        ...

    async def start(self, schedule: Schedule, turn: Turn) -> None:
        """Submit the turn. Does nothing if it is known already."""
        ...

    async def tell(self, schedule: Schedule, text: str) -> None:
        """Tell the admins something, in the schedule's channel if that is possible. Raises nothing."""
        ...


@dataclass
class Scheduler:
    store: ScheduleStore
    clock: Clock
    book: ScheduleBook
    starter: Starter
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Run the schedules in the background, if the operator allows them."""
        if self.book.terms.allow and self._task is None:
            self._task = asyncio.create_task(self._run(), name="schedules")

    def wake(self) -> None:
        self._wake.set()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            pause = LOOK_AT_LEAST
            try:
                await self.look()
                due = await self.store.run(lambda tx: tx.next_due())
                if due is not None:
                    pause = min(max(due - self.clock.now(), 0.0), LOOK_AT_LEAST)
            except Exception:
                log.exception("the schedules could not be looked at; trying again")
            try:
                await asyncio.wait_for(self._wake.wait(), max(pause, 1.0))
            except TimeoutError:
                pass

    async def look(self) -> None:
        """Start the runs that are due, and those that an earlier process claimed and did not start."""
        now = self.clock.now()
        for schedule in await self.store.run(lambda tx: tx.due_schedules(now)):
            try:
                await self._take(schedule, now)
            except Exception:
                log.exception("%s of server %s did not run; trying again", schedule.name, schedule.server)

    async def _take(self, schedule: Schedule, now: float) -> None:
        if schedule.claimed is None:
            claimed = await self._claim(schedule, now)
            if claimed is None:
                return
            schedule = claimed
        assert schedule.claimed is not None
        if why := await self._obstacle(schedule, now - schedule.claimed):
            log.warning("%s of server %s skips a run: %s", schedule.name, schedule.server, why)
            await self.store.run(lambda tx: tx.end_claim(schedule, None))
            return
        try:
            asker = await self._asker(schedule)
            message = schedule.message or await self.starter.begin(schedule, asker)
        except CannotRun as refusal:
            await self._pause(schedule, str(refusal), now)
            return
        turn = self.starter.turn(schedule, message, asker, now)
        await self.store.run(lambda tx: tx.note_beginning(schedule, message, turn.id))
        await self.starter.start(schedule, turn)
        await self.store.run(lambda tx: tx.end_claim(schedule, schedule.claimed))

    async def _obstacle(self, schedule: Schedule, age: float) -> str:
        """Return why a claimed run, which came due `age` seconds ago, is given up; empty if it is not."""
        if age > self.book.terms.grace:
            return "it came due too long ago"
        paused = not schedule.message and await self.store.run(lambda tx: tx.pause_of(schedule.server))
        return "the server is paused" if paused else ""

    async def _claim(self, schedule: Schedule, now: float) -> Schedule | None:
        """Claim the last due time, or only move on if the server is paused or the run may have been made already."""
        cron = self.book.cron(schedule)
        last, following = cron.last(now), cron.after(now)
        due = schedule.due if last is None else max(last, schedule.due)
        if following is None:
            following = now + 50 * 365 * 86400.0

        done = schedule.last_run is not None and due <= schedule.last_run  # as after a restored backup

        def work(tx: ScheduleTx) -> Schedule | None:
            paused = tx.pause_of(schedule.server)
            skipped = paused is not None or done
            if not tx.claim_schedule(schedule, None if skipped else due, following):
                return None
            if skipped:
                why = "the server is paused" if paused else "it came due before a backup was restored"
                log.warning("%s of server %s skips a run: %s", schedule.name, schedule.server, why)
                return None
            return replace(schedule, claimed=due, due=following, message="")

        return await self.store.run(work)

    async def _asker(self, schedule: Schedule) -> Actor:
        """Return the person who made the schedule, with today's roles. Raises CannotRun."""
        if schedule.mode not in self.book.terms.modes:
            raise CannotRun(MODE.format(mode=schedule.mode))
        asker = await self.starter.person(schedule.server, schedule.by.id)
        if asker is None:
            raise CannotRun(LEFT.format(name=schedule.by.name))
        if not asker.manages_server:
            raise CannotRun(NOT_ADMIN.format(name=asker.name))
        await self.starter.check(schedule, asker)
        return asker

    async def _pause(self, schedule: Schedule, why: str, now: float) -> None:
        def work(tx: ScheduleTx) -> None:
            tx.pause_schedule(schedule, why)
            tx.audit("schedule_paused", schedule.server, schedule.name, "signoff", {"note": why}, now)

        await self.store.run(work)
        log.warning("%s of server %s is paused: %s", schedule.name, schedule.server, why)
        await self.starter.tell(schedule, f"Schedule {schedule.number} is paused: {why}. {REMEDY}")
