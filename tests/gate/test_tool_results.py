"""Results that cannot be stored, read again or sent to a model fail their own call, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.agent.history import load_messages
from signoff.turns.model import Finished
from tests.rigs.gate_bench import Bench
from tests.rigs.scripted import calls


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def nested(depth: int) -> list[Any]:
    outer: list[Any] = []
    inner = outer
    for _ in range(depth):
        inner.append([])
        inner = inner[0]
    return outer


def endless_list() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


RESULTS = [
    pytest.param(Unspeakable, "cannot be passed on: RuntimeError: no words", id="str raises"),
    pytest.param(lambda: {"key": [Unspeakable()]}, "cannot be passed on: RuntimeError", id="str raises inside"),
    pytest.param(lambda: nested(5000), "cannot be passed on: RecursionError", id="5000 deep"),
    pytest.param(lambda: nested(230), "[[[[", id="too deep to be read again"),
    pytest.param(lambda: nested(198), "[[[[", id="too deep for a conversation"),
    pytest.param(endless_list, "[[...]]", id="contains itself"),
    pytest.param(object, "<object object", id="no JSON"),
]


@pytest.mark.parametrize(("make", "told"), RESULTS)
async def test_a_result_that_cannot_be_passed_on_fails_its_call_alone(bench: Bench, make: Any, told: str) -> None:
    def act() -> Any:
        return make()

    wanted = calls(("act", {}), ("fine", {"value": "x"}))
    step = await bench.start([wanted, "done"], [act, bench.box.tool("fine")])
    assert isinstance(step, Finished)
    assert told in bench.script.results["call_0"]
    assert ("fine", "x", None) in bench.box.ran
    assert load_messages(step.history), "the stored conversation can be read again"
