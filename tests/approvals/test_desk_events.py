"""Every decision, by a person or automatic, is one `tool_approval` event for each call."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from signoff.approvals.automatic import Modes
from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import AlreadySettled
from signoff.approvals.events import FAILED, aside
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Choice, Remember
from signoff.store import Store
from tests.conftest import ADA, PLACE, HandClock, make_batch, make_call, make_request
from tests.rigs.desk import opened
from tests.rigs.people import BY_ROLE, HandDirectory

Events = list[dict[str, Any]]


@pytest.fixture
def events() -> Events:
    return []


@pytest.fixture
def desk(store: Store, clock: HandClock, events: Events) -> Desk:
    directory = HandDirectory()
    return Desk(store, clock, grants=GrantTerms(Remember.SESSION), directory=directory, subscribers=[events.append])


def told(events: Events) -> list[tuple[str, str | None, str]]:
    return [(event["state"], event["by"], event["note"] or event["state"]) for event in events]


@pytest.mark.parametrize(
    ("modes", "fields", "expected"),
    [
        (Modes("auto_approve"), {}, ("approved", None, "mode auto_approve")),
        (Modes("auto_deny"), {}, ("rejected", None, "mode auto_deny")),
        (Modes(), {"approvers": ()}, ("rejected", None, "nobody may decide this request")),
        (Modes(on_no_approver="approve"), {"approvers": ()}, ("approved", None, "nobody may decide this request")),
    ],
    ids=["auto_approve", "auto_deny", "nobody", "approved without"],
)
async def test_what_is_settled_without_people_is_an_event(
    desk: Desk, events: Events, modes: Modes, fields: dict[str, Any], expected: tuple[str, str | None, str]
) -> None:
    desk.modes = modes
    await opened(desk, make_batch(make_request(**fields)))
    assert told(events) == [expected]


async def test_what_a_grant_settles_is_an_event_of_its_own(desk: Desk, events: Events) -> None:
    first, again = (make_batch(make_request(make_call("delete_file", {"path": "a"}))) for _ in range(2))
    await opened(desk, first)
    await desk.decide(Click(first.id, Choice.ACCEPT, ADA, PLACE.channel, remember=Remember.SESSION))
    await opened(desk, again)
    (person, grant) = told(events)
    assert person == ("approved", ADA.id, "approved")
    assert grant[:2] == ("approved", None)
    assert grant[2].startswith("remembered: grant ")
    assert [event["how"] for event in events] == ["ui", "memory"]


async def test_a_deadline_is_an_event_whether_the_clock_or_a_late_click_finds_it(
    desk: Desk, events: Events, clock: HandClock
) -> None:
    swept, clicked = make_batch(), make_batch()
    await opened(desk, swept)
    clock.at = swept.deadline
    await desk.expire_due()
    assert told(events) == [("expired", None, "expired")]
    await opened(desk, clicked)  # its deadline has passed too, but no sweep has run since
    with pytest.raises(AlreadySettled):
        await desk.decide(Click(clicked.id, Choice.ACCEPT, ADA, PLACE.channel))
    await asyncio.sleep(0.01)  # the click gets its response first
    assert told(events) == [("expired", None, "expired")] * 2
    assert await desk.expire_due() == []
    assert len(events) == 2


async def test_what_is_cancelled_and_what_lost_its_approvers_are_events(desk: Desk, events: Events) -> None:
    lost, orphaned = make_batch(), make_batch(make_request(approvers=BY_ROLE))
    await opened(desk, lost)
    await opened(desk, orphaned)
    await desk.cancel(lost.id, "its channel is gone")
    assert isinstance(desk.directory, HandDirectory)
    desk.directory.gone = set(BY_ROLE)
    await desk.recheck_approvers()
    assert told(events) == [
        ("cancelled", None, "its channel is gone"),
        ("rejected", None, "nobody may decide this request"),
    ]
    assert [event["how"] for event in events] == ["cancelled", "no_approver"]


async def test_a_slow_or_broken_listener_holds_up_no_decision_and_misses_none(
    store: Store, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    going_on, done, heard = threading.Event(), asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def slow(event: dict[str, Any]) -> None:
        going_on.wait(60)
        heard.append(event["request"])
        if event["request"] == batches[-1].requests[0].id:
            loop.call_soon_threadsafe(done.set)
        raise SystemExit(3) if len(heard) == 1 else ValueError("broken")

    desk = Desk(store, clock, subscribers=[aside(slow)])
    batches = [make_batch(make_request(make_call(args={"n": n}))) for n in range(3)]
    for batch in batches:
        await opened(desk, batch)
        async with asyncio.timeout(20):
            await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert heard == []
    going_on.set()
    async with asyncio.timeout(20):
        await done.wait()
    assert heard == [batch.requests[0].id for batch in batches]
    assert [record.getMessage() for record in caplog.records][:2] == [FAILED, FAILED]
