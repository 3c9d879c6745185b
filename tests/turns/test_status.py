"""The status message of a run: when it appears, what it says, how it ends, and what a kill leaves of it."""

from __future__ import annotations

import asyncio

import pytest

from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.model import CallKey, Choice
from signoff.errors import StoreError, TurnFailed
from signoff.store import Store
from signoff.turns import status as status_module
from signoff.turns.model import Turn, TurnState, Waiting
from signoff.turns.pausing import Pausing
from signoff.turns.progress import RunStatus
from tests.conftest import ADA, MAX, HandClock, make_turn
from tests.rigs.driver_office import FINISH, Office, batch_of, in_thread

KEY, OTHER = CallKey("c", 1, "call_1"), CallKey("c", 1, "call_2")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_module, "APPEARS", 0.01)
    monkeypatch.setattr(status_module, "EVERY", 0.01)
    monkeypatch.setattr(status_module, "THINKS", 0.02)


async def working(office: Office, turn: Turn | None = None) -> tuple[Turn, asyncio.Event]:
    """Take a turn whose step works until the event is set, and wait for its status message."""
    turn, going = turn or in_thread(1), asyncio.Event()
    office.runner.script(turn, going)
    await office.take(turn)
    await office.until(lambda: turn.id in office.front.posted_statuses)
    await stored(office, turn, f"status {len(office.front.posted_statuses)}")
    return turn, going


async def stored(office: Office, turn: Turn, message: str | None) -> None:
    async def check() -> bool:
        current = await office.store.run(lambda tx: tx.turn(turn.id))
        return current is not None and current.status_message == message

    await office.until_true(check)


async def test_a_quick_run_gets_none(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_module, "APPEARS", 60.0)
    turn = in_thread(1)
    await office.take(turn)
    await office.until(lambda: office.front.replies)
    assert office.front.statuses == []
    assert office.front.replied_in == [None]


async def test_a_run_that_only_thinks_gets_one_later(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_module, "THINKS", 60.0)
    turn, going = in_thread(1), asyncio.Event()
    office.runner.script(turn, going)
    await office.take(turn)
    await office.until(lambda: turn.id in office.runner.progress)
    office.runner.progress[turn.id].thinking()
    await asyncio.sleep(0.05)
    assert office.front.statuses == []
    office.runner.progress[turn.id].started(KEY, "read_file")
    await office.until(lambda: office.front.statuses)
    going.set()
    await office.until(lambda: office.front.replied_in == ["status 1"])


async def test_it_says_what_ran_and_what_is_running_and_becomes_the_reply(office: Office) -> None:
    turn, going = await working(office)
    progress = office.runner.progress[turn.id]
    progress.started(KEY, "read_file")
    await office.until(lambda: office.front.statuses[-1].running == (("read_file", office.clock.at),))
    progress.ended(KEY)
    office.clock.at += 5
    progress.started(OTHER, "write_file")
    later = RunStatus(office.clock.at - 5, ("read_file",), (), (("write_file", office.clock.at),))
    await office.until(lambda: office.front.statuses[-1] == later)
    progress.ended(OTHER, failed=True)
    progress.thinking()
    await office.until(lambda: office.front.statuses[-1].failed == ("write_file",))
    assert office.front.statuses[-1].since == office.clock.at
    going.set()
    await office.until(lambda: office.front.replies)
    assert office.front.replied_in == ["status 1"]
    assert office.front.posted_statuses == [turn.id], "it is edited, not posted again"
    assert office.front.removed == []


async def test_a_call_that_was_withdrawn_did_not_run(office: Office) -> None:
    turn, going = await working(office)
    progress = office.runner.progress[turn.id]
    progress.started(KEY, "guarded")
    await office.until(lambda: office.front.statuses[-1].running)
    progress.withdrawn(KEY)
    await office.until(lambda: not office.front.statuses[-1].running)
    assert office.front.statuses[-1].ran == ()
    going.set()
    await office.until(lambda: office.front.replies)


async def test_it_shows_the_reply_while_the_model_writes(office: Office) -> None:
    turn, going = await working(office)
    progress = office.runner.progress[turn.id]
    for words in ("Once ", "upon ", "a time"):
        progress.writing(words)
    await office.until(lambda: office.front.statuses[-1].text == "Once upon a time")
    going.set()
    await office.until(lambda: office.front.replied_in == ["status 1"])


async def test_words_before_a_call_or_of_an_earlier_response_are_not_the_reply(office: Office) -> None:
    turn, going = await working(office)
    progress = office.runner.progress[turn.id]
    progress.writing("I will look.")
    progress.started(KEY, "read_file")
    await office.until(lambda: office.front.statuses[-1].running)
    assert office.front.statuses[-1].text == ""
    progress.ended(KEY)
    progress.writing("Hm. ")
    progress.thinking()
    progress.writing("Now")
    await office.until(lambda: office.front.statuses[-1].text == "Now")
    going.set()
    await office.until(lambda: office.front.replies)


async def test_a_run_that_writes_gets_one_sooner_than_a_run_that_thinks(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_module, "THINKS", 60.0)
    turn, going = in_thread(1), asyncio.Event()
    office.runner.script(turn, going)
    await office.take(turn)
    await office.until(lambda: turn.id in office.runner.progress)
    office.runner.progress[turn.id].writing("A long story")
    await office.until(lambda: [status.text for status in office.front.statuses] == ["A long story"])
    going.set()
    await office.until(lambda: office.front.replies)


async def test_edits_are_spaced_and_the_latest_wins(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_module, "EVERY", 0.2)
    turn, going = await working(office)
    progress = office.runner.progress[turn.id]
    for number in range(50):
        progress.started(KEY, f"tool_{number}")
        progress.ended(KEY)
        await asyncio.sleep(0)
    await office.until(lambda: len(office.front.statuses[-1].ran) == 50)
    assert len(office.front.statuses) < 10, "one for each 0.2 seconds, not one for each change"
    going.set()
    await office.until(lambda: office.front.replies)


async def test_a_step_that_waits_for_people_removes_it_and_the_next_step_posts_a_new_one(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    turn, going = await working(office, turn)
    office.runner.script(turn, Waiting(batch))
    going.set()
    await office.until(lambda: office.front.removed)
    await stored(office, turn, None)
    again = asyncio.Event()
    office.runner.script(turn, again, FINISH)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await stored(office, turn, "status 2")
    again.set()
    await office.until(lambda: office.front.replies)
    assert office.front.removed == ["status 1"]
    assert office.front.replied_in == ["status 2"]


async def test_it_stays_if_nobody_has_to_be_asked(store: Store, clock: HandClock) -> None:
    office = Office(store, clock, modes=Modes("auto_approve"))
    turn = in_thread(1)
    turn, going = await working(office, turn)
    again = asyncio.Event()
    office.runner.script(turn, Waiting(batch_of(turn)), again, FINISH)
    going.set()
    await office.until(lambda: office.runner.advanced.count(turn.id) == 2)
    again.set()
    await office.until(lambda: office.front.replies)
    assert office.front.removed == []
    assert office.front.replied_in == ["status 1"]
    await office.driver.stop(0)


async def test_a_message_on_its_way_when_the_run_ends_is_still_the_one_that_becomes_the_reply(office: Office) -> None:
    office.front.posting_status = asyncio.Event()
    turn, going = in_thread(1), asyncio.Event()
    office.runner.script(turn, going)
    await office.take(turn)
    await office.until(lambda: office.front.statuses)
    going.set()
    await office.until_state(turn, TurnState.DONE)
    await asyncio.sleep(0.02)
    assert office.front.replies == []
    office.front.posting_status.set()
    await office.until(lambda: office.front.replies)
    assert office.front.replied_in == ["status 1"]


async def test_a_status_that_cannot_be_shown_costs_neither_run_nor_reply(office: Office) -> None:
    office.front.failures["show_status"].append(TurnFailed("no permission"))
    turn, going = in_thread(1), asyncio.Event()
    office.runner.script(turn, going)
    await office.take(turn)
    await office.until(lambda: not office.front.failures["show_status"])
    going.set()
    await office.until(lambda: office.front.replies)
    assert office.front.replies == [(turn.id, "the answer")]
    assert office.front.replied_in == [None]


async def test_a_stopped_run_ends_in_its_status_message(office: Office, pausing: Pausing) -> None:
    turn, _ = await working(office)
    assert await pausing.stop_turn(MAX, turn.id)
    await office.until(lambda: office.front.replies)
    assert office.front.replied_in == ["status 1"]
    assert office.front.replies[0][1].startswith("Stopped by Max.")


# After a kill


async def killed(office: Office) -> Office:
    """Leave everything as it is in the store, as a kill does, and return the next process."""
    await office.driver.stop(0)
    return office.successor()


async def test_the_next_process_continues_the_same_message(office: Office) -> None:
    await working(office)
    after = await killed(office)
    await after.driver.recover()
    await after.until(lambda: after.front.replies)
    assert after.front.replied_in == ["status 1"]
    assert after.front.posted_statuses == []
    await after.driver.stop(0)


async def test_a_message_that_was_being_posted_is_asked_for_again_at_once(office: Office) -> None:
    turn = in_thread(1)
    await office.store.run(lambda tx: tx.insert_turn(turn))
    await office.store.run(lambda tx: tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING))
    await office.store.run(lambda tx: tx.set_status(turn.id, ""))
    going = asyncio.Event()
    office.runner.script(turn, going)
    status_module.APPEARS = 60.0  # `soon` restores it
    await office.driver.recover()
    await office.until(lambda: office.front.posted_statuses == [turn.id])
    going.set()
    await office.until(lambda: office.front.replies)
    assert office.front.replied_in == ["status 1"]


async def test_a_message_that_was_not_removed_is_removed_by_the_next_process(office: Office) -> None:
    turn = in_thread(1)
    await office.asked(turn, batch_of(turn))
    await office.store.run(lambda tx: tx.set_status(turn.id, "left"))
    after = await killed(office)
    after.front.failures["remove_status"].append(StoreError("Discord could not be reached"))
    await after.driver.recover()
    await after.until(lambda: after.front.removed == ["left"])
    await stored(after, turn, None)
    await after.driver.stop(0)


async def test_a_late_removal_does_not_forget_a_newer_message(store: Store) -> None:
    turn = make_turn()
    await store.run(lambda tx: tx.insert_turn(turn))
    await store.run(lambda tx: tx.set_status(turn.id, "newer"))
    await store.run(lambda tx: tx.clear_status(turn.id, "older"))
    current = await store.run(lambda tx: tx.turn(turn.id))
    assert current
    assert current.status_message == "newer"
    await store.run(lambda tx: tx.clear_status(turn.id, "newer"))
    current = await store.run(lambda tx: tx.turn(turn.id))
    assert current
    assert current.status_message is None
