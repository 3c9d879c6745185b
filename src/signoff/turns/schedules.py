"""Schedules: prompts that run by themselves, and the service that adds, lists and removes them.

The operator must allow schedules, and each of their modes. Admins of a server make them. `scheduling` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Protocol, TypeVar

from signoff.approvals.errors import Refused
from signoff.approvals.model import Actor
from signoff.approvals.ports import Clock, DeskTx
from signoff.approvals.server_rules import must_manage
from signoff.dataclass import dataclass

if TYPE_CHECKING:
    from signoff.turns.cron import Cron

T = TypeVar("T")

NOT_ALLOWED = "The operator does not allow schedules: `[schedules] allow = true` in signoff.toml does."
PROMPT = 1500
"""The most characters of a prompt."""


@dataclass(frozen=True, slots=True)
class Schedule:
    server: str
    number: int
    channel: str
    cron: str
    prompt: str
    mode: str
    by: Actor
    """The person who made it, as they were then. Each run asks who they are now."""
    created: float
    due: float
    """When it runs next."""
    claimed: float | None = None
    """The due time of the run that is being started."""
    message: str = ""
    """The message that begins this run; empty before it is posted."""
    paused: str = ""
    """Why it does not run; empty if it does."""
    last_run: float | None = None
    """The due time of the last run; after a restored backup, when that was. Nothing runs that came due before."""

    @property
    def name(self) -> str:
        return f"schedule {self.number}"


class ScheduleTx(DeskTx, Protocol):
    """The rows of schedules in one transaction. Removed schedules are never returned."""

    def schedules_of(self, server: str) -> Sequence[Schedule]: ...

    def schedule(self, server: str, number: int) -> Schedule | None: ...

    def next_number(self, server: str) -> int:
        """Return a number that no schedule of this server has or had."""
        ...

    def insert_schedule(self, schedule: Schedule) -> None: ...

    def remove_schedule(self, server: str, number: int, at: float) -> bool: ...

    def due_schedules(self, now: float) -> Sequence[Schedule]:
        """Return the schedules that are due and those with a claimed run, oldest first."""
        ...

    def next_due(self) -> float | None: ...

    def claim_schedule(self, schedule: Schedule, claimed: float | None, due: float) -> bool:
        """Move the schedule on to `due`, and claim the run of the time `claimed`, if there is one.

        Returns False if it was moved, claimed, paused or removed meanwhile.
        """
        ...

    def note_beginning(self, schedule: Schedule, message: str, turn: str) -> None:
        """Note the message that begins the claimed run, and the mode of its turn."""
        ...

    def end_claim(self, schedule: Schedule, last_run: float | None) -> None:
        """End the claim; with `last_run`, its due time, the run has started."""
        ...

    def skip_schedules(self, now: float) -> None:
        """Let nothing run that came due before now."""
        ...

    def pause_schedule(self, schedule: Schedule, why: str) -> None: ...


class ScheduleStore(Protocol):
    async def run(self, work: Callable[[ScheduleTx], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class ScheduleTerms:
    """What the operator permits."""

    allow: bool = False
    modes: frozenset[str] = frozenset({"interactive", "auto_deny"})
    per_server: int = 20
    interval: float = 900.0
    """The fewest seconds between two runs of one schedule."""
    grace: float = 3600.0
    """A run that was missed is made up for if it is not older than this."""
    zone: tzinfo = UTC


@dataclass(frozen=True)
class ScheduleBook:
    store: ScheduleStore
    clock: Clock
    terms: ScheduleTerms = field(default_factory=ScheduleTerms)
    changed: Callable[[], None] = lambda: None
    """Is called after a schedule was added."""

    def cron(self, schedule: Schedule) -> Cron:
        from signoff.turns.cron import Cron  # here, because few have schedules

        return Cron(schedule.cron, self.terms.zone)

    async def add(self, actor: Actor, channel: str, cron: str, prompt: str, mode: str) -> Schedule:
        """Add a schedule. Raises Refused with a reason for the admin."""
        must_manage(actor)
        terms, now = self.terms, self.clock.now()
        if not terms.allow:
            raise Refused(NOT_ALLOWED)
        if mode not in terms.modes:
            raise Refused(f"The operator does not permit the mode {mode} for schedules.")
        prompt = prompt.strip()
        if not prompt or len(prompt) > PROMPT:
            raise Refused(f"The prompt must have 1 to {PROMPT} characters.")
        due = self._first(cron, now)

        def work(tx: ScheduleTx) -> Schedule:
            if len(tx.schedules_of(actor.server)) >= terms.per_server:
                raise Refused(f"This server has {terms.per_server} schedules already. Remove one first.")
            number = tx.next_number(actor.server)
            made = Schedule(actor.server, number, channel, " ".join(cron.split()), prompt, mode, actor, now, due)
            tx.insert_schedule(made)
            details = {"who": actor.name, "cron": made.cron, "channel": channel, "mode": mode}
            tx.audit("schedule_added", actor.server, made.name, actor.id, details, now)
            return made

        made = await self.store.run(work)
        self.changed()
        return made

    def _first(self, text: str, now: float) -> float:
        """Return the first time of a cron expression. Raises Refused if it is none, or runs too often."""
        from signoff.turns.cron import BadCron, Cron  # here for the same reason

        try:
            cron = Cron(text, self.terms.zone)
        except BadCron as error:
            raise Refused(f"This is not a cron expression ({error}). For example: 0 9 * * 1-5") from None
        first = cron.after(now)
        if first is None:
            raise Refused("This cron expression never comes due.")
        if (shortest := cron.shortest(now)) < self.terms.interval:
            least = f"{self.terms.interval / 60:g} minutes"
            raise Refused(f"This would run every {shortest / 60:g} minutes. The operator's minimum is {least}.")
        return first

    async def of(self, actor: Actor) -> Sequence[Schedule]:
        must_manage(actor)
        return await self.store.run(lambda tx: tx.schedules_of(actor.server))

    async def remove(self, actor: Actor, number: int) -> Schedule:
        must_manage(actor)
        now = self.clock.now()

        def work(tx: ScheduleTx) -> Schedule:
            schedule = tx.schedule(actor.server, number)
            if schedule is None or not tx.remove_schedule(actor.server, number, now):
                raise Refused(f"There is no schedule {number} here.")
            tx.audit("schedule_removed", actor.server, schedule.name, actor.id, {"who": actor.name}, now)
            return schedule

        return await self.store.run(work)
