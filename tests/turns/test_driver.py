"""The driver with a real store and desk: what starts, what waits, what is said, and what the next process takes up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import AlreadySettled
from signoff.approvals.model import Choice, Place, RequestState
from signoff.errors import CardFailed, StoreError, TurnFailed
from signoff.store import Store
from signoff.turns import delivery as delivery_module
from signoff.turns.driver import QueueLimits
from signoff.turns.model import Finished, HistoryEntry, Step, Turn, TurnState, Waiting
from signoff.turns.ports import Progress
from tests.conftest import ADA, MAX, OLGA, SERVER, HandClock, make_turn
from tests.rigs.driver_office import FINISH, Office, batch_of, in_thread

# Taking turns in


async def test_a_turn_does_not_run_before_it_is_told_to(office: Office) -> None:
    held, other = in_thread(1), in_thread(2)
    assert (await office.driver.submit(held)).kind == "started"
    await office.take(other)
    await office.until(lambda: office.front.replies == [(other.id, "the answer")])
    assert office.runner.advanced == [other.id]
    await office.driver.go(held.id)
    await office.until_state(held, TurnState.DONE)


async def test_the_same_message_again_is_the_same_turn(office: Office) -> None:
    turn = in_thread(1)
    assert await office.take(turn) == "started"
    await office.until_state(turn, TurnState.DONE)
    assert await office.take(turn) == "duplicate"
    assert (await office.driver.submit(replace(turn, text="changed"))).kind == "duplicate"
    assert office.runner.advanced == [turn.id]
    assert office.front.replies == [(turn.id, "the answer")]


async def test_a_conversation_has_one_turn_under_way_and_the_others_follow_in_order(office: Office) -> None:
    going = asyncio.Event()
    turns = [in_thread(1) for _ in range(3)]
    office.runner.script(turns[0], going, FINISH)
    assert [await office.take(turn) for turn in turns] == ["started", "queued", "queued"]
    await office.until(lambda: office.runner.advanced)
    assert office.runner.advanced == [turns[0].id]
    going.set()
    await office.until_state(turns[2], TurnState.DONE)
    assert office.runner.advanced == [turn.id for turn in turns]


async def test_a_mention_during_a_wait_is_told_how_many_are_before_it(office: Office) -> None:
    first, second, third = (in_thread(1) for _ in range(3))
    await office.asked(first, batch_of(first))
    admission = await office.driver.submit(second)
    assert (admission.kind, admission.text) == ("queued", "Queued: 1 before it in this conversation.")
    assert (await office.driver.submit(third)).text == "Queued: 2 before it in this conversation."


async def test_three_turns_of_a_person_are_under_way_and_others_are_not_kept_waiting(office: Office) -> None:
    going = asyncio.Event()
    turns = [in_thread(number) for number in range(8)]
    for turn in turns:
        office.runner.script(turn, going, FINISH)
    assert [await office.take(turn) for turn in turns] == ["started"] * 3 + ["queued"] * 5
    refused = await office.driver.submit(in_thread(9))
    assert refused.kind == "refused"
    assert "did not take" in refused.text
    assert (await office.driver.submit(turns[0])).kind == "duplicate", "it was taken"
    other = in_thread(10, asker=OLGA)
    assert await office.take(other) == "started"
    await office.until_state(other, TurnState.DONE)
    assert len(await office.store.run(lambda tx: tx.turns_in(TurnState.RUNNING))) == 3
    going.set()
    for turn in turns:
        await office.until_state(turn, TurnState.DONE)
    assert office.runner.most_at_once[MAX.id] == 3


async def test_a_promised_start_is_not_given_to_a_turn_whose_thread_was_quicker(office: Office) -> None:
    turns = [make_turn(place=Place(SERVER, f"p{n}", f"p{n}")) for n in range(4)]
    for turn in turns:
        office.runner.script(turn, asyncio.Event())
    assert [(await office.driver.submit(turn)).kind for turn in turns] == ["started"] * 3 + ["queued"]
    await office.driver.go(turns[3].id)
    for turn in turns[:3]:
        await office.driver.go(turn.id)
    await office.until(lambda: len(office.runner.advanced) >= 3)
    assert sorted(office.runner.advanced) == sorted(turn.id for turn in turns[:3])


async def test_a_replayed_event_does_not_release_a_turn_that_is_not_ready(office: Office) -> None:
    turn = make_turn()
    await office.driver.submit(turn)
    assert (await office.driver.submit(turn)).kind == "duplicate"
    await office.driver.go("another")
    assert office.runner.advanced == []


async def test_a_flood_gets_as_many_places_whether_it_comes_at_once_or_one_by_one(office: Office) -> None:
    going = asyncio.Event()
    turns = [in_thread(number) for number in range(12)]
    for turn in turns:
        office.runner.script(turn, going, FINISH)
    admissions = await asyncio.gather(*(office.driver.submit(turn) for turn in turns))
    assert [a.kind for a in admissions] == ["started"] * 3 + ["queued"] * 5 + ["refused"] * 4
    for turn, admission in zip(turns, admissions, strict=True):
        if admission.kind != "refused":
            await office.driver.go(turn.id)
    going.set()
    for turn in turns[:8]:
        await office.until_state(turn, TurnState.DONE)
    assert office.runner.most_at_once[MAX.id] == 3
    assert await office.state(turns[11]) is None


async def test_a_conversation_is_refused_more_than_its_queue_holds(office: Office) -> None:
    first = in_thread(1)
    await office.asked(first, batch_of(first))
    people = [replace(MAX, id=str(number)) for number in range(1, 7)]
    kinds = [(await office.driver.submit(in_thread(1, asker=person))).kind for person in people]
    assert kinds == ["queued"] * 5 + ["refused"]


async def test_a_store_that_fails_leaves_nothing_held(store: Store, clock: HandClock) -> None:
    class Failing(Store):
        def __init__(self) -> None:
            pass

        async def run(self, work: Callable[[Any], Any]) -> Any:
            raise StoreError("the disk is full")

    office = Office(store, clock)
    office.driver.store = Failing()
    turn = in_thread(1)
    with pytest.raises(StoreError):
        await office.driver.submit(turn)
    office.driver.store = store
    assert await office.take(turn) == "started"
    await office.until_state(turn, TurnState.DONE)


# Rounds and decisions


async def test_a_decision_takes_the_turn_to_its_next_step(office: Office) -> None:
    turn = in_thread(1)
    first, second = batch_of(turn), batch_of(turn)
    office.runner.script(turn, Waiting(first), Waiting(second), Finished("the answer", (HistoryEntry(0, b"[]"),)))
    await office.take(turn)
    for number, batch in enumerate((first, second), start=1):
        await office.until(lambda number=number: len(office.front.cards) == number)
        await office.until_state(turn, TurnState.WAITING)
        await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: office.front.replies == [(turn.id, "the answer")])
    stored = await office.store.run(lambda tx: tx.turn(turn.id))
    assert stored is not None
    assert (stored.state, stored.rounds, stored.reply) == (TurnState.DONE, 2, "the answer")
    history = await office.store.run(lambda tx: tx.history(turn.place.conversation))
    assert [entry.position for entry in history] == [0]


async def test_the_reply_is_posted_for_the_rounds_that_there_were(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    seen: list[int] = []
    posting = office.front.reply

    async def reply(turn: Turn, text: str) -> None:
        seen.append(turn.rounds)
        await posting(turn, text)

    office.front.reply = reply
    await office.asked(turn, batch)
    await office.desk.decide(Click(batch.id, Choice.REJECT, ADA, turn.place.channel))
    await office.until(lambda: seen)
    assert seen == [1]


async def test_a_batch_that_a_mode_settles_needs_no_card(store: Store, clock: HandClock) -> None:
    office = Office(store, clock, modes=Modes("auto_deny"))
    turn = in_thread(1)
    office.runner.script(turn, Waiting(batch_of(turn)), FINISH)
    await office.take(turn)
    await office.until_state(turn, TurnState.DONE)
    assert office.front.cards == []
    await office.driver.stop(0)


async def test_two_racing_resumes_advance_once(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    going = asyncio.Event()
    await office.asked(turn, batch)
    office.runner.script(turn, going, FINISH)
    other = Office(office.store, office.clock, runner=office.runner, front=office.front)
    settled = await office.desk.cancel(batch.id, "the card was deleted")  # a click would have claimed the turn already
    assert settled
    for _ in range(5):
        office.desk.unattended.put_nowait(settled)
        other.desk.unattended.put_nowait(settled)
    await asyncio.gather(office.driver.recover(), other.driver.recover())
    going.set()
    await office.until(lambda: office.front.replies)
    assert office.desk.unattended.empty()
    assert other.desk.unattended.empty()
    await other.driver.stop(0)
    assert office.runner.advanced == [turn.id, turn.id]
    assert office.front.replies == [(turn.id, "the answer")]


async def test_a_card_that_the_click_did_not_update_is_updated(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: office.front.refreshed)
    assert office.front.refreshed[0].requests[0].state is RequestState.APPROVED


async def test_a_card_that_the_click_did_update_is_left_alone(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.desk.mark_card_final(batch.id)
    await office.until(lambda: office.front.replies)
    await asyncio.sleep(3 * delivery_module.CLICK_GRACE)
    assert office.front.refreshed == []


# What fails


async def test_a_card_that_cannot_be_posted_cancels_and_is_said(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.failures["post_card"].append(CardFailed("the thread is locked"))
    office.runner.script(turn, Waiting(batch), FINISH)
    await office.take(turn)
    await office.until(lambda: office.front.replies == [(turn.id, "the answer")])
    assert (await office.batch(batch)).requests[0].state is RequestState.CANCELLED
    (said,) = office.front.notices
    assert "the thread is locked" in said
    assert "The calls that needed it were not run" in said
    assert office.front.refreshed == []


async def test_a_card_that_is_there_only_after_its_deadline_shows_that(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.posting = asyncio.Event()
    office.runner.script(turn, Waiting(batch), FINISH)
    await office.take(turn)
    await office.until(lambda: office.front.cards)
    office.clock.at = batch.deadline
    await office.desk.expire_due()
    await office.until(lambda: office.front.replies)
    office.front.posting.set()
    await office.until(lambda: office.front.refreshed)
    assert office.front.refreshed[-1].requests[0].state is RequestState.EXPIRED
    assert office.front.refreshed[-1].card_message


async def test_a_card_whose_last_change_failed_is_changed_later(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    office.front.failures["refresh_card"].append(StoreError("Discord could not be reached"))
    office.clock.at = batch.deadline
    await office.desk.expire_due()
    await office.until(lambda: office.front.replies)
    await office.until(lambda: office.front.refreshed)
    assert (await office.batch(batch)).card_final


async def test_a_failed_run_is_answered_with_its_words(office: Office) -> None:
    turn, following = in_thread(1), in_thread(1)
    office.runner.script(turn, TurnFailed("The model could not answer."))
    await office.take(turn)
    await office.take(following)
    await office.until(lambda: len(office.front.replies) == 2)
    assert dict(office.front.replies) == {turn.id: "The model could not answer.", following.id: "the answer"}
    assert await office.state(turn) is TurnState.FAILED


async def test_the_next_turn_of_a_conversation_answers_after_the_one_before_it(office: Office) -> None:
    turn, following = in_thread(1), in_thread(1)
    posting, posted = office.front.reply, asyncio.Event()

    first = turn.id

    async def reply(turn: Turn, text: str) -> None:
        if turn.id == first:
            await posted.wait()
        await posting(turn, text)

    office.front.reply = reply
    both_there = asyncio.Event()
    office.runner.script(turn, both_there, FINISH)
    await office.take(turn)
    assert await office.take(following) == "queued"
    both_there.set()
    await office.until_state(turn, TurnState.DONE)
    await asyncio.sleep(0.05)
    posted.set()
    await office.until(lambda: len(office.front.replies) == 2)
    assert [replied for replied, _ in office.front.replies] == [turn.id, following.id]


async def test_a_reply_is_tried_three_times_kept_and_posted_by_the_next_start(office: Office) -> None:
    turn, unlucky = in_thread(1), in_thread(2)
    office.front.failures["reply"].extend([ConnectionError("no route")] * 2)
    await office.take(turn)
    await office.until(lambda: office.front.replies == [(turn.id, "the answer")])
    office.front.failures["reply"].extend([ConnectionError("no route")] * 3)
    await office.take(unlucky)
    await office.until_state(unlucky, TurnState.DONE)
    await office.until(lambda: not office.front.failures["reply"])
    following = office.successor()
    await following.driver.recover()
    await following.until(lambda: following.front.replies)
    assert following.front.replies == [(unlucky.id, "the answer")]
    assert following.runner.advanced == []
    await following.driver.stop(0)
    last = office.successor()
    await last.driver.recover()
    await last.driver.stop(0)
    assert last.front.replies == []


async def test_a_failing_subscriber_or_notice_ends_nothing(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.failures["post_card"].append(CardFailed("gone"))
    office.front.failures["notice"].append(ConnectionError("gone as well"))
    office.runner.script(turn, Waiting(batch), FINISH)
    await office.take(turn)
    await office.until(lambda: office.front.replies)
    assert await office.state(turn) is TurnState.DONE


# The next start


async def test_recovery_takes_up_every_state_and_leaves_alone_what_needs_nothing(
    store: Store, clock: HandClock
) -> None:
    def stored(number: int, state: TurnState, **fields: Any) -> Turn:
        return in_thread(number, state=state, **fields)

    queued = stored(1, TurnState.QUEUED)
    running = stored(2, TurnState.RUNNING, asker=OLGA)
    decided, unshown, shown, stale = (stored(n, TurnState.WAITING) for n in (3, 4, 5, 6))
    unposted = stored(7, TurnState.DONE, reply="kept reply")
    failed = stored(8, TurnState.FAILED, reply="kept failure")
    posted = stored(9, TurnState.DONE, reply="old", reply_posted=True)
    stopped = stored(10, TurnState.STOPPED, reply="Stopped by Ada.", reply_posted=True)
    batches = {turn.id: batch_of(turn) for turn in (decided, unshown, shown, stale)}
    desk = Desk(store, clock)

    def write(tx: Any) -> None:
        for turn in (queued, running, decided, unshown, shown, stale, unposted, failed, posted, stopped):
            tx.insert_turn(turn)
        for turn_id, batch in batches.items():
            desk.open(tx, batch)
            tx.await_batch(turn_id, batch.id)
        for turn in (shown, stale, decided):
            tx.set_card(batches[turn.id].id, f"card of {batches[turn.id].id}")

    await store.run(write)
    for turn in (decided, stale):
        await desk.decide(Click(batches[turn.id].id, Choice.ACCEPT, ADA, turn.place.channel))
    await desk.mark_card_final(batches[decided.id].id)
    office = Office(store, clock, limits=QueueLimits(per_person=9))
    await office.driver.recover()
    for turn in (queued, running, decided, stale):
        await office.until_state(turn, TurnState.DONE)
    await office.until(lambda: len(office.front.replies) == 6)
    await office.until(lambda: office.front.refreshed)
    assert sorted(office.runner.advanced) == sorted(t.id for t in (queued, running, decided, stale))
    assert office.front.cards == [batches[unshown.id].id]
    assert [batch.turn for batch in office.front.refreshed] == [stale.id]
    assert {(unposted.id, "kept reply"), (failed.id, "kept failure")} < set(office.front.replies)
    assert posted.id not in dict(office.front.replies)
    assert [await office.state(turn) for turn in (unshown, shown, stopped)] == [
        TurnState.WAITING,
        TurnState.WAITING,
        TurnState.STOPPED,
    ]
    await office.desk.decide(Click(batches[shown.id].id, Choice.REJECT, ADA, shown.place.channel))
    await office.until_state(shown, TurnState.DONE)
    await office.driver.stop(0)


async def test_a_batch_opened_by_the_process_before_wakes_its_turn(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    await office.driver.stop(0)
    following = office.successor()
    await following.driver.recover()
    assert following.front.cards == []
    await following.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await following.until(lambda: following.front.replies == [(turn.id, "the answer")])
    assert office.runner.advanced == [turn.id]
    await following.driver.stop(0)


# Deadlines


async def test_a_deadline_that_passed_before_the_start_is_settled_at_once(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    await office.driver.stop(0)
    office.clock.at = batch.deadline + 1
    following = office.successor()
    await following.driver.recover()
    await following.until(lambda: following.front.replies and following.front.refreshed)
    assert following.front.refreshed[0].requests[0].state is RequestState.EXPIRED
    with pytest.raises(AlreadySettled):
        await following.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await following.driver.stop(0)


async def test_the_sweeper_wakes_at_the_earliest_deadline(office: Office) -> None:
    await office.driver.recover()
    late, soon = in_thread(1), in_thread(2)
    late_batch, soon_batch = batch_of(late), batch_of(soon, deadline=office.clock.at + 0.05)
    await office.asked(late, late_batch)
    await office.asked(soon, soon_batch)
    assert not (await office.batch(soon_batch)).settled
    office.clock.at += 0.05
    await office.until_state(soon, TurnState.DONE)
    assert (await office.batch(soon_batch)).requests[0].state is RequestState.EXPIRED
    assert not (await office.batch(late_batch)).settled
    await office.until(lambda: [b.id for b in office.front.refreshed] == [soon_batch.id])


async def test_the_sweeper_survives_a_store_that_fails_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    expire, failures = office.desk.expire_due, [StoreError("locked")]

    async def expire_due() -> Any:
        if failures:
            raise failures.pop()
        return await expire()

    monkeypatch.setattr(office.desk, "expire_due", expire_due)
    await office.driver.recover()
    await office.until(lambda: not failures)
    turn = in_thread(1)
    batch = batch_of(turn, deadline=office.clock.at)
    office.runner.script(turn, Waiting(batch), FINISH)
    await office.take(turn)
    await office.until_state(turn, TurnState.DONE)


# Leaving


async def test_stop_gives_tools_their_time_takes_nothing_new_and_leaves_the_rest(office: Office) -> None:
    await office.driver.recover()
    running, waiting, later = in_thread(1), in_thread(2), in_thread(3)
    batch = batch_of(waiting)
    office.runner.script(running, asyncio.Event())
    await office.take(running)
    await office.asked(waiting, batch)
    await office.driver.stop(7.5)
    assert office.runner.quiesced == [7.5]
    before = list(office.runner.advanced)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, waiting.place.channel))
    await office.take(later)
    await asyncio.sleep(0.02)
    assert office.runner.advanced == before
    assert [await office.state(t) for t in (running, waiting, later)] == [
        TurnState.RUNNING,
        TurnState.WAITING,
        TurnState.QUEUED,
    ]
    following = office.successor()
    await following.driver.recover()
    for turn in (running, waiting, later):
        await following.until_state(turn, TurnState.DONE)
    await following.driver.stop(0)


async def test_a_front_end_that_is_closed_costs_neither_card_nor_reply(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    asking, answered = in_thread(1), in_thread(2)
    batch = batch_of(asking)
    for what in ("post_card", "reply"):
        office.front.failures[what].append(asyncio.CancelledError())
    office.runner.script(asking, Waiting(batch))
    await office.take(asking)
    await office.take(answered)
    await office.until(lambda: not any(office.front.failures.values()))
    await office.driver.stop(0)
    assert caplog.records == []
    assert (office.front.cards, office.front.replies) == ([], [])
    following = office.successor()
    await following.driver.recover()
    await following.until(lambda: following.front.replies and following.front.cards)
    assert following.front.replies == [(answered.id, "the answer")]
    assert following.front.cards == [batch.id]
    assert not (await following.batch(batch)).settled
    await following.driver.stop(0)


async def test_stop_does_not_wait_for_a_step_that_will_not_be_cancelled(office: Office) -> None:
    stubborn, entered = asyncio.Event(), asyncio.Event()

    async def advance(turn: Turn, progress: Progress | None = None, given: object = None) -> Step:
        entered.set()
        while not stubborn.is_set():
            try:
                await stubborn.wait()
            except asyncio.CancelledError:
                continue
        return FINISH

    office.runner.advance = advance
    await office.take(in_thread(1))
    await entered.wait()
    try:
        await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(office.driver.stop(0))), 4)
    finally:
        stubborn.set()
