"""Attacks 53 and 56: Discord refuses for good, or fails for a while, when a card or a reply is due."""

from __future__ import annotations

import asyncio

from signoff.approvals.clicks import Click
from signoff.approvals.model import CardCopy, Choice, RequestState
from signoff.errors import CardDelayed, CopiesRefused, NotDelivered, Undeliverable
from signoff.turns.model import Waiting
from tests.conftest import ADA
from tests.rigs.driver_office import FINISH, Office, batch_of, in_thread

BUSY = CardDelayed("Discord refused the message (status 429, code 0)")


async def test_a_delayed_card_is_posted_later_and_can_be_decided(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.failures["post_card"].extend([BUSY] * 20)
    await office.asked(turn, batch)
    assert office.front.cards == [batch.id]
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: office.front.replies)
    assert (await office.batch(batch)).requests[0].state is RequestState.APPROVED
    assert office.front.notices == []


async def test_a_card_that_is_delayed_past_its_deadline_expires_and_the_asker_is_told(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.failures["post_card"].extend([BUSY] * 100_000)
    office.runner.script(turn, Waiting(batch), FINISH)
    await office.take(turn)
    await office.until(lambda: len(office.front.failures["post_card"]) < 99_995)
    office.clock.at = batch.deadline
    await office.until(lambda: office.front.replies == [(turn.id, "the answer")] and office.front.notices)
    assert (await office.batch(batch)).requests[0].state is RequestState.EXPIRED
    (said,) = office.front.notices
    assert "expired before I could post its card" in said
    assert "status 429" in said
    assert office.front.cards == []
    left = len(office.front.failures["post_card"])
    await asyncio.sleep(0.1)
    assert len(office.front.failures["post_card"]) == left


async def test_a_delayed_card_is_not_posted_once_its_requests_were_cancelled(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    office.front.failures["post_card"].extend([BUSY] * 100_000)
    office.runner.script(turn, Waiting(batch), FINISH)
    await office.take(turn)
    await office.until(lambda: len(office.front.failures["post_card"]) < 99_995)
    await office.desk.cancel(batch.id, "an admin paused the server")
    await office.until(lambda: office.front.replies)
    left = len(office.front.failures["post_card"])
    await asyncio.sleep(0.1)
    assert len(office.front.failures["post_card"]) >= left - 1
    assert office.front.cards == []
    assert office.front.notices == []


async def test_a_reply_that_is_refused_for_good_is_tried_once_also_after_a_restart(office: Office) -> None:
    turn = in_thread(1)
    office.front.failures["reply"].extend([Undeliverable("I lack a permission there")] * 9)
    office.runner.script(turn, FINISH)
    await office.take(turn)
    await office.until(lambda: len(office.front.failures["reply"]) < 9)
    await asyncio.sleep(0.1)
    assert len(office.front.failures["reply"]) == 8
    assert await office.store.run(lambda tx: tx.unposted_replies()) == []
    kept = await office.store.run(lambda tx: tx.turn(turn.id))
    assert kept is not None
    assert kept.reply == "the answer"


async def test_a_reply_that_fails_for_a_while_is_tried_again(office: Office) -> None:
    turn = in_thread(1)
    office.front.failures["reply"].append(NotDelivered("Discord could not be reached"))
    office.runner.script(turn, FINISH)
    await office.take(turn)
    await office.until(lambda: office.front.replies == [(turn.id, "the answer")])


async def test_a_settled_card_that_may_not_be_changed_is_tried_once(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn)
    await office.asked(turn, batch)
    office.front.failures["refresh_card"].extend([Undeliverable("I lack a permission there")] * 9)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: len(office.front.failures["refresh_card"]) < 9)
    await asyncio.sleep(0.1)
    assert len(office.front.failures["refresh_card"]) == 8
    assert (await office.batch(batch)).card_final


async def test_a_copy_that_may_not_be_changed_is_dropped_and_the_card_goes_on(office: Office) -> None:
    turn = in_thread(1)
    batch = batch_of(turn, notify=("channel:7077", "channel:7078"))
    await office.asked(turn, batch)
    for message in ("77", "78"):
        await office.desk.copy_posted(batch.id, CardCopy(f"70{message}", message))
    office.front.failures["refresh_card"].append(CopiesRefused("I lack a permission there", [("7077", "77")]))
    done = asyncio.Event()
    office.runner.script(turn, done)
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel))
    await office.until(lambda: not office.front.failures["refresh_card"])

    async def is_dropped() -> bool:
        return (await office.batch(batch)).copies == (CardCopy("7078", "78"),)

    await office.until_true(is_dropped)
    assert not (await office.batch(batch)).card_final
    done.set()
    await office.until(lambda: office.front.refreshed)
