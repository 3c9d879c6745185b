"""A driver with a real store and desk, a scripted runner and a front end that records."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from signoff.approvals.automatic import Modes
from signoff.approvals.desk import Desk
from signoff.approvals.model import Batch, Place
from signoff.store import Store
from signoff.turns.driver import Driver, QueueLimits
from signoff.turns.model import Finished, Step, Turn, TurnState, Waiting
from signoff.turns.pausing import Pausing
from signoff.turns.ports import FrontEnd, Progress, Runner
from signoff.turns.progress import RunStatus
from tests.conftest import SERVER, HandClock, make_batch, make_request, make_turn

FINISH: Step = Finished("the answer")


@dataclass
class RecordingFrontEnd(FrontEnd):
    """Posts into lists. `failures` are raised first, one per call of the method they are named for."""

    cards: list[str] = field(default_factory=list)
    refreshed: list[Batch] = field(default_factory=list)
    replies: list[tuple[str, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    at_work: list[str] = field(default_factory=list)
    reminded: list[str] = field(default_factory=list)
    statuses: list[RunStatus] = field(default_factory=list)
    posted_statuses: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    replied_in: list[str | None] = field(default_factory=list)
    """The status message of each reply."""
    posting_status: asyncio.Event | None = None
    """If set: a status message is not there before this event."""
    failures: dict[str, deque[BaseException]] = field(default_factory=lambda: defaultdict(deque))
    posting: asyncio.Event | None = None
    """If set: a card is not there before this event."""

    async def post_card(self, batch: Batch) -> str:
        self._fail("post_card")
        self.cards.append(batch.id)
        if self.posting:
            await self.posting.wait()
        return f"card of {batch.id}"

    async def refresh_card(self, batch: Batch) -> None:
        self._fail("refresh_card")
        self.refreshed.append(batch)

    async def retire_card(self, batch: Batch) -> None:
        self._fail("retire_card")

    async def remind(self, batch: Batch) -> None:
        self._fail("remind")
        self.reminded.append(batch.id)

    async def repost_card(self, batch: Batch) -> str:
        self._fail("repost_card")
        self.cards.append(batch.id)
        return f"later card of {batch.id}"

    async def reply(self, turn: Turn, text: str) -> None:
        self._fail("reply")
        self.replies.append((turn.id, text))
        self.replied_in.append(turn.status_message)

    async def show_status(self, turn: Turn, status: RunStatus) -> str:
        self._fail("show_status")
        self.statuses.append(status)
        if self.posting_status:
            await self.posting_status.wait()
        if turn.status_message is None:
            self.posted_statuses.append(turn.id)
        return turn.status_message or f"status {len(self.posted_statuses)}"

    async def remove_status(self, turn: Turn) -> None:
        self._fail("remove_status")
        self.removed.append(turn.status_message or "")

    async def notice(self, turn: Turn, text: str) -> None:
        self._fail("notice")
        self.notices.append(text)

    @asynccontextmanager
    async def working(self, turn: Turn) -> AsyncGenerator[None]:
        self.at_work.append(turn.id)
        yield

    def _fail(self, method: str) -> None:
        if self.failures[method]:
            raise self.failures[method].popleft()


@dataclass
class ScriptedRunner(Runner):
    """Ends each step of a turn as its script says: a step, an error, or an event to wait for before the next."""

    scripts: dict[str, deque[Step | Exception | asyncio.Event]] = field(default_factory=lambda: defaultdict(deque))
    given_up: list[str] = field(default_factory=list)
    """Turns of which nothing goes on any more."""
    begun: list[str] = field(default_factory=list)
    """Turns whose model may be asked before their step."""
    advanced: list[str] = field(default_factory=list)
    most_at_once: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    quiesced: list[float] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    progress: dict[str, Progress] = field(default_factory=dict)
    """Turn id -> the object that its last step reports to."""
    _running: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def script(self, turn: Turn, *steps: Step | Exception | asyncio.Event) -> None:
        self.scripts[turn.id].extend(steps)

    async def begin(self, turn: Turn, given: object) -> None:
        self.begun.append(turn.id)

    async def advance(self, turn: Turn, progress: Progress | None = None, given: object = None) -> Step:
        self.advanced.append(turn.id)
        if progress:
            self.progress[turn.id] = progress
        who = turn.asker.id
        self._running[who] += 1
        self.most_at_once[who] = max(self.most_at_once[who], self._running[who])
        try:
            script = self.scripts[turn.id]
            while script and isinstance(script[0], asyncio.Event):
                await script[0].wait()
                script.popleft()
            step = script.popleft() if script else FINISH
            if isinstance(step, Exception):
                raise step
            assert not isinstance(step, asyncio.Event)
            return step
        finally:
            self._running[who] -= 1

    def pause(self, server: str) -> None:
        self.paused.add(server)

    def resume(self, server: str) -> None:
        self.paused.discard(server)

    def turn_ended(self, turn: Turn) -> None:
        self.given_up.append(turn.id)

    async def quiesce(self, seconds: float) -> None:
        self.quiesced.append(seconds)


@dataclass
class Office:
    """A driver with its parts, and ways to ask about them."""

    store: Store
    clock: HandClock
    front: RecordingFrontEnd = field(default_factory=RecordingFrontEnd)
    runner: ScriptedRunner = field(default_factory=ScriptedRunner)
    limits: QueueLimits = field(default_factory=QueueLimits)
    modes: Modes = field(default_factory=Modes)

    def __post_init__(self) -> None:
        self.desk = Desk(self.store, self.clock, self.modes)
        self.driver = Driver(self.store, self.desk, self.runner, self.front, self.clock, self.limits)

    async def take(self, turn: Turn) -> str:
        admission = await self.driver.submit(turn)
        if admission.kind in ("started", "queued"):
            await self.driver.go(turn.id)
        return admission.kind

    async def state(self, turn: Turn) -> TurnState | None:
        found = await self.store.run(lambda tx: tx.turn(turn.id))
        return found.state if found else None

    async def until(self, holds: Callable[[], Any]) -> None:
        async def check() -> Any:
            return holds()

        await self.until_true(check)

    async def until_state(self, turn: Turn, state: TurnState) -> None:
        async def check() -> bool:
            return await self.state(turn) is state

        await self.until_true(check)

    async def until_true(self, check: Callable[[], Awaitable[Any]]) -> None:
        end = asyncio.get_running_loop().time() + 60
        while not await check():
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.002)

    async def batch(self, batch: Batch) -> Batch:
        found = await self.store.run(lambda tx: tx.batch(batch.id))
        assert found
        return found

    async def asked(self, turn: Turn, batch: Batch) -> None:
        """Take a turn whose first step opens this batch, up to its card."""
        self.runner.script(turn, Waiting(batch))
        await self.take(turn)
        await self.until_state(turn, TurnState.WAITING)

        async def has_card() -> bool:
            return (await self.batch(batch)).card_message is not None

        await self.until_true(has_card)

    def successor(self) -> Office:
        """The next process on the same database."""
        return Office(self.store, self.clock)


@pytest.fixture
async def office(store: Store, clock: HandClock) -> AsyncIterator[Office]:
    found = Office(store, clock)
    yield found
    await found.driver.stop(0)


def in_thread(number: int, **fields: Any) -> Turn:
    thread = str(710000000000000000 + number)
    return make_turn(place=Place(SERVER, thread, thread), **fields)


def batch_of(turn: Turn, **fields: Any) -> Batch:
    return make_batch(make_request(), turn=turn.id, place=turn.place, asker=turn.asker, **fields)


def halts_of(office: Office) -> Pausing:
    return Pausing(office.store, office.desk, office.runner, office.driver, office.clock)


@pytest.fixture
def pausing(office: Office) -> Pausing:
    return halts_of(office)
