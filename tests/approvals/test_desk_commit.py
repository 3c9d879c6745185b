"""A decision whose commit fails: nothing is announced, no run is woken, and the next click decides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Batch, Choice, Remember, RequestState
from signoff.errors import StoreError
from signoff.store import Store
from tests.conftest import ADA, OLGA, PLACE, HandClock, make_batch, make_request
from tests.rigs.desk import Watch
from tests.rigs.people import HandDirectory
from tests.rigs.store_samples import a_batch

T = TypeVar("T")


class FragileStore(Store):
    """The real store. While `fails` is set, every statement succeeds and SQLite refuses the commit."""

    fails = False

    async def run(self, work: Callable[[Any], T]) -> T:
        def doomed(tx: Any) -> T:
            result = work(tx)
            tx.db.change("PRAGMA defer_foreign_keys = ON")
            tx.insert_batch(a_batch("doomed"))
            tx.db.change("DELETE FROM batches WHERE id = ?", "doomed")
            return result

        return await super().run(doomed if self.fails else work)


@pytest.fixture
async def fragile(tmp_path: Path) -> AsyncIterator[FragileStore]:
    store = await FragileStore.open(f"sqlite:///{tmp_path}/fragile.db")
    assert isinstance(store, FragileStore)
    async with store:
        yield store


class Watched:
    """A desk, everything that it announced, and the future of one open batch."""

    def __init__(self, store: FragileStore, clock: HandClock) -> None:
        self.store = store
        self.clock = clock
        self.events: list[dict[str, Any]] = []
        terms = GrantTerms(Remember.ALWAYS)
        self.desk = Desk(store, clock, grants=terms, directory=HandDirectory(), subscribers=[self.events.append])

    async def open(self, batch: Batch) -> Watch:
        return Watch(self.desk.watch(await self.store.run(lambda tx: self.desk.open(tx, batch))))

    async def stored(self, batch: Batch) -> Batch:
        self.store.fails = False
        current = await self.store.run(lambda tx: tx.batch(batch.id))
        assert current
        return current

    async def record(self) -> list[str]:
        rows = await self.store.run(lambda tx: tx.audit_page(PLACE.server))
        return [row.kind for row in reversed(rows)]


@pytest.fixture
def watched(fragile: FragileStore, clock: HandClock) -> Watched:
    return Watched(fragile, clock)


def accept(batch: Batch, **fields: Any) -> Click:
    return Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, **fields)


async def test_a_click_whose_commit_fails_decides_nothing_and_a_later_click_works(watched: Watched) -> None:
    batch = make_batch()
    future = await watched.open(batch)
    watched.store.fails = True
    with pytest.raises(StoreError, match="nothing of this step was kept"):
        await watched.desk.decide(accept(batch, remember=Remember.ALWAYS))
    assert watched.events == []
    assert not future.done()
    assert watched.desk.unattended.empty()
    assert (await watched.stored(batch)).requests[0].state is RequestState.PENDING
    assert await watched.record() == ["asked"]
    assert await watched.desk.standing_grants(PLACE.server) == []

    await watched.desk.decide(accept(batch))
    assert future.done()
    assert await watched.record() == ["asked", "approved"]
    assert [event["approved"] for event in watched.events] == [True]


async def test_a_vote_whose_commit_fails_is_not_counted(watched: Watched) -> None:
    batch = make_batch(make_request(approvers=("manage_server", f"user:{OLGA.id}"), quorum=2))
    future = await watched.open(batch)
    watched.store.fails = True
    with pytest.raises(StoreError):
        await watched.desk.decide(Click(batch.id, Choice.ACCEPT, OLGA, PLACE.channel))
    assert (await watched.stored(batch)).requests[0].votes == ()
    outcome = await watched.desk.decide(accept(batch))
    assert [request.state for request in outcome.batch.requests] == [RequestState.PENDING]
    assert not future.done()


async def test_a_deadline_whose_commit_fails_expires_later(watched: Watched) -> None:
    batch = make_batch()
    future = await watched.open(batch)
    watched.clock.at = batch.deadline
    watched.store.fails = True
    with pytest.raises(StoreError):
        await watched.desk.expire_due()
    assert watched.events == []
    assert not future.done()
    assert (await watched.stored(batch)).requests[0].state is RequestState.PENDING
    assert [ended.id for ended in await watched.desk.expire_due()] == [batch.id]
    assert future.done()


async def test_a_cancelling_whose_commit_fails_cancels_nothing(watched: Watched) -> None:
    batch = make_batch()
    future = await watched.open(batch)
    watched.store.fails = True
    with pytest.raises(StoreError):
        await watched.desk.cancel(batch.id, "the card was deleted")
    assert watched.events == []
    assert not future.done()
    assert (await watched.stored(batch)).requests[0].state is RequestState.PENDING
    assert await watched.desk.cancel(batch.id, "the card was deleted")
    assert future.done()
