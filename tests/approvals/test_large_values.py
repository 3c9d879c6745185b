"""Work on large values leaves the event loop; work on small ones stays."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pydantic import BaseModel

from signoff.approvals.large_values import LARGE, is_large, off_loop_if_large
from tests.conftest import make_batch, make_call, make_request


class Page(BaseModel):
    text: str
    more: list[int] = []


LONG = "x" * (LARGE + 1)
CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    [
        LONG,
        {"text": LONG},
        {LONG: 1},
        [[[LONG]]],
        list(range(LARGE)),
        {str(n): n for n in range(LARGE)},
        {"page": Page(text=LONG)},
        Page(text="", more=list(range(LARGE))),
        ["x" * 1000] * 30,
        CYCLE,
        make_batch(make_request(make_call(args={"text": LONG}))),
        make_batch(make_request(preview=LONG)),
        make_batch(model_text=LONG),
    ],
)
def test_long_texts_and_many_parts_are_large(value: object) -> None:
    assert is_large(value)


@pytest.mark.parametrize("value", ["", None, {"path": "a.txt"}, list(range(100)), Page(text="hello"), make_batch()])
def test_usual_values_are_not(value: object) -> None:
    assert not is_large(value)


async def test_only_work_on_a_large_value_runs_in_a_thread() -> None:
    here = threading.current_thread()
    assert await off_loop_if_large("short", threading.current_thread) is here
    assert await off_loop_if_large(LONG, threading.current_thread) is not here


async def test_an_error_comes_back_as_it_is() -> None:
    def fail() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await off_loop_if_large(LONG, fail)
