"""Results that cannot be stored, read again or sent to a model fail their own call, and nothing else."""

from __future__ import annotations

import itertools
import threading
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, model_serializer
from pydantic_ai import BinaryContent, ToolReturn

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


class Counted(BaseModel):
    """A result with a serializer of its own, which notes the threads that it runs in."""

    threads: ClassVar[list[str]] = []

    @model_serializer
    def written(self) -> dict[str, str]:
        self.threads.append(threading.current_thread().name)
        return {"text": "written"}


async def test_the_code_of_a_result_does_not_run_in_the_store(bench: Bench) -> None:
    Counted.threads.clear()

    def act() -> Counted:
        return Counted()

    stores = await bench.store.run(lambda tx: threading.current_thread().name)
    assert isinstance(await bench.start([calls(("act", {})), "done"], [act]), Finished)
    assert bench.script.results["call_0"] == '{"text":"written"}'
    assert Counted.threads
    assert stores not in Counted.threads


ITERATORS = [
    pytest.param(lambda: map(str, [1, 2, 3]), '["1","2","3"]', id="map"),
    pytest.param(lambda: ToolReturn(return_value=iter([1, 2])), "[1,2]", id="in a ToolReturn"),
    pytest.param(
        itertools.count, "cannot be passed on: ValueError: its iterator gave more than 10000 items", id="endless"
    ),
    pytest.param(lambda: map(int, ["x"]), "cannot be passed on: ValueError: invalid literal", id="raises"),
]


@pytest.mark.parametrize(("make", "told"), ITERATORS)
async def test_the_items_of_an_iterator_are_the_result(bench: Bench, make: Any, told: str) -> None:
    def act() -> Any:
        return make()

    assert isinstance(await bench.start([calls(("act", {})), "done"], [act]), Finished)
    assert told in bench.script.results["call_0"]


@pytest.mark.parametrize(
    ("make", "kept"),
    [
        (lambda: "a" * 500_000 + "the end", "the end"),
        (lambda: ["ä" * 100] * 5_000, '"]'),
        (lambda: ToolReturn(return_value="a" * 500_000 + "the end"), "the end"),
    ],
)
async def test_a_long_result_is_cut_in_the_middle(bench: Bench, make: Any, kept: str) -> None:
    step = await bench.start([calls(("flood", {})), "done"], [bench.box.tool("flood", lambda value: make())])
    assert isinstance(step, Finished)
    told = bench.script.results["call_0"]
    assert len(told) < 401_000
    assert "characters left out]" in told
    assert told.endswith(kept)


async def test_an_image_is_not_cut(bench: Bench) -> None:
    image = BinaryContent(b"x" * 500_000, media_type="image/png")
    step = await bench.start([calls(("draw", {})), "done"], [bench.box.tool("draw", lambda value: image)])
    assert isinstance(step, Finished)
    assert "left out" not in bench.script.results["call_0"]
