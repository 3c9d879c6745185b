"""Approvers are told once in each way, also across a crash, and what told them goes when the card is settled."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.model import Batch, CardCopy, Choice
from signoff.errors import CardDelayed, CardFailed, NotDelivered
from signoff.store import Store
from signoff.turns import delivery
from signoff.turns.driver import Driver
from signoff.turns.model import Notice, Turn, TurnState, Waiting
from signoff.turns.notifying import NotAllTold, Notifier, Notifying
from tests.conftest import ADA, HandClock, make_request
from tests.rigs.driver_office import Office, batch_of, in_thread

OPS = "700000000000000009"
DELAYS = delivery.DELAYS
"""As they are without the fixtures, which cut them."""


@dataclass
class RecordingNotifier(Notifier):
    """Reaches everybody, unless `failures` has an error for the method or `unreached` has a reason."""

    said: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failures: dict[str, deque[Exception]] = field(default_factory=lambda: defaultdict(deque))
    unreached: str = ""
    slow: asyncio.Event | None = None
    looked_at: list[str] = field(default_factory=list)
    """Channels in which a copy was looked for."""
    unnoted: str | None = None
    """The copy that is found there."""

    async def post_copy(self, batch: Batch, channel: str) -> str:
        if self.failures["post_copy"]:
            raise self.failures["post_copy"].popleft()
        self.said.append(f"copy in {channel}")
        if self.slow:
            await self.slow.wait()
        return "77"

    async def find_copy(self, batch: Batch, channel: str) -> str | None:
        if self.failures["find_copy"]:
            raise self.failures["find_copy"].popleft()
        self.looked_at.append(channel)
        return self.unnoted

    async def ping(self, batch: Batch, problems: Sequence[str]) -> Notice | None:
        if self.failures["ping"]:
            raise self.failures["ping"].popleft()
        self.said.append(" ".join(["ping", *problems]))
        return Notice(batch.id, "ping", batch.place.channel, "78")

    async def send_directly(self, batch: Batch, told: Collection[str]) -> tuple[Sequence[Notice], str]:
        if self.failures["send_directly"]:
            raise self.failures["send_directly"].popleft()
        people = {"501", "502"} - set(told)
        self.said += [f"direct message in {one}" for one in sorted(people)]
        return [Notice(batch.id, "dm", one, f"{one}0") for one in people], self.unreached

    async def report_escalation(self, batch: Batch, kind: str, told: Collection[str] = ()) -> Sequence[Notice]:
        if batch.place.channel in told:
            return []
        self.said.append(kind)
        return [Notice(batch.id, kind, batch.place.channel, f"79{kind[-1]}")]

    async def remove(self, notice: Notice, batch: Batch) -> None:
        if self.failures["remove"]:
            raise self.failures["remove"].popleft()
        assert batch.settled
        self.removed.append(notice.kind)


class TellingOffice(Office):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.notifier = RecordingNotifier()
        self.use(self.notifier)

    def use(self, notifier: RecordingNotifier) -> None:
        parts = (self.store, self.desk, self.runner, self.front, self.clock, self.limits)
        self.driver = Driver(*parts, notifier=notifier)


@pytest.fixture
async def telling(store: Store, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TellingOffice]:
    monkeypatch.setattr(delivery, "DELAYS", (0.0, 0.01, 0.01))
    office = TellingOffice(store, clock)
    yield office
    await office.driver.stop(0)


def told(turn: Turn, *ways: str, **fields: object) -> Batch:
    return replace(batch_of(turn), notify=ways, untold=bool(ways), **fields)


async def is_told(office: Office, batch: Batch) -> None:
    async def check() -> bool:
        return not (await office.batch(batch)).untold

    await office.until_true(check)


async def notices(office: Office, batch: Batch) -> list[str]:
    return [notice.kind for notice in await office.store.run(lambda tx: tx.notices_of(batch.id))]


async def decide(office: Office, batch: Batch) -> None:
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, batch.place.channel))


async def test_without_notify_nobody_is_told(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn)
    await telling.asked(turn, batch)
    await decide(telling, batch)
    await telling.until_state(turn, TurnState.DONE)
    assert telling.notifier.said == []


async def test_everybody_is_told_in_each_way_after_the_card_is_there(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn, "ping", "dm", f"channel:{OPS}")
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    assert telling.notifier.said == [
        f"copy in {OPS}",
        "direct message in 501",
        "direct message in 502",
        "ping",
    ]
    assert (await telling.batch(batch)).copies == (CardCopy(OPS, "77"),)
    assert await notices(telling, batch) == ["dm", "dm", "ping"]


async def test_what_told_them_goes_when_the_card_is_settled(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn, "ping", "dm")
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    await decide(telling, batch)
    await telling.until(lambda: len(telling.notifier.removed) == 3)

    async def none_left() -> bool:
        return await notices(telling, batch) == []

    await telling.until_true(none_left)
    assert sorted(telling.notifier.removed) == ["dm", "dm", "ping"]


async def test_removing_is_tried_again(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn, "ping")
    telling.notifier.failures["remove"].append(NotDelivered("Discord could not be reached"))
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    await decide(telling, batch)
    await telling.until(lambda: telling.notifier.removed == ["ping"])


async def test_somebody_who_was_not_reached_is_pinged(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn, "dm")
    telling.notifier.unreached = "closed to me."
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    assert telling.notifier.said[-1] == "ping closed to me."


async def test_a_copy_that_cannot_be_posted_is_reported_and_the_card_goes_on(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn, f"channel:{OPS}")
    telling.notifier.failures["post_copy"].append(CardFailed("I lack a permission there"))
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    (said,) = telling.notifier.said
    assert said == f"ping I could not show this card in the approvals channel {OPS}: I lack a permission there."
    await decide(telling, batch)
    await telling.until_state(turn, TurnState.DONE)


async def test_a_copy_that_is_delayed_is_posted_later_and_nothing_else_is_repeated(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn, "ping", f"channel:{OPS}")
    telling.notifier.failures["post_copy"].append(CardDelayed("Discord could not be reached"))
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    assert telling.notifier.said == ["ping", f"copy in {OPS}"]


@pytest.mark.parametrize(
    ("method", "sent", "said"),
    [
        ("ping", "", ["direct message in 501", "direct message in 502", "ping"]),
        ("send_directly", "501", ["ping", "direct message in 502"]),
    ],
)
async def test_what_may_be_sent_later_is_sent_later_and_the_rest_is_not_repeated(
    telling: TellingOffice, method: str, sent: str, said: list[str]
) -> None:
    turn = in_thread(1)
    batch = told(turn, "ping", "dm")
    done = [Notice(batch.id, "dm", sent, f"{sent}0")] if sent else []
    telling.notifier.failures[method].append(NotAllTold("Discord could not be reached", done))
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    assert telling.notifier.said == said
    assert await notices(telling, batch) == ["dm", "dm", "ping"]


def test_a_copy_that_is_delayed_for_minutes_is_tried_again_before_the_usual_deadline() -> None:
    times = list(accumulate(DELAYS))
    assert len([time for time in times if 60 < time < 300]) >= 2
    assert times[-1] > 3600


async def test_a_card_that_is_settled_while_its_copy_is_on_the_way_is_drawn_again(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn, f"channel:{OPS}", "ping")
    telling.notifier.slow = asyncio.Event()
    await telling.asked(turn, batch)
    await telling.until(lambda: telling.notifier.said)
    await telling.desk.expire_due()
    telling.clock.at += 300
    await telling.desk.expire_due()
    telling.notifier.slow.set()
    await telling.until(lambda: any(drawn.settled and drawn.copies for drawn in telling.front.refreshed))
    await telling.until(lambda: telling.notifier.removed == ["ping"])


async def test_a_copy_that_is_posted_while_the_end_is_drawn_is_drawn_too(
    telling: TellingOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = in_thread(1)
    batch = told(turn, f"channel:{OPS}")
    drawing, drawn = asyncio.Event(), asyncio.Event()
    refresh = telling.front.refresh_card

    async def slowly(current: Batch) -> None:
        drawing.set()
        await drawn.wait()
        await refresh(current)

    monkeypatch.setattr(telling.front, "refresh_card", slowly)
    telling.notifier.failures["post_copy"].append(CardFailed("only this test posts the copy"))
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    await telling.desk.decide(Click(batch.id, Choice.REJECT, ADA, batch.place.channel))
    await asyncio.wait_for(drawing.wait(), 10)
    await telling.desk.copy_posted(batch.id, CardCopy(OPS, "77"))
    drawn.set()

    async def is_final() -> bool:
        return (await telling.batch(batch)).card_final

    await telling.until_true(is_final)
    assert telling.front.refreshed[-1].copies == (CardCopy(OPS, "77"),)


async def test_a_card_that_is_settled_while_a_copy_is_delayed_keeps_no_ping_and_no_open_copy(
    telling: TellingOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = in_thread(1)
    batch = told(turn, "ping", f"channel:{OPS}", "channel:700000000000000010")
    pinging, go_on = asyncio.Event(), asyncio.Event()
    ping, post_copy = telling.notifier.ping, telling.notifier.post_copy

    async def slowly(batch: Batch, problems: Sequence[str]) -> Notice | None:
        pinging.set()
        await go_on.wait()
        return await ping(batch, problems)

    async def one_only(batch: Batch, channel: str) -> str:
        if channel != OPS:
            raise CardDelayed("busy")
        await decide(telling, batch)
        await telling.until_state(turn, TurnState.DONE)
        return await post_copy(batch, channel)

    monkeypatch.setattr(telling.notifier, "ping", slowly)
    monkeypatch.setattr(telling.notifier, "post_copy", one_only)
    telling.runner.script(turn, Waiting(batch))
    await telling.take(turn)  # the turn may have ended before anybody sees it wait
    await asyncio.wait_for(pinging.wait(), 10)
    go_on.set()
    await telling.until(lambda: telling.notifier.removed == ["ping"])
    await telling.until(lambda: any(drawn.ended and drawn.copies for drawn in telling.front.refreshed))


async def test_the_next_process_tells_the_rest_and_removes_the_rest(telling: TellingOffice) -> None:
    """The first process dies after the direct messages of one card, and before it removes those of another."""
    turn, other = in_thread(1), in_thread(2)
    batch, settled = told(turn, "dm", "ping"), told(other, "ping")
    telling.use(dead := RecordingNotifier())
    await telling.asked(other, settled)
    await is_told(telling, settled)
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    await telling.driver.stop(0)
    await telling.store.run(lambda tx: tx.set_untold(batch.id, True))
    for notice in await telling.store.run(lambda tx: tx.notices_of(batch.id)):
        if notice.kind == "ping" or notice.channel == "502":
            await telling.store.run(lambda tx, notice=notice: tx.drop_notice(notice))
    # A desk of its own: the driver that was stopped does not hear of this decision.
    await Desk(telling.store, telling.clock).decide(Click(settled.id, Choice.ACCEPT, ADA, settled.place.channel))
    assert dead.removed == []

    successor = TellingOffice(telling.store, telling.clock)
    await successor.driver.recover()
    await is_told(successor, batch)
    assert successor.notifier.said == ["direct message in 502", "ping"]
    await successor.until(lambda: successor.notifier.removed == ["ping"])
    await successor.driver.stop(0)


async def test_an_escalation_is_shown_and_reported_once(telling: TellingOffice) -> None:
    turn = in_thread(1)
    request = make_request(approvers=("role:5",), escalate_to=(f"user:{ADA.id}",), escalate_at=telling.clock.at + 60)
    batch = replace(batch_of(turn), requests=(request,))
    await telling.asked(turn, batch)
    sweeping = asyncio.ensure_future(telling.driver._sweep())
    await asyncio.sleep(0.05)
    assert telling.notifier.said == []
    telling.clock.at += 60
    telling.driver._sweep_now.set()
    await telling.until(lambda: telling.notifier.said)
    await is_told(telling, batch)
    telling.driver._sweep_now.set()
    await asyncio.sleep(0.05)
    assert telling.notifier.said == ["escalation 1"]
    assert telling.front.refreshed[-1].requests[0].escalated
    await decide(telling, batch)
    await telling.until(lambda: telling.notifier.removed == ["escalation 1"])
    sweeping.cancel()


async def test_while_the_card_is_on_its_way_nobody_is_told(telling: TellingOffice) -> None:
    turn = in_thread(1)
    request = make_request(approvers=("role:5",), escalate_to=(f"user:{ADA.id}",), escalate_at=telling.clock.at)
    batch = replace(told(turn, "ping"), requests=(request,))
    telling.front.posting = asyncio.Event()
    telling.runner.script(turn, Waiting(batch))
    await telling.take(turn)
    await telling.until(lambda: telling.front.cards)
    (escalated,) = await telling.desk.escalate_due()
    await telling.driver._delivery.escalated(escalated)
    assert telling.notifier.said == []
    telling.front.posting.set()
    await is_told(telling, batch)
    assert telling.notifier.said == ["ping", "escalation 1"]


async def test_an_escalation_that_was_not_reported_is_reported_after_a_restart(telling: TellingOffice) -> None:
    turn = in_thread(1)
    request = make_request(approvers=("role:5",), escalate_to=(f"user:{ADA.id}",), escalate_at=telling.clock.at + 60)
    batch = replace(batch_of(turn), requests=(request,))
    await telling.asked(turn, batch)
    await telling.driver.stop(0)
    telling.clock.at += 60
    await telling.desk.escalate_due()  # and the process dies before anybody is told
    successor = TellingOffice(telling.store, telling.clock)
    await successor.driver.recover()
    await successor.until(lambda: successor.notifier.said == ["escalation 1"])
    assert [drawn.requests[0].escalated for drawn in successor.front.refreshed] == [True]
    await successor.driver.stop(0)


async def test_an_escalation_while_approvers_are_told_of_the_card_is_reported_too(
    telling: TellingOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = in_thread(1)
    request = make_request(approvers=("role:5",), escalate_to=(f"user:{ADA.id}",), escalate_at=telling.clock.at + 60)
    batch = replace(told(turn, "ping"), requests=(request,))
    ping = telling.notifier.ping

    async def too_long(batch: Batch, problems: Sequence[str]) -> Notice | None:
        telling.clock.at += 60
        await telling.desk.escalate_due()
        return await ping(batch, problems)

    monkeypatch.setattr(telling.notifier, "ping", too_long)
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    assert telling.notifier.said == ["ping", "escalation 1"]


async def test_a_reminder_is_noted_and_removed_at_once_if_the_card_was_settled_meanwhile(
    telling: TellingOffice,
) -> None:
    turn = in_thread(1)
    batch = told(turn)
    await telling.asked(turn, batch)
    notifying = Notifying(telling.store, telling.desk, telling.notifier)
    await notifying.note_reminder(batch, "80")
    assert await notices(telling, batch) == ["reminder"]
    await decide(telling, batch)
    await telling.until(lambda: telling.notifier.removed == ["reminder"])
    await notifying.note_reminder(batch, "81")
    assert telling.notifier.removed == ["reminder", "reminder"]
    assert await notices(telling, batch) == []


async def test_copies_link_to_a_card_that_was_posted_again(telling: TellingOffice) -> None:
    turn = in_thread(1)
    batch = told(turn, f"channel:{OPS}")
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    assert await telling.driver.repost(batch.id)
    (drawn,) = telling.front.refreshed
    assert (drawn.card_message, drawn.copies) == (f"later card of {batch.id}", (CardCopy(OPS, "77"),))


async def settled_untold(telling: TellingOffice, age: float = 0.0) -> Batch:
    """Return a batch as a process leaves it that was killed after the decision, while it told the approvers."""
    turn = in_thread(1)
    batch = told(turn, f"channel:{OPS}")
    await telling.asked(turn, batch)
    await is_told(telling, batch)
    await decide(telling, batch)
    await telling.until_state(turn, TurnState.DONE)
    await telling.until_true(lambda: is_final(telling, batch))
    await telling.driver.stop(0)
    await telling.store.run(lambda tx: (tx.drop_copies(OPS), tx.set_untold(batch.id, True)))
    telling.clock.at += age
    return batch


async def is_final(office: Office, batch: Batch) -> bool:
    return (await office.batch(batch)).card_final


async def test_the_next_start_finds_a_copy_that_was_not_noted_and_closes_it(telling: TellingOffice) -> None:
    batch = await settled_untold(telling)
    later = TellingOffice(telling.store, telling.clock)
    later.notifier.unnoted = "77"
    later.notifier.failures["find_copy"].append(NotDelivered("not now"))
    await later.driver.recover()
    await later.until(lambda: later.front.refreshed)
    await is_told(later, batch)
    await later.until_true(lambda: is_final(later, batch))
    await later.driver.stop(0)
    assert later.front.refreshed[-1].copies == (CardCopy(OPS, "77"),)
    assert (later.notifier.looked_at, later.notifier.said) == ([OPS], []), "nobody is told of a settled card"


@pytest.mark.parametrize(("age", "looked_at"), [(60.0, [OPS]), (2 * 86400.0, [])])
async def test_a_copy_that_is_not_there_is_looked_for_once(
    telling: TellingOffice, age: float, looked_at: list[str]
) -> None:
    batch = await settled_untold(telling, age)
    for expected in (looked_at, []):
        later = TellingOffice(telling.store, telling.clock)
        await later.driver.recover()
        await is_told(later, batch)
        await later.driver.stop(0)
        assert (later.notifier.looked_at, later.front.refreshed) == (expected, [])
