"""The card after an accept: it follows its calls until the last one has ended, with few edits, also over a restart."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.model import ApprovalRequest, Batch, Choice, RunState
from signoff.turns import delivery as delivery_module
from signoff.turns.model import CallRecord, CallState, Turn, TurnState
from signoff.turns.pausing import Pausing
from tests.conftest import ADA, MAX, make_batch, make_call, make_request
from tests.rigs.driver_office import FINISH, Office, in_thread


def two_calls(turn: Turn) -> Batch:
    calls = [make_call(place=turn.place) for _ in range(2)]
    requests = [make_request(replace(call, key=replace(call.key, call_id=f"c{n}"))) for n, call in enumerate(calls)]
    return make_batch(*requests, turn=turn.id, place=turn.place, asker=turn.asker)


async def accepted(office: Office) -> tuple[Turn, Batch, asyncio.Event]:
    """Accept a card with two calls. The run goes on until the event is set."""
    turn, going = in_thread(1), asyncio.Event()
    batch = two_calls(turn)
    await office.asked(turn, batch)
    office.runner.script(turn, going, FINISH)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: office.runner.advanced.count(turn.id) == 2)
    return turn, batch, going


async def start(office: Office, turn: Turn, request: ApprovalRequest) -> None:
    await write(office, turn, request, CallState.STARTED)
    office.runner.progress[turn.id].started(request.call.key, request.call.tool)


async def end(office: Office, turn: Turn, request: ApprovalRequest, state: CallState = CallState.DONE) -> None:
    await write(office, turn, request, state)
    office.runner.progress[turn.id].ended(request.call.key)


async def write(office: Office, turn: Turn, request: ApprovalRequest, state: CallState) -> None:
    call, now = request.call, office.clock.now()
    record = CallRecord(call.key, call.tool, call.digest, state, request=request.id, started=now)
    await office.store.run(lambda tx: tx.put_call(record, turn.id, now))


def states(batch: Batch) -> list[RunState | None]:
    return [request.run.state if request.run else None for request in batch.requests]


def drawn(office: Office) -> list[list[RunState | None]]:
    return [states(batch) for batch in office.front.refreshed]


async def until_final(office: Office, batch: Batch) -> None:
    async def check() -> bool:
        return (await office.batch(batch)).card_final

    await office.until_true(check)


async def test_the_card_follows_its_calls_to_their_end(office: Office) -> None:
    turn, batch, going = await accepted(office)
    first, second = batch.requests
    await start(office, turn, first)
    await office.until(lambda: drawn(office)[-1:] == [[RunState.RUNNING, None]])
    await end(office, turn, first)
    await start(office, turn, second)
    await office.until(lambda: drawn(office)[-1:] == [[RunState.DONE, RunState.RUNNING]])
    assert not (await office.batch(batch)).card_final
    await end(office, turn, second, CallState.FAILED)
    await office.until(lambda: drawn(office)[-1:] == [[RunState.DONE, RunState.FAILED]])
    await until_final(office, batch)
    edits = len(office.front.refreshed)
    going.set()
    await office.until(lambda: office.front.replies)
    await asyncio.sleep(0.05)
    assert len(office.front.refreshed) == edits, "the reply changes nothing on the card"


async def test_quick_calls_cost_one_edit(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "MOMENT", 1.5)  # long enough for four commits on a busy disk
    turn, batch, going = await accepted(office)
    for request in batch.requests:
        await start(office, turn, request)
        await end(office, turn, request)
    going.set()
    await office.until(lambda: office.front.replies)
    await until_final(office, batch)
    assert drawn(office) == [[RunState.DONE, RunState.DONE]]


async def test_many_changes_are_one_edit(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    turn, batch, going = await accepted(office)
    first, second = batch.requests
    await start(office, turn, first)
    await office.until(lambda: drawn(office))
    monkeypatch.setattr(delivery_module, "EVERY", 0.3)
    edits = len(office.front.refreshed)
    await end(office, turn, first)
    await office.until(lambda: len(office.front.refreshed) == edits + 1)
    for _ in range(20):
        office.runner.progress[turn.id].thinking()
        await asyncio.sleep(0)
    await start(office, turn, second)
    await end(office, turn, second)
    await until_final(office, batch)
    assert len(office.front.refreshed) == edits + 2
    going.set()


async def test_a_call_that_never_ran_is_said_when_the_turn_has_ended(office: Office) -> None:
    turn, batch, going = await accepted(office)
    await start(office, turn, batch.requests[0])
    await end(office, turn, batch.requests[0])
    going.set()
    await until_final(office, batch)
    assert drawn(office)[-1] == [RunState.DONE, RunState.NOT_RUN]


async def test_a_stop_during_a_call_is_said_as_may_have_run(office: Office, pausing: Pausing) -> None:
    turn, batch, _ = await accepted(office)
    await start(office, turn, batch.requests[0])
    await office.until(lambda: drawn(office))
    assert await pausing.stop_turn(MAX, turn.id)
    await until_final(office, batch)
    assert drawn(office)[-1] == [RunState.MAY_HAVE_RUN, RunState.NOT_RUN]


async def test_a_card_that_says_running_is_corrected_after_a_kill(office: Office) -> None:
    turn, batch, _ = await accepted(office)
    await start(office, turn, batch.requests[0])
    await office.until(lambda: drawn(office)[-1:] == [[RunState.RUNNING, None]])
    await office.driver.stop(0)
    after = office.successor()
    await after.driver.recover()
    await after.until_state(turn, TurnState.DONE)
    await until_final(after, batch)
    assert drawn(after)[-1] == [RunState.MAY_HAVE_RUN, RunState.NOT_RUN]
    await after.driver.stop(0)


async def test_an_edit_that_failed_is_made_later_with_the_latest_state(office: Office) -> None:
    office.front.failures["refresh_card"].append(RuntimeError("Discord is down"))
    turn, batch, going = await accepted(office)
    for request in batch.requests:
        await start(office, turn, request)
        await end(office, turn, request)
    going.set()
    await until_final(office, batch)
    assert drawn(office)[-1] == [RunState.DONE, RunState.DONE]
