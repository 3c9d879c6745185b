"""The run of each approved call, as the store reads it from the journal and the turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from signoff.approvals.model import ApprovalRequest, CallRun, RequestKind, RequestState, RunState
from signoff.store import Store
from signoff.store.store import Tx
from signoff.turns.model import CallRecord, CallState, TurnState
from tests.rigs.store_samples import a_batch, a_request, a_turn, settled


def approved(tx: Tx, *, turn: TurnState = TurnState.RUNNING, batch: str = "b1") -> ApprovalRequest:
    """Write a turn at batch b1, with one approved request."""
    request = settled(a_request())
    tx.insert_turn(a_turn(state=turn, batch=batch))
    tx.insert_batch(a_batch("b1", request))
    return request


def write(tx: Tx, request: ApprovalRequest, state: CallState, at: float, *, used: str | None = None) -> None:
    ended = state is not CallState.STARTED
    record = CallRecord(
        request.call.key,
        "delete_file",
        "d",
        state,
        b"x" if ended else None,
        request=request.id if used is None else used,
        started=100.0,
        line="all of it" if ended else "",
    )
    tx.put_call(record, "t1", at)


def run_of(tx: Tx, batch: str = "b1") -> CallRun | None:
    current = tx.batch(batch)
    assert current
    return current.requests[0].run


@pytest.mark.parametrize("turn", [TurnState.RUNNING, TurnState.WAITING])
async def test_a_call_that_has_not_started_has_no_run(store: Store, turn: TurnState) -> None:
    def work(tx: Tx) -> tuple[CallRun | None, bool]:
        approved(tx, turn=turn)
        batch = tx.batch("b1")
        assert batch
        return run_of(tx), batch.ended

    assert await store.run(work) == (None, False)


async def test_a_call_runs_and_ends(store: Store) -> None:
    def work(tx: Tx) -> None:
        request = approved(tx)
        write(tx, request, CallState.STARTED, 100.0)
        assert run_of(tx) == CallRun(RunState.RUNNING, 100.0)
        write(tx, request, CallState.DONE, 103.0)
        assert run_of(tx) == CallRun(RunState.DONE, 100.0, 103.0, "all of it")
        write(tx, request, CallState.FAILED, 104.0)
        assert run_of(tx) == CallRun(RunState.FAILED, 100.0, 104.0, "all of it")
        batch = tx.batch("b1")
        assert batch
        assert batch.ended

    await store.run(work)


@pytest.mark.parametrize("turn", [TurnState.STOPPED, TurnState.FAILED])
async def test_a_call_that_runs_when_its_turn_ends_may_have_run(store: Store, turn: TurnState) -> None:
    def work(tx: Tx) -> CallRun | None:
        write(tx, approved(tx, turn=turn), CallState.STARTED, 100.0)
        return run_of(tx)

    assert await store.run(work) == CallRun(RunState.MAY_HAVE_RUN, 100.0)


@pytest.mark.parametrize(("turn", "batch"), [(TurnState.DONE, "b1"), (TurnState.RUNNING, "b2")])
async def test_a_call_that_the_turn_left_behind_was_not_run(store: Store, turn: TurnState, batch: str) -> None:
    assert await store.run(lambda tx: (approved(tx, turn=turn, batch=batch), run_of(tx))[1]) == CallRun(
        RunState.NOT_RUN
    )


async def test_a_call_that_was_asked_about_as_interrupted_may_have_run_whatever_comes_after(store: Store) -> None:
    def work(tx: Tx) -> None:
        first = approved(tx, batch="b2")
        write(tx, first, CallState.STARTED, 100.0)
        again = settled(a_request("q2", key=first.call.key, kind=RequestKind.MAY_HAVE_RUN))
        tx.insert_batch(a_batch("b2", again))
        assert run_of(tx) == CallRun(RunState.MAY_HAVE_RUN, 100.0)
        assert run_of(tx, "b2") is None, "the new start has not been made yet"
        write(tx, first, CallState.DONE, 120.0, used="q2")
        assert run_of(tx) == CallRun(RunState.MAY_HAVE_RUN)
        assert run_of(tx, "b2") == CallRun(RunState.DONE, 100.0, 120.0, "all of it")

    await store.run(work)


async def test_a_call_that_asked_again_before_it_did_anything_was_not_run(store: Store) -> None:
    def work(tx: Tx) -> None:
        first = approved(tx, batch="b2")
        again = settled(a_request("q2", key=first.call.key))
        tx.insert_batch(a_batch("b2", again))
        write(tx, first, CallState.DONE, 120.0, used="q2")
        assert run_of(tx) == CallRun(RunState.NOT_RUN)
        assert run_of(tx, "b2") == CallRun(RunState.DONE, 100.0, 120.0, "all of it")

    await store.run(work)


async def test_rows_of_older_versions_have_no_times(store: Store) -> None:
    def work(tx: Tx) -> CallRun | None:
        request = approved(tx, turn=TurnState.DONE)
        old = CallRecord(request.call.key, "delete_file", "d", CallState.DONE, b"x")
        tx.put_call(old, "t1", 103.0)
        tx.db.change("UPDATE calls SET line = NULL")
        return run_of(tx)

    assert await store.run(work) == CallRun(RunState.DONE, None, 103.0)


async def test_only_approved_calls_have_a_run(store: Store) -> None:
    def work(tx: Tx) -> list[CallRun | None]:
        both = settled(a_request()), settled(a_request("q2"), RequestState.REJECTED)
        tx.insert_turn(a_turn(state=TurnState.DONE))
        tx.insert_batch(a_batch("b1", *both))
        batch = tx.batch("b1")
        assert batch
        assert batch.ended
        assert not replace(batch, requests=(replace(both[0], run=None), both[1])).ended
        return [r.run for r in batch.requests]

    assert await store.run(work) == [CallRun(RunState.NOT_RUN), None]
