"""`make test` and `make long` together run every test: only what `make long` runs as a whole is not even imported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.conftest import LONG_FILES, TESTS, pytest_ignore_collect

FILES = {path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}


@pytest.mark.parametrize(
    ("chosen", "left_out"),
    [("not long", LONG_FILES), ("not slow and not long", LONG_FILES), ("long", set[str]()), ("", set[str]())],
)
def test_a_run_leaves_out_only_files_that_are_long_as_a_whole(chosen: str, left_out: set[str]) -> None:
    assert FILES >= LONG_FILES
    config = cast("Any", SimpleNamespace(option=SimpleNamespace(markexpr=chosen)))
    assert {name for name in FILES if pytest_ignore_collect(TESTS / name, config)} == left_out
