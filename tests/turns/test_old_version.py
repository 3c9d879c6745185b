"""A database of commit dec12ae, opened by today's code: its cards, grants, decisions, rules, pauses and record hold."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from signoff.agent.setup import Brain
from signoff.approvals.clicks import Click
from signoff.approvals.model import Actor, Batch, Choice, Place, RequestState
from signoff.clock import SteadyClock
from signoff.config.schema import load_config
from signoff.core import Core, queue_limits
from signoff.store import Store
from signoff.store.audit_file import open_audit_file
from signoff.turns.driver import Driver
from signoff.turns.model import Turn, TurnState
from signoff.turns.pausing import Pausing
from tests.rigs.driver_office import RecordingFrontEnd
from tests.rigs.old_version import unpack

LAB = "1572009570723692551"
OTHER = "1572009570723692559"
ADA = Actor("1572009570723692544", "Ada", LAB, manages_server=True)
NINA = Actor("1572009570723692547", "Nina", LAB)
OTTO = Actor("1572009570723692548", "Otto", OTHER, manages_server=True)
SESSION_THREAD = "1572009582039924736"


@dataclass
class Installation:
    """Today's parts around the old database."""

    folder: Path
    store: Store
    core: Core
    driver: Driver
    pausing: Pausing
    front: RecordingFrontEnd

    @property
    def trace(self) -> list[str]:
        """What the tools did."""
        file = self.folder / "trace.txt"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    async def batch(self, value: str) -> Batch:
        """The newest batch whose first call has this value."""
        turns = await self.store.run(lambda tx: tx.turns_in(*TurnState))
        for turn in reversed(turns):
            batch = await self.store.run(lambda tx, id=turn.batch: tx.batch(id)) if turn.batch else None
            if batch and batch.requests[0].call.args["value"] == value:
                return batch
        raise LookupError(value)

    async def click(self, batch: Batch, target: str, choice: Choice = Choice.ACCEPT, actor: Actor = ADA) -> None:
        await self.core.desk.decide(Click(target, choice, actor, batch.place.channel, batch.card_message))

    async def ask(self, text: str, thread: str = "") -> Turn:
        """A new mention by Nina, in a thread of its own or in an old one."""
        message = str(9_000_000_000_000_000_000 + len(self.front.at_work))
        place = Place(LAB, thread or message, thread or message)
        turn = Turn(f"new-{message}", place, message, NINA, text, SteadyClock().now())
        assert (await self.driver.submit(turn)).kind == "started"
        await self.driver.go(turn.id)
        return turn

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - what is waited for is in a file
                await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Building the parts masks the log from then on, and that of all later tests would be."""
    before = {handler: list(handler.filters) for handler in logging.getLogger().handlers}
    yield
    for handler, filters in before.items():
        handler.filters[:] = filters


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return unpack(tmp_path)


@pytest.fixture
async def old(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    monkeypatch.setenv("SIGNOFF_TEST_TRACE", str(tmp_path / "trace.txt"))
    config = load_config(tmp_path / "signoff.toml", required=True)
    brain = Brain.build(config, "demo")
    async with await Store.open(f"sqlite:///{database}") as store:
        clock, front = SteadyClock(), RecordingFrontEnd()
        core = await Core.build(config, brain, store, clock)
        driver = Driver(store, core.desk, core.runner, front, clock, queue_limits(config), core.retention)
        pausing = Pausing(store, core.desk, core.runner, driver, clock)
        installation = Installation(tmp_path, store, core, driver, pausing, front)
        await driver.recover()
        await installation.until(lambda: len(front.replies) == 1)  # the run that was decided
        (tmp_path / "trace.txt").rename(tmp_path / "recovered.txt")
        front.replies.clear()
        yield installation
        await driver.stop(0)


async def test_the_decided_run_goes_on_and_nothing_else_does(old: Installation) -> None:
    assert (old.folder / "recovered.txt").read_text() == "record decided\n"
    assert old.trace == []
    assert old.front.cards == [], "the open cards are there already"


async def test_an_old_card_is_accepted_and_its_call_runs(old: Installation) -> None:
    batch = await old.batch("open")
    await old.click(batch, batch.id)
    await old.until(lambda: old.trace == ["record open"])


async def test_an_old_card_is_rejected_and_its_call_does_not_run(old: Installation) -> None:
    batch = await old.batch("open")
    await old.click(batch, batch.id, Choice.REJECT)
    await old.until(lambda: bool(old.front.replies))
    assert old.trace == []


async def test_an_old_batch_is_accepted_whole_and_its_held_calls_run_with_it(old: Installation) -> None:
    batch = await old.batch("batched")
    assert [request.held for request in batch.requests] == [False, True, True]
    await old.click(batch, batch.id)
    await old.until(lambda: len(old.trace) == 3)
    assert sorted(old.trace) == ["free held", "free held as well", "record batched"]


async def test_an_old_vote_counts_only_while_its_voter_may_decide(old: Installation) -> None:
    batch = await old.batch("two people")
    assert [vote.by.name for vote in batch.requests[0].votes] == ["Olga"]
    await old.click(batch, batch.requests[0].id)
    after = await old.batch("two people")
    # Nobody can be looked up here, so Olga's old vote is void and Ada's is the first.
    assert after.requests[0].state is RequestState.PENDING
    assert [vote.by.name for vote in after.requests[0].votes] == ["Ada"]


async def test_the_grant_for_always_covers_a_new_conversation(old: Installation) -> None:
    await old.ask('call record {"value": "always"}')
    await old.until(lambda: old.trace == ["record always"])
    assert old.front.cards == []


async def test_the_grant_of_a_thread_covers_that_thread_alone(old: Installation) -> None:
    await old.ask('call record {"value": "session"}', SESSION_THREAD)
    await old.until(lambda: old.trace == ["record session"])
    assert old.front.cards == []
    await old.ask('call record {"value": "session"}')
    await old.until(lambda: len(old.front.cards) == 1)
    assert old.trace.count("record session") == 1


async def test_the_rule_of_the_server_still_asks(old: Installation) -> None:
    await old.ask('call free {"value": "ruled by Ada"}')
    await old.until(lambda: len(old.front.cards) == 1)
    batch = await old.batch("ruled by Ada")
    assert "this server's rule 47f2b4" in batch.requests[0].why
    assert old.trace == []


async def test_the_paused_server_stays_paused_until_it_is_resumed(old: Installation) -> None:
    pause = await old.store.run(lambda tx: tx.pause_of(OTHER))
    assert pause
    assert pause.by.name == "Otto"
    assert "free queued" not in old.trace
    assert await old.pausing.resume(OTTO)
    await old.until(lambda: "free queued" in old.trace)


async def test_the_record_is_intact_before_and_after_more_is_written(old: Installation, database: Path) -> None:
    await old.click(await old.batch("open"), (await old.batch("open")).id)
    await old.until(lambda: bool(old.front.replies))
    await old.driver.stop(0)
    await old.store.close()
    with open_audit_file(database) as file:
        report = file.verify()
    assert report.intact
    assert report.anchor == report.head
    assert report.rows > 20


def test_the_untouched_record_is_intact(database: Path) -> None:
    with open_audit_file(database) as file:
        report = file.verify()
    assert report.intact
    assert report.rows == 20
    assert report.anchor is not None
    assert report.anchor.seq == 19
