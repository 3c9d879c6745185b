"""Schedules: who may make them, each due time runs once, missed runs, pauses, modes of their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from signoff.approvals.automatic import Modes, OwnMode
from signoff.approvals.errors import Refused
from signoff.approvals.model import Actor, Pause, Place, RequestState
from signoff.turns.cron import BadCron, Cron
from signoff.turns.model import Turn, TurnState, Waiting
from signoff.turns.restoring import end_open_work
from signoff.turns.schedules import Schedule, ScheduleBook, ScheduleTerms
from signoff.turns.scheduling import CannotRun, Scheduler, Starter
from tests.conftest import ADA, MAX, SERVER
from tests.rigs.driver_office import Office, batch_of

HOURLY = "0 * * * *"
HOUR = 3600.0
START = datetime(2026, 11, 17, 9, 30, tzinfo=UTC).timestamp()
TEN = START + 1800
ALLOWED = ScheduleTerms(allow=True, grace=HOUR / 2)


@dataclass
class Channel(Starter):
    """Posts into a list, and submits turns to the real driver. `failures` are raised first, one per post."""

    office: Office
    people: dict[str, Actor] = field(default_factory=lambda: {ADA.id: ADA})
    posted: list[tuple[int, float | None]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    dies_before_submitting: bool = False

    async def person(self, server: str, person: str) -> Actor | None:
        return self.people.get(person)

    async def check(self, schedule: Schedule, asker: Actor) -> None:
        if schedule.channel == "closed":
            raise CannotRun("I lack Send Messages in its channel")

    async def begin(self, schedule: Schedule, asker: Actor) -> str:
        if self.failures:
            raise self.failures.pop(0)
        self.posted.append((schedule.number, schedule.claimed))
        return str(800000000000000000 + len(self.posted))

    def turn(self, schedule: Schedule, message: str, asker: Actor, now: float) -> Turn:
        place = Place(schedule.server, message, message)
        return Turn(f"{schedule.channel}-{message}", place, message, asker, schedule.prompt, now)

    async def start(self, schedule: Schedule, turn: Turn) -> None:
        if self.dies_before_submitting:
            raise ConnectionError("the process died")
        self.turns.append(turn)
        await self.office.take(turn)

    async def tell(self, schedule: Schedule, text: str) -> None:
        self.told.append(text)


@dataclass
class Desk:
    office: Office
    channel: Channel
    book: ScheduleBook
    scheduler: Scheduler

    async def add(self, cron: str = HOURLY, actor: Actor = ADA, channel: str = "7001", **more: Any) -> Schedule:
        given = {"prompt": "look after the disk", "mode": "interactive", **more}
        return await self.book.add(actor, channel, cron, given["prompt"], given["mode"])

    async def at(self, time: float) -> None:
        self.office.clock.at = time
        await self.scheduler.look()

    async def only(self) -> Schedule:
        (schedule,) = await self.book.of(ADA)
        return schedule


def desk_of(office: Office, terms: ScheduleTerms = ALLOWED, channel: Channel | None = None) -> Desk:
    book = ScheduleBook(office.store, office.clock, terms)
    channel = channel or Channel(office)
    return Desk(office, channel, book, Scheduler(office.store, office.clock, book, channel))


@pytest.fixture
def desk(office: Office) -> Desk:
    office.clock.at = START
    return desk_of(office)


async def test_a_due_schedule_starts_a_turn_asked_by_its_maker_with_todays_roles(desk: Desk) -> None:
    made = await desk.add()
    assert made.due == TEN
    await desk.at(TEN - 1)
    assert desk.channel.turns == []
    desk.channel.people[ADA.id] = replace(ADA, roles=frozenset({"new"}))
    await desk.at(TEN)
    (turn,) = desk.channel.turns
    assert (turn.text, turn.asker.id, turn.asker.roles) == ("look after the disk", ADA.id, frozenset({"new"}))
    await desk.office.until_state(turn, TurnState.DONE)
    after = await desk.only()
    assert (after.due, after.claimed, after.last_run) == (TEN + HOUR, None, TEN)


async def test_a_due_time_runs_once_however_often_somebody_looks(desk: Desk) -> None:
    await desk.add()
    for _ in range(3):
        await desk.at(TEN)
    assert desk.channel.posted == [(1, TEN)]


async def test_two_claims_of_one_due_time_do_not_both_succeed(desk: Desk) -> None:
    made = await desk.add()
    claims = [await desk.office.store.run(lambda tx: tx.claim_schedule(made, TEN, TEN + HOUR)) for _ in range(2)]
    assert claims == [True, False]


@pytest.mark.parametrize("crash", ["before the message", "after the message"])
async def test_a_crash_after_the_claim_starts_the_run_once(desk: Desk, crash: str) -> None:
    await desk.add()
    if crash == "before the message":
        desk.channel.failures = [ConnectionError("gone")]
    else:
        desk.channel.dies_before_submitting = True
    await desk.at(TEN)
    assert desk.channel.turns == []
    later = desk_of(desk.office.successor())
    await later.at(TEN + 5)
    await later.at(TEN + 10)
    assert len(later.channel.turns) == 1
    assert len(desk.channel.posted) + len(later.channel.posted) == 1, "the message that was noted is not posted again"
    await later.office.driver.stop(0)


async def test_a_crash_after_the_turn_was_stored_does_not_start_it_again(desk: Desk) -> None:
    await desk.add()
    await desk.at(TEN)
    (turn,) = desk.channel.turns
    await desk.office.until_state(turn, TurnState.DONE)
    schedule = replace(await desk.only(), claimed=TEN, message=turn.message)
    undo = "UPDATE schedules SET claimed = ?, message = ?"  # as if the end of the claim was never stored
    await desk.office.store.run(lambda tx: tx.db.change(undo, schedule.claimed, schedule.message))
    await desk.at(TEN + 5)
    assert len(desk.office.runner.advanced) == 1


async def test_only_the_last_missed_run_is_made_up_for_and_only_within_the_grace(desk: Desk) -> None:
    await desk.add()
    await desk.at(TEN + 5 * HOUR + 1700)
    assert desk.channel.posted == [(1, TEN + 5 * HOUR)]
    await desk.at(TEN + 9 * HOUR + 1900)
    assert len(desk.channel.posted) == 1, "the last one is older than the grace"
    assert (await desk.only()).due == TEN + 10 * HOUR


@pytest.mark.parametrize("claimed", [False, True])
async def test_after_a_restored_backup_no_earlier_run_is_repeated(desk: Desk, claimed: bool) -> None:
    """The database that was lost may have run it already."""
    await desk.add()
    if claimed:
        desk.channel.failures = [ConnectionError("gone")]
        await desk.at(TEN)
    restored = TEN + 600
    await desk.office.store.run(lambda tx: end_open_work(tx, desk.office.desk, restored, 0))
    await desk.at(restored + 60)
    assert desk.channel.posted == []
    await desk.at(TEN + HOUR)
    assert desk.channel.posted == [(1, TEN + HOUR)]


async def test_a_run_that_cannot_be_posted_is_given_up_after_the_grace(desk: Desk) -> None:
    await desk.add()
    desk.channel.failures = [ConnectionError("Discord is down")] * 2
    await desk.at(TEN)
    await desk.at(TEN + 60)
    assert (await desk.only()).claimed == TEN
    await desk.at(TEN + 1801)
    assert desk.channel.posted == []
    assert (await desk.only()).claimed is None
    await desk.at(TEN + HOUR)
    assert desk.channel.posted == [(1, TEN + HOUR)]


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (None, "Ada is no longer in this server"),
        (replace(ADA, manages_server=False), "Ada no longer has Manage Server"),
    ],
)
async def test_a_schedule_whose_maker_lost_their_rights_is_paused_and_admins_are_told(
    desk: Desk, now: Actor | None, why: str
) -> None:
    await desk.add()
    desk.channel.people = {ADA.id: now} if now else {}
    await desk.at(TEN)
    assert desk.channel.turns == []
    assert desk.channel.told == [
        f"Schedule 1 is paused: {why}. An admin can remove it with /signoff schedule remove and add it again."
    ]
    assert (await desk.only()).paused == why
    desk.channel.people = {ADA.id: ADA}
    await desk.at(TEN + HOUR)
    assert desk.channel.posted == []
    rows = await desk.office.store.run(lambda tx: tx.audit_page(SERVER))
    assert [row.kind for row in rows] == ["schedule_paused", "schedule_added"]


async def test_a_channel_where_the_bot_may_not_write_pauses_the_schedule(desk: Desk) -> None:
    await desk.add(channel="closed")
    await desk.at(TEN)
    assert (await desk.only()).paused == "I lack Send Messages in its channel"


async def test_a_paused_server_runs_none(desk: Desk) -> None:
    await desk.add()
    await desk.office.store.run(lambda tx: tx.set_pause(Pause(SERVER, ADA, START)))
    await desk.at(TEN)
    await desk.office.store.run(lambda tx: tx.clear_pause(SERVER))
    await desk.at(TEN + 60)
    assert desk.channel.posted == []
    await desk.at(TEN + HOUR)
    assert desk.channel.posted == [(1, TEN + HOUR)]


async def test_a_pause_gives_up_a_run_that_could_not_be_posted_before(desk: Desk) -> None:
    await desk.add()
    desk.channel.failures = [ConnectionError("Discord is down")]
    await desk.at(TEN)
    await desk.office.store.run(lambda tx: tx.set_pause(Pause(SERVER, ADA, TEN)))
    await desk.at(TEN + 60)
    await desk.office.store.run(lambda tx: tx.clear_pause(SERVER))
    await desk.at(TEN + 90)
    assert desk.channel.posted == []
    await desk.at(TEN + HOUR)
    assert desk.channel.posted == [(1, TEN + HOUR)]


async def test_a_run_that_begins_late_does_not_take_the_place_of_the_next_one(office: Office) -> None:
    office.clock.at = START
    desk = desk_of(office, replace(ALLOWED, grace=2 * HOUR))
    await desk.add()
    desk.channel.failures = [ConnectionError("Discord is down")]
    await desk.at(TEN)
    await desk.at(TEN + HOUR + 5)
    await desk.at(TEN + HOUR + 10)
    assert desk.channel.posted == [(1, TEN), (1, TEN + HOUR)]


async def test_a_removed_schedule_does_not_run_and_its_number_is_not_used_again(desk: Desk) -> None:
    await desk.add()
    await desk.book.remove(ADA, 1)
    await desk.at(TEN)
    assert desk.channel.posted == []
    assert (await desk.add()).number == 2
    with pytest.raises(Refused, match="no schedule 1"):
        await desk.book.remove(ADA, 1)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"cron": "* * * * *"}, "every 1 minutes. The operator's minimum is 15 minutes"),
        ({"cron": "0,5 9 * * *"}, "every 5 minutes"),
        ({"cron": "59 23,0 * * *", "terms": {"interval": 7200.0}}, "every 60 minutes"),
        ({"cron": "soon"}, "not a cron expression"),
        ({"cron": "0 0 9 * * *"}, "not a cron expression"),
        ({"cron": "61 * * * *"}, "not a cron expression"),
        ({"mode": "auto_approve"}, "does not permit the mode auto_approve"),
        ({"prompt": "  "}, "1 to 1500 characters"),
        ({"actor": MAX}, "Manage Server"),
        ({"terms": {"allow": False}}, "does not allow schedules"),
        ({"terms": {"per_server": 0}}, "0 schedules already"),
    ],
)
async def test_what_cannot_be_scheduled_is_refused_with_a_reason(desk: Desk, fields: dict[str, Any], why: str) -> None:
    desk.book = replace(desk.book, terms=replace(ALLOWED, **fields.pop("terms", {})))
    with pytest.raises(Refused, match=why):
        await desk.add(**fields)
    assert await desk.book.of(ADA) == []


# Modes


@pytest.mark.parametrize(
    ("operator", "own", "permitted", "state"),
    [
        ("interactive", "auto_deny", {"auto_deny"}, RequestState.REJECTED),
        ("interactive", "auto_approve", {"auto_approve"}, RequestState.APPROVED),
        ("interactive", "auto_approve", {"auto_deny"}, RequestState.PENDING),
        ("auto_approve", "interactive", {"interactive"}, RequestState.PENDING),
        ("auto_deny", "auto_approve", {"auto_approve"}, RequestState.REJECTED),
    ],
)
async def test_a_schedules_own_mode_decides_within_what_the_operator_permits(
    desk: Desk, operator: str, own: str, permitted: set[str], state: RequestState
) -> None:
    office = desk.office
    office.desk.modes = Modes(operator, permitted=frozenset(permitted))
    await office.store.run(lambda tx: tx.insert_schedule(replace(SCHEDULE, mode=own)))
    desk.book = replace(desk.book, terms=replace(ALLOWED, modes=frozenset({own})))
    desk.scheduler.book = desk.book
    turn = desk.channel.turn(replace(SCHEDULE, mode=own), "800000000000000001", ADA, TEN)
    batch = batch_of(turn)
    office.runner.script(turn, Waiting(batch))
    await desk.at(TEN)

    async def opened() -> bool:
        return await office.store.run(lambda tx: tx.batch(batch.id)) is not None

    await office.until_true(opened)
    (request,) = (await office.batch(batch)).requests
    assert request.state is state
    if request.settlement:
        note = f"mode {own} of schedule 3" if operator != "auto_deny" else "mode auto_deny"
        assert (request.settlement.by, request.settlement.note) == (None, note)
        rows = await office.store.run(lambda tx: tx.audit_page(SERVER, kind=state))
        assert [(row.actor, row.details["note"]) for row in rows] == [("signoff", note)]


SCHEDULE = Schedule(SERVER, 3, "7001", HOURLY, "look", "interactive", ADA, START, TEN)


async def test_the_mode_is_known_after_a_restart_and_after_the_schedule_was_removed(desk: Desk) -> None:
    await desk.add(mode="auto_deny")
    await desk.at(TEN)
    await desk.book.remove(ADA, 1)
    (turn,) = desk.channel.turns
    assert await desk.office.store.run(lambda tx: tx.own_mode(turn.id)) == OwnMode("auto_deny", 1)


# Times


def at(text: str, zone: str = "Europe/Berlin") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def test_times_are_those_of_the_time_zone() -> None:
    cron = Cron("0 9 * * 1-5", ZoneInfo("Europe/Berlin"))
    assert cron.after(at("2026-11-20 09:00")) == at("2026-11-23 09:00"), "from Friday to Monday"
    assert cron.last(at("2026-11-22 12:00")) == at("2026-11-20 09:00")
    assert cron.last(at("2026-11-20 09:00")) == at("2026-11-20 09:00")
    assert cron.words() == "At 09:00 on Monday through Friday"


def test_a_run_comes_once_when_clocks_change() -> None:
    """In Berlin, 02:30 does not exist on 29 March 2026, and exists twice on 25 October."""
    cron = Cron("30 2 * * *", ZoneInfo("Europe/Berlin"))
    spring = cron.after(at("2026-03-28 12:00"))
    assert spring == at("2026-03-29 03:00")
    assert cron.after(at("2026-03-29 03:00")) == at("2026-03-30 02:30")
    autumn = cron.after(at("2026-10-24 12:00"))
    assert autumn is not None
    assert cron.after(autumn) == at("2026-10-26 02:30")


def test_six_fields_are_no_cron_expression() -> None:
    with pytest.raises(BadCron, match="five fields"):
        Cron("0 0 9 * * *", UTC)
