"""The clock for deadlines: it follows the time of day, but does not go back with it."""

from __future__ import annotations

import logging

import pytest

from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.errors import AlreadySettled
from signoff.approvals.model import Choice, RequestState
from signoff.clock import SteadyClock
from signoff.store import Store
from tests.conftest import ADA, PLACE, make_batch, make_request
from tests.rigs.desk import opened

HOUR = 3600.0
START = 1_700_000_000.0


class Machine:
    """A machine whose clock a test sets."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.offset = START

    def wait(self, seconds: float) -> None:
        self.passed += seconds

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.offset + self.passed, lambda: self.passed)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_clock_that_is_set_back_moves_no_deadline(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    clock = machine.clock()
    assert clock.now() == START
    machine.offset -= 2 * HOUR
    with caplog.at_level(logging.WARNING):
        machine.wait(300)
        assert clock.now() == START + 300
        machine.wait(7)
        assert clock.now() == START + 307
    assert len(caplog.records) == 1
    assert "set back by 7200 seconds" in caplog.text


def test_a_clock_that_is_set_right_again_is_followed(machine: Machine) -> None:
    clock = machine.clock()
    clock.now()
    machine.offset -= 2 * HOUR
    clock.now()
    machine.offset += 2 * HOUR
    machine.wait(60)
    assert clock.now() == START + 60
    assert clock.ahead == 0


def test_a_clock_that_is_set_forward_is_followed(machine: Machine) -> None:
    clock = machine.clock()
    clock.now()
    machine.offset += HOUR
    assert clock.now() == START + HOUR


def test_a_clock_that_is_adjusted_gradually_is_followed(machine: Machine) -> None:
    clock = machine.clock()
    for _ in range(100):
        clock.now()
        machine.wait(30)
        machine.offset -= 0.02
    assert clock.now() == machine.offset + machine.passed
    assert clock.ahead == 0


async def test_a_click_after_the_shown_deadline_is_late_although_the_clock_was_set_back(
    store: Store, machine: Machine
) -> None:
    desk = Desk(store, machine.clock())
    batch = make_batch(make_request(), now=START)
    await opened(desk, batch)
    desk.clock.now()
    machine.offset -= 2 * HOUR
    machine.wait(307)
    with pytest.raises(AlreadySettled) as late:
        await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert late.value.batch.requests[0].state is RequestState.EXPIRED


async def test_a_click_is_late_if_the_clock_was_set_back_while_the_bot_was_down(store: Store, machine: Machine) -> None:
    batch = make_batch(make_request(), now=START)
    await opened(Desk(store, machine.clock()), batch)
    machine.offset -= 2 * HOUR
    machine.wait(307)
    with pytest.raises(AlreadySettled) as late:
        await Desk(store, machine.clock()).decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel))
    assert late.value.batch.requests[0].state is RequestState.EXPIRED
