"""What fails on the way: the store, a step, a card. Nothing is lost or run twice, it is said, and all else goes on."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, Tool

from signoff.agent.runner import AgentRunner
from signoff.approvals.clicks import Click
from signoff.approvals.errors import Refused
from signoff.approvals.model import Batch, Choice, RequestKind, RequestState
from signoff.errors import StoreError
from signoff.store import Store
from signoff.turns import driver as driver_module
from signoff.turns import messages
from signoff.turns.model import HistoryEntry, Turn, TurnFile, TurnState, Waiting
from signoff.turns.pausing import Pausing
from tests.conftest import ADA, HandClock
from tests.rigs.driver_office import Office, batch_of, in_thread
from tests.rigs.scripted import Box, Script, calls

LOCKED = StoreError("The database failed and nothing of this step was kept: another program holds the database.")


class Failures:
    """Makes the store fail whatever is done inside of the named functions, so many times."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: Counter[str] = Counter()
        self._run = store.run
        monkeypatch.setattr(store, "run", self.run)

    async def run(self, work: Callable[[Any], Any]) -> Any:
        for name in self.left:
            if self.left[name] > 0 and name in work.__qualname__:
                self.left[name] -= 1
                raise LOCKED
        return await self._run(work)


@pytest.fixture
def failures(store: Store, monkeypatch: pytest.MonkeyPatch) -> Failures:
    return Failures(store, monkeypatch)


def with_agent(store: Store, clock: HandClock, script: Script, *tools: Tool) -> Office:
    return Office(store, clock, runner=AgentRunner(Agent(script.model(), tools=tools), store, clock))  # type: ignore[arg-type]


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.exc_info]


# Steps


async def test_a_step_that_the_store_failed_is_taken_again_and_nobody_needs_to_know(office: Office) -> None:
    turn, following = in_thread(1), in_thread(1)
    office.runner.script(turn, LOCKED, LOCKED)
    await office.take(turn)
    await office.take(following)
    await office.until(lambda: len(office.front.replies) == 2)
    assert office.front.replies == [(turn.id, "the answer"), (following.id, "the answer")]
    assert office.front.notices == []
    assert office.runner.advanced == [turn.id] * 3 + [following.id]


async def test_attempts_are_bounded_and_then_the_turn_ends_with_words_and_the_queue_goes_on(office: Office) -> None:
    turn, following = in_thread(1), in_thread(1)
    office.runner.script(turn, *[LOCKED] * 99)
    await office.take(turn)
    await office.take(following)
    await office.until(lambda: len(office.front.replies) == 2)
    assert office.front.replies == [(turn.id, messages.STORE_FAILED), (following.id, "the answer")]
    assert await office.state(turn) is TurnState.FAILED
    assert office.runner.advanced.count(turn.id) == len(driver_module.STEP_DELAYS)


async def test_a_store_that_takes_nothing_is_said_once_and_the_turn_ends_when_it_works_again(
    office: Office, failures: Failures
) -> None:
    turn, following = in_thread(1), in_thread(1)
    failures.left = Counter({"Driver._drive": 99, "Driver._end": 12})
    await office.take(turn)
    await office.take(following)
    await office.until(lambda: len(office.front.replies) == 2)
    assert office.front.notices == [messages.STORE_FAILS]
    assert office.front.replies == [(turn.id, messages.STORE_FAILED), (following.id, "the answer")]


async def test_what_a_step_came_to_is_reached_again_if_it_could_not_be_kept(office: Office, failures: Failures) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    failures.left = Counter({"Driver._wait_for_people": 1, "Driver._end": 1})
    office.runner.script(turn, Waiting(batch), Waiting(batch))
    await office.take(turn)
    await office.until(lambda: office.front.cards == [batch.id])
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: office.front.replies == [(turn.id, "the answer")])


async def test_a_tool_whose_end_the_store_did_not_take_is_not_run_again(
    store: Store, clock: HandClock, failures: Failures
) -> None:
    box = Box()
    office = with_agent(store, clock, Script([calls(("act", {"value": "x"})), "done"]), Tool(box.tool("act")))
    turn = in_thread(1)
    failures.left["Journal._end"] = 1
    await office.take(turn)
    await office.until(lambda: office.front.cards)
    batch = await office.store.run(lambda tx: tx.batch(office.front.cards[0]))
    assert batch
    assert batch.requests[0].kind is RequestKind.MAY_HAVE_RUN
    await office.desk.decide(Click(batch.id, Choice.RAN, ADA, turn.place.channel))
    await office.until(lambda: office.front.replies)
    assert box.ran == [("act", "x", None)]
    await office.driver.stop(0)


async def test_calls_left_open_by_a_turn_that_was_given_up_do_not_keep_the_next_mention_from_working(
    store: Store, clock: HandClock, failures: Failures
) -> None:
    box, script = Box(), Script([calls(("act", {"value": "x"})), "Hello again."])
    office = with_agent(store, clock, script, Tool(box.tool("act")))
    turn, following = in_thread(1), in_thread(1)
    failures.left["Journal.enter"] = len(driver_module.STEP_DELAYS)
    await office.take(turn)
    await office.take(following)
    await office.until(lambda: len(office.front.replies) == 2)
    assert [text.strip() for _, text in office.front.replies] == [messages.STORE_FAILED, "Hello again."]
    assert box.ran == []
    assert len(script.asked) == 2, "the answer with the call was not asked for again"
    await office.driver.stop(0)


async def test_a_message_that_this_version_cannot_read_ends_the_turn_with_words(
    store: Store, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    office = with_agent(store, clock, Script(["done"]))
    turn, elsewhere = in_thread(1), in_thread(2)
    newer = HistoryEntry(0, b'[{"kind":"request","parts":[{"part_kind":"from-a-newer-version"}]}]')
    await store.run(lambda tx: tx.save_history(turn.place.conversation, [newer]))
    await office.take(turn)
    await office.until(lambda: office.front.replies)
    (reply,) = office.front.replies
    assert reply[0] == turn.id
    assert "Completed calls are kept. Mention me again" in reply[1]
    assert await office.state(turn) is TurnState.FAILED
    assert len(tracebacks(caplog)) == 1
    await office.take(elsewhere)
    await office.until_state(elsewhere, TurnState.DONE)
    await office.driver.stop(0)


@pytest.mark.parametrize("where", ["advance", "working"])
async def test_whatever_else_fails_in_a_step_ends_its_turn_and_the_queue_goes_on(office: Office, where: str) -> None:
    turn, following = in_thread(1), in_thread(1)
    office.runner.script(turn, RuntimeError("a secret in here")) if where == "advance" else None
    working = office.front.working

    def broken(of: Any) -> Any:
        if of.id == turn.id and where == "working":
            raise RuntimeError("a secret in here")
        return working(of)

    office.front.working = broken  # type: ignore[method-assign]
    await office.take(turn)
    await office.take(following)
    await office.until(lambda: len(office.front.replies) == 2)
    assert office.front.replies[1] == (following.id, "the answer")
    assert "(RuntimeError)" in office.front.replies[0][1]
    assert "secret" not in office.front.replies[0][1]


async def put_off(office: Office, monkeypatch: pytest.MonkeyPatch) -> Turn:
    """A turn whose first attempt failed, and whose next one is a minute away."""
    monkeypatch.setattr(driver_module, "STEP_DELAYS", (60.0,))
    turn = in_thread(1)
    office.runner.script(turn, LOCKED)
    await office.take(turn)
    await office.until(lambda: office.runner.advanced)
    return turn


async def test_a_turn_that_waits_for_its_next_attempt_can_be_stopped(
    office: Office, pausing: Pausing, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await put_off(office, monkeypatch)
    assert await pausing.stop(ADA, turn.place.conversation) == 1
    await office.until(lambda: office.front.replies)
    assert await office.state(turn) is TurnState.STOPPED
    assert office.driver._steps == {}


async def test_a_turn_that_waits_for_its_next_attempt_is_left_to_the_next_start(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await put_off(office, monkeypatch)
    await office.driver.stop(0)
    assert await office.state(turn) is TurnState.RUNNING
    following = office.successor()
    await following.driver.recover()
    await following.until(lambda: following.front.replies == [(turn.id, "the answer")])
    await following.driver.stop(0)


async def test_a_turn_that_the_store_did_not_let_start_is_started_by_the_sweeper(
    office: Office, failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "SWEEP_AT_LEAST", 0.05)
    await office.driver.recover()
    turn = replace(in_thread(1), files=(TurnFile("notes.txt", 1, "text/plain", b"x"),))
    await office.driver.submit(turn)
    failures.left["Driver._start_queued"] = 1
    with pytest.raises(StoreError):
        await office.driver.go(turn.id)
    await office.until_state(turn, TurnState.DONE)


async def test_a_decision_that_woke_nobody_is_taken_up_by_the_sweeper(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office.desk, "_wake", lambda *_: None)  # as if the click's task had been cancelled
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.driver.recover()
    await office.asked(turn, batch)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    assert await office.state(turn) is TurnState.RUNNING
    for _ in range(3):
        office.driver._sweep_now.set()
        await asyncio.sleep(0.05)
    assert len(office.runner.advanced) == 1, "a turn that was just claimed is left alone"
    office.clock.at += driver_module.STRAY
    office.driver._sweep_now.set()
    await office.until_state(turn, TurnState.DONE)
    assert len(office.runner.advanced) == 2


async def test_a_turn_whose_batch_expired_goes_on_though_the_store_failed(office: Office, failures: Failures) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.driver.recover()
    await office.asked(turn, batch)
    failures.left["Driver._continue"] = 3
    await office.desk.cancel(batch.id, "the card was deleted")
    for _ in range(300):
        office.driver._sweep_now.set()
        await asyncio.sleep(0.01)
        if await office.state(turn) is TurnState.DONE:
            break
    assert await office.state(turn) is TurnState.DONE


# Cards and replies


async def test_a_card_that_cannot_be_made_at_all_cancels_and_is_said(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.failures["post_card"].append(RuntimeError("a secret in here"))
    office.runner.script(turn, Waiting(batch))
    await office.take(turn)
    await office.until(lambda: office.front.replies == [(turn.id, "the answer")])
    assert (await office.batch(batch)).requests[0].state is RequestState.CANCELLED
    assert office.front.notices == [messages.not_asked("something failed on my side (RuntimeError)")]
    assert len(tracebacks(caplog)) == 1


async def test_a_card_that_nobody_sees_is_cancelled_though_the_store_failed_once(
    office: Office, failures: Failures
) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    failures.left["Desk.cancel"] = 1
    office.front.failures["post_card"].append(RuntimeError("no"))
    office.runner.script(turn, Waiting(batch))
    await office.take(turn)
    await office.until(lambda: office.front.replies)
    assert len(office.front.notices) == 1


async def test_a_posted_card_is_noted_though_the_store_failed_once(office: Office, failures: Failures) -> None:
    turn = in_thread(1)
    failures.left["Desk.card_posted"] = 1
    await office.asked(turn, batch_of(turn))
    assert len(office.front.cards) == 1


async def test_a_card_whose_end_failed_in_an_unforeseen_way_shows_it_later(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    office.front.failures["refresh_card"].extend([RuntimeError("no"), KeyError("no")])
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: office.front.refreshed)

    async def final() -> bool:
        return (await office.batch(batch)).card_final

    await office.until_true(final)


async def test_a_card_whose_end_cannot_be_shown_is_one_line_with_its_reason(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    office.front.failures["refresh_card"].extend([RuntimeError("no")] * 3)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: tracebacks(caplog))
    await office.until_state(turn, TurnState.DONE)
    assert len(tracebacks(caplog)) == 1


async def test_a_reply_that_was_posted_but_not_noted_is_noted_later(office: Office, failures: Failures) -> None:
    turn = in_thread(1)
    failures.left["Delivery.reply"] = 1
    await office.take(turn)

    async def noted() -> bool:
        found = await office.store.run(lambda tx: tx.turn(turn.id))
        return bool(found and found.reply_posted)

    await office.until_true(noted)


# Cards that are posted again


async def test_a_card_that_is_posted_again_counts_before_the_old_one_is_emptied(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    later, old = f"later card of {batch.id}", f"card of {batch.id}"
    emptied: list[str | None] = []

    async def retire_card(shown: Batch) -> None:
        await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel, later))
        emptied.append(shown.card_message)

    office.front.retire_card = retire_card  # type: ignore[method-assign]
    assert await office.driver.repost(batch.id)
    assert emptied == [old]
    await office.until_state(turn, TurnState.DONE)


@pytest.mark.parametrize("ending", [RuntimeError("no"), asyncio.CancelledError()], ids=["failed", "killed"])
async def test_the_new_card_counts_whatever_becomes_of_the_old_one(office: Office, ending: BaseException) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    office.front.failures["retire_card"].append(ending)
    await asyncio.wait({asyncio.ensure_future(office.driver.repost(batch.id))})
    assert (await office.batch(batch)).card_message == f"later card of {batch.id}"


async def test_a_card_is_not_posted_again_while_it_is_posted(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.posting = asyncio.Event()
    office.runner.script(turn, Waiting(batch))
    await office.take(turn)
    await office.until(lambda: office.front.cards)
    with pytest.raises(Refused, match="still being posted"):
        await office.driver.repost(batch.id)
    office.front.posting.set()

    async def noted() -> bool:
        return (await office.batch(batch)).card_message is not None

    await office.until_true(noted)
    assert office.front.cards == [batch.id]
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel, f"card of {batch.id}"))
