"""The metrics are valid for Prometheus, count what happened, and hold no names, texts or arguments."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.model import Choice
from signoff.store import Store
from signoff.telemetry import metrics
from signoff.telemetry.measures import Measures, Now
from signoff.telemetry.metrics import Counter, Gauge, Histogram, render
from signoff.turns.activity import BatchOpened, CallEnded, ModelUsed, TurnEnded, TurnStarted
from signoff.turns.model import TurnState
from tests.conftest import ADA, PLACE, HandClock, make_batch, make_turn
from tests.rigs.desk import opened

NOW = Now(True, 2, {"queued": 1, "running": 2, "waiting": 3, "open_requests": 4})


def read(text: str) -> dict[tuple[str, str], float]:
    """Return (name, label values) -> number, as Prometheus reads it."""
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families), "each metric is described once"
    assert all(family.documentation and family.type != "unknown" for family in families)
    return {(s.name, ",".join(s.labels.values())): s.value for family in families for s in family.samples}


def test_everything_that_is_known_now_is_there() -> None:
    numbers = read(Measures("1.2.3").render(NOW))
    assert numbers["signoff_gateway_connected", ""] == numbers["signoff_store_up", ""] == 1
    assert numbers["signoff_running_tools", ""] == 2
    assert [numbers["signoff_turns", state] for state in ("queued", "running", "waiting")] == [1, 2, 3]
    assert numbers["signoff_open_requests", ""] == 4
    assert any(name == "signoff_build_info" and labels.startswith("1.2.3,") for name, labels in numbers)
    assert numbers["process_start_time_seconds", ""] > 1.7e9


def test_without_the_store_the_rest_is_there() -> None:
    numbers = read(Measures("1").render(Now(False, 0, {})))
    assert numbers["signoff_gateway_connected", ""] == numbers["signoff_store_up", ""] == 0
    assert ("signoff_open_requests", "") not in numbers


def test_the_activity_of_turns_is_counted() -> None:
    measures, turn = Measures("1"), make_turn("a private text")
    for event in (
        TurnStarted(turn),
        BatchOpened(make_batch()),
        CallEnded(turn, "delete_file", "", "done", 0.1),
        CallEnded(turn, "delete_file", "", "done", 0.1),
        CallEnded(turn, "delete_file", "", "failed", 0.1),
        ModelUsed(turn, 2, 100, 10),
        TurnEnded(turn, TurnState.FAILED, 1.0, ValueError("private")),
    ):
        measures.heard(event)
    text = measures.render(NOW)
    numbers = read(text)
    assert numbers["signoff_turns_started_total", ""] == numbers["signoff_requests_total", ""] == 1
    assert numbers["signoff_tool_runs_total", "delete_file,done"] == 2
    assert numbers["signoff_tool_runs_total", "delete_file,failed"] == 1
    assert numbers["signoff_model_requests_total", ""] == 2
    assert numbers["signoff_model_tokens_total", "input"] == 100
    assert numbers["signoff_turns_ended_total", "failed"] == 1
    assert "private" not in text
    assert turn.asker.name not in text
    assert turn.asker.id not in text


async def test_decisions_are_counted_and_only_those_of_people_are_timed(store: Store, clock: HandClock) -> None:
    measures = Measures("1")
    desk = Desk(store, clock, subscribers=[measures.decided])
    first, second = make_batch(), make_batch()
    await opened(desk, first)
    await opened(desk, second)
    clock.at += 20
    await desk.decide(Click(first.id, Choice.REJECT, ADA, PLACE.channel, note="a private reason"))
    clock.at = second.deadline
    await desk.expire_due()
    text = measures.render(NOW)
    numbers = read(text)
    assert numbers["signoff_decisions_total", "rejected,ui"] == 1
    assert numbers["signoff_decisions_total", "expired,expired"] == 1
    assert numbers["signoff_decision_seconds_count", ""] == 1
    assert numbers["signoff_decision_seconds_sum", ""] == 20
    assert (numbers["signoff_decision_seconds_bucket", "15"], numbers["signoff_decision_seconds_bucket", "30"]) == (
        0,
        1,
    )
    assert "private" not in text


async def test_the_jobs_of_the_store_are_timed(store: Store) -> None:
    measures = Measures("1")
    store.on_job = measures.jobs.observe
    await store.run(lambda tx: tx.turn("x"))
    with pytest.raises(ZeroDivisionError):
        await store.run(lambda tx: 1 / 0)
    numbers = read(measures.render(NOW))
    assert numbers["signoff_store_job_seconds_count", ""] == 2
    assert numbers["signoff_store_job_seconds_sum", ""] > 0


async def test_the_store_says_how_much_work_there_is(store: Store, clock: HandClock) -> None:
    desk = Desk(store, clock)
    await opened(desk, make_batch())
    await store.run(lambda tx: tx.insert_turn(make_turn()))
    done = make_batch()
    await opened(desk, done)
    await desk.decide(Click(done.id, Choice.ACCEPT, ADA, PLACE.channel))
    work = await store.run(lambda tx: tx.work_left())
    assert work == {"queued": 1, "running": 0, "waiting": 0, "open_requests": 1}


def test_labels_cannot_break_the_format() -> None:
    hostile = 'a"b\\c\nd{} 1'
    counter = Counter("c_total", "with a \n break and \\", ("tool",))
    counter.add(hostile)
    assert read(render([counter]))["c_total", hostile] == 1


def test_the_number_of_labels_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_SERIES", 3)
    counter = Counter("c_total", "c", ("tool", "result"))
    for number in range(10):
        counter.add(f"tool{number}", "done")
    numbers: dict[Any, float] = read(render([counter]))
    assert len(numbers) == 4
    assert numbers["c_total", "other,other"] == 7


def test_a_histogram_counts_each_value_in_every_larger_bucket() -> None:
    histogram = Histogram("h", "h", (0.5, 1))
    for value in (0.5, 0.6, 2):
        histogram.observe(value)
    numbers = read(render([histogram]))
    assert [numbers["h_bucket", bound] for bound in ("0.5", "1", "+Inf")] == [1, 2, 3]
    assert numbers["h_count", ""] == 3


def test_a_gauge_may_be_a_fraction() -> None:
    assert read(render([Gauge("g", "g", [((), 0.25)])]))["g", ""] == 0.25
