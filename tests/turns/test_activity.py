"""Each start, request, tool and end of a turn is told once, and is one line of the log, with ids and without texts."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from signoff.agent.runner import Limits
from signoff.approvals.clicks import Click
from signoff.approvals.decision_log import log_decision
from signoff.approvals.model import Choice
from signoff.errors import TurnFailed
from signoff.text.log_lines import Line
from signoff.turns.activity import Activity, BatchOpened, CallEnded, ModelUsed, TurnEnded, TurnStarted
from signoff.turns.activity_log import ActivityLog
from signoff.turns.model import Step, Turn, TurnState
from signoff.turns.pausing import Pausing
from signoff.turns.ports import Progress
from tests.conftest import ADA
from tests.rigs.driver_office import Office, batch_of, in_thread
from tests.rigs.gate_bench import Bench, accept, protected
from tests.rigs.gate_bench import batch_of as batch_in
from tests.rigs.scripted import calls


@pytest.fixture(autouse=True)
def info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """Return (event, fields) of each line that has them."""
    told = [record.msg for record in caplog.records if isinstance(record.msg, Line)]
    return [(line.event, dict(line.fields)) for line in told]


async def test_a_turn_that_asks_is_four_lines(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.desk.subscribers.append(log_decision)
    turn = in_thread(1, text="a very private matter")
    batch = batch_of(turn)
    await office.asked(turn, batch)
    office.clock.at += 7
    await office.desk.decide(Click(batch.id, Choice.ACCEPT, ADA, turn.place.channel, f"card of {batch.id}"))
    await office.until_state(turn, TurnState.DONE)
    request = batch.requests[0].id
    assert [event for event, _ in lines(caplog)] == ["turn_started", "request_opened", "decision", "turn_ended"]
    started, opened, decision, ended = (fields for _, fields in lines(caplog))
    where = {"turn": turn.id, "server": turn.place.server, "channel": turn.place.channel, "person": turn.asker.id}
    assert started == where
    assert opened.items() >= {**where, "request": request, "batch": batch.id, "tool": "delete_file"}.items()
    assert decision.items() >= {"request": request, "turn": turn.id, "person": ADA.id, "state": "approved"}.items()
    assert (decision["how"], decision["waited"]) == ("ui", 7.0)
    assert ended.items() >= {**where, "state": "done", "batches": 1}.items()
    assert ended["seconds"] == round(office.clock.at - turn.created, 3)
    assert "private" not in caplog.text
    assert "a.txt" not in caplog.text


@pytest.mark.parametrize("error", [RuntimeError("broken"), TurnFailed("The model refused.")])
async def test_a_failure_is_one_line_with_its_traceback(
    office: Office, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    turn = in_thread(1)
    office.runner.script(turn, error)
    await office.take(turn)
    await office.until_state(turn, TurnState.FAILED)
    await office.until(lambda: office.front.replies)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info
    assert record.exc_info[1] is error
    assert record.getMessage().startswith(f"turn_ended turn={turn.id}")
    assert f"cause={type(error).__name__}" in record.getMessage()


async def test_a_stopped_turn_has_its_end(office: Office, pausing: Pausing, caplog: pytest.LogCaptureFixture) -> None:
    turn = in_thread(1)
    await office.asked(turn, batch_of(turn))
    await pausing.stop(ADA)
    (ended,) = [fields for event, fields in lines(caplog) if event == "turn_ended"]
    assert (ended["turn"], ended["state"]) == (turn.id, "stopped")


async def test_the_end_of_a_stopped_run_counts_what_its_step_used(
    office: Office, pausing: Pausing, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, advance = in_thread(1), office.runner.advance

    async def counted(turn: Turn, progress: Progress | None = None, given: object = None) -> Step:
        try:
            return await advance(turn, progress)
        finally:
            office.driver.activity.tell(ModelUsed(turn, 2, 30, 4))

    monkeypatch.setattr(office.runner, "advance", counted)
    office.runner.script(turn, asyncio.Event())
    await office.take(turn)
    await office.until(lambda: office.runner.advanced)
    await pausing.stop(ADA)
    await office.until(lambda: "turn_ended" in dict(lines(caplog)))
    (ended,) = [fields for event, fields in lines(caplog) if event == "turn_ended"]
    assert (ended["state"], ended["model_requests"], ended["input_tokens"]) == ("stopped", 2, 30)
    (log,) = [one for one in office.driver.activity.listeners if isinstance(one, ActivityLog)]
    assert log._tallies == {}  # pyright: ignore[reportPrivateUsage]


async def test_the_tools_and_the_model_of_a_step_are_told(bench: Bench) -> None:
    told: list[Any] = []

    def greet(name: str) -> str:
        return f"hello {name}"

    def fall(name: str) -> str:
        raise ValueError(name)

    responses = [calls(("greet", {"name": "x"}), ("fall", {"name": "y"})), "done"]
    await bench.start(responses, [greet, fall, protected(bench.box)], activity=Activity([told.append]))
    ended = [(event.tool, event.request, event.result) for event in told if isinstance(event, CallEnded)]
    assert sorted(ended) == [("fall", "", "failed"), ("greet", "", "done")]
    (model,) = [event for event in told if isinstance(event, ModelUsed)]
    assert model.requests == 2
    assert model.output_tokens > 0


async def test_an_approved_call_is_told_with_its_request_and_a_held_one_not_before_it_runs(bench: Bench) -> None:
    told: list[Any] = []
    script = [calls(("danger", {"value": "1"})), "done"]
    step = await bench.start(script, [protected(bench.box)], activity=Activity([told.append]))
    assert [event for event in told if isinstance(event, CallEnded)] == []
    request = batch_in(step).requests[0].id
    await accept(bench, step)
    (call,) = [event for event in told if isinstance(event, CallEnded)]
    assert (call.tool, call.request, call.result) == ("danger", request, "done")


async def test_a_step_that_fails_still_says_what_it_used(bench: Bench) -> None:
    told: list[Any] = []
    with pytest.raises(TurnFailed):
        await bench.start(
            [calls(("greet", {"value": str(n)})) for n in range(3)],
            [bench.box.tool("greet")],
            activity=Activity([told.append]),
            limits=Limits(model_requests=2),
        )
    (model,) = [event for event in told if isinstance(event, ModelUsed)]
    assert model.requests == 2


async def test_a_listener_that_fails_stops_nothing(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []

    def broken(event: object) -> None:
        raise RuntimeError("no")

    office.driver.activity.listeners[:] = [broken, heard.append]
    turn = in_thread(1)
    await office.asked(turn, batch_of(turn))
    assert [type(event) for event in heard] == [TurnStarted, BatchOpened]
    assert "a listener failed" in caplog.text
    assert TurnEnded not in {type(event) for event in heard}
