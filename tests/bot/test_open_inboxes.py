"""An open inbox is drawn anew when one of its cards is settled, as long as Discord allows it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from signoff.approvals.model import DIRECT, Actor, Batch, Place
from signoff.bot.inbox_view import Found, InboxView
from signoff.bot.open_inboxes import LIFE, MOST, OpenInboxes
from signoff.cards.actions import Offers
from signoff.cards.model import Line
from tests.rigs.bot_fakes import make_batch, make_request

NINA = Actor("9", "Nina", "1", roles=frozenset({"7"}), manages_server=True)


def batch() -> Batch:
    return make_batch(Place("1", "2", "2"), Actor("30", "Max", "1"), make_request({"path": "a"}))


def settled(one: Batch, **more: Any) -> dict[str, Any]:
    return {"request": one.requests[0].id, "tool": "delete_file", "state": "rejected", "by": "8", **more}


class Desk:
    """A list of open cards, a clock, and the edits that Discord got."""

    def __init__(self, *batches: Batch) -> None:
        self.time = 100.0
        self.batches: Sequence[Batch] = batches
        self.asked_for: list[Actor] = []
        self.edits: list[str] = []
        self.fails = False
        self.open = OpenInboxes(self.draw, lambda: self.time)

    async def draw(self, actor: Actor, page: int, said: Line) -> InboxView:
        await asyncio.sleep(0)
        self.asked_for.append(actor)
        return InboxView(Found(self.batches), self.time, Offers(), page, said)

    async def edit(self, *, view: InboxView, **more: Any) -> None:
        if self.fails:
            raise RuntimeError("the token has expired")
        self.edits.append(str(view.to_components()))

    def shows(self, actor: Actor = NINA) -> None:
        client = SimpleNamespace(is_closed=lambda: False)
        interaction = SimpleNamespace(edit_original_response=self.edit, client=client)
        self.open.note(cast("Any", interaction), actor, InboxView(Found(self.batches), self.time, Offers()))

    async def rest(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


async def test_the_list_is_drawn_anew_with_what_happened() -> None:
    one, other = batch(), batch()
    desk = Desk(one, other)
    desk.shows()
    desk.batches = [other]
    desk.open.settled(settled(one))
    await desk.rest()
    (edit,) = desk.edits
    assert "Just now: `delete_file` was rejected by <@8>" in edit
    assert "1 open card" in edit


async def test_rights_are_looked_up_anew() -> None:
    desk = Desk(one := batch())
    desk.shows()
    desk.open.settled(settled(one))
    await desk.rest()
    assert desk.asked_for == [Actor("9", "Nina", DIRECT)]


async def test_several_settled_calls_cost_one_edit() -> None:
    desk = Desk(one := batch())
    desk.shows()
    for _ in range(5):
        desk.open.settled(settled(one))
    await desk.rest()
    assert len(desk.edits) == 1
    desk.open.settled(settled(one, state="expired", by=None))
    await desk.rest()
    assert len(desk.edits) == 2
    assert "expired" in desk.edits[-1]


async def test_cards_that_the_list_does_not_show_change_nothing() -> None:
    desk = Desk(batch())
    desk.shows()
    desk.open.settled(settled(batch()))
    await desk.rest()
    assert desk.edits == []


async def test_nothing_is_drawn_over_the_response_to_a_press() -> None:
    desk = Desk(one := batch())
    desk.shows()
    desk.open.settled(settled(one))
    desk.open.forget(NINA.id)
    await desk.rest()
    assert desk.edits == []


async def test_after_the_time_that_discord_gives_nothing_is_tried() -> None:
    desk = Desk(one := batch())
    desk.shows()
    desk.time += LIFE
    desk.open.settled(settled(one))
    await desk.rest()
    assert (desk.edits, desk.asked_for) == ([], [])


async def test_an_edit_that_fails_is_not_tried_again() -> None:
    desk = Desk(one := batch())
    desk.fails = True
    desk.shows()
    desk.open.settled(settled(one))
    await desk.rest()
    desk.fails = False
    desk.open.settled(settled(one))
    await desk.rest()
    assert desk.edits == []


async def test_the_oldest_inbox_is_forgotten_first() -> None:
    desk = Desk(one := batch())
    for number in range(MOST + 1):
        desk.shows(Actor(str(number), "somebody", "1"))
    desk.open.settled(settled(one))
    await desk.rest()
    assert len(desk.edits) == MOST
    assert "0" not in {actor.id for actor in desk.asked_for}
