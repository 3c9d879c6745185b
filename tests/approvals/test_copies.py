"""A click on a copy of a card counts like one on the card, and a copy is bound to its channel and message."""

from __future__ import annotations

from dataclasses import replace

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import UnknownRequest
from signoff.approvals.model import Batch, CardCopy, Choice, RequestState
from signoff.approvals.notify import combined_notify, copy_channels, ways_of_card
from tests.conftest import ADA, PLACE, make_batch
from tests.rigs.desk import opened

OPS = "700000000000000009"
COPY = CardCopy(OPS, "55")


async def copied(desk: Desk) -> Batch:
    batch = make_batch(notify=(f"channel:{OPS}",))
    await opened(desk, batch)
    await desk.card_posted(batch.id, "44")
    current = await desk.copy_posted(batch.id, COPY)
    assert current is not None
    return current


def accept(batch: Batch, channel: str, message: str | None) -> Click:
    return Click(batch.id, Choice.ACCEPT, ADA, channel, message)


async def test_the_store_knows_the_copies_of_a_card(desk: Desk) -> None:
    batch = await copied(desk)
    assert batch.copies == (COPY,)
    assert await desk.find(batch.requests[0].id) == batch


async def test_a_click_on_a_copy_settles_the_request(desk: Desk) -> None:
    batch = await copied(desk)
    outcome = await desk.decide(accept(batch, *(OPS, "55")))
    assert outcome.batch.requests[0].state is RequestState.APPROVED
    assert (outcome.batch.card_message, outcome.batch.copies) == ("44", (COPY,))


@pytest.mark.parametrize(
    ("channel", "message"), [(OPS, "44"), (OPS, "56"), (PLACE.channel, "55"), ("700000000000000008", "55")]
)
async def test_another_message_or_channel_decides_nothing(desk: Desk, channel: str, message: str) -> None:
    batch = await copied(desk)
    with pytest.raises(UnknownRequest):
        await desk.decide(accept(batch, channel, message))


async def test_another_server_decides_nothing(desk: Desk) -> None:
    batch = await copied(desk)
    with pytest.raises(UnknownRequest):
        await desk.decide(replace(accept(batch, OPS, "55"), actor=replace(ADA, server="1")))


async def test_a_panel_that_was_opened_from_a_copy_decides(desk: Desk) -> None:
    batch = await copied(desk)
    assert (await desk.decide(accept(batch, OPS, None))).batch.settled


async def test_a_click_that_comes_before_the_copy_is_noted_notes_it(desk: Desk) -> None:
    batch = make_batch(notify=(f"channel:{OPS}",))
    await opened(desk, batch)
    await desk.look(batch.id, ADA, OPS, "55")
    current = await desk.find(batch.id)
    assert current is not None
    assert (current.copies, current.card_message) == ((COPY,), None)
    with pytest.raises(UnknownRequest):
        await desk.look(batch.id, ADA, OPS, "56")


async def test_a_card_without_an_approvals_channel_has_no_copy_there(desk: Desk) -> None:
    batch = make_batch()
    await opened(desk, batch)
    with pytest.raises(UnknownRequest):
        await desk.look(batch.id, ADA, OPS, "55")


async def test_a_late_copy_makes_the_card_unfinished_again(desk: Desk) -> None:
    batch = make_batch(notify=(f"channel:{OPS}",))
    await opened(desk, batch)
    await desk.card_posted(batch.id, "44")
    await desk.decide(accept(batch, PLACE.channel, "44"))
    await desk.mark_card_final(batch.id)
    current = await desk.copy_posted(batch.id, COPY)
    assert current is not None
    assert not current.card_final


async def test_deleted_copies_are_forgotten_and_the_request_stays_open(desk: Desk) -> None:
    first, second = await copied(desk), await copied(desk)
    assert await desk.copies_deleted(OPS, "77") == []
    (left,) = [b for b in await desk.copies_deleted(OPS, "55") if b.id == first.id]
    assert not left.settled
    again = await desk.find(second.id)
    assert again is not None
    assert again.copies == ()
    assert await desk.copies_deleted(OPS) == []


def test_a_card_is_announced_in_every_way_that_one_of_its_calls_asks_for() -> None:
    assert combined_notify([None, None]) is None
    assert combined_notify([None, ("none",), ("ping",), ("none",)]) == ("none", "ping")
    assert ways_of_card([("none",), ("ping",), ("dm", "ping"), None]) == ("ping", "dm")
    assert ways_of_card([None]) == ()


def test_the_conversations_own_channel_needs_no_copy() -> None:
    assert copy_channels(make_batch(notify=("ping", f"channel:{PLACE.channel}", "channel:5"))) == ("5",)
