"""The table of docs/parity.md: it has every promised behaviour, and every test that it names exists and runs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.rigs.named_tests import problem

TESTS = Path(__file__).parent
TABLE = TESTS.parent / "docs" / "parity.md"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")

REQUIRED = {
    *(f"A{n}" for n in range(1, 8)),
    *(f"F{n}" for n in range(1, 8)),
    *(f"C{n}" for n in range(1, 6)),
    *(f"U{n}" for n in range(1, 5)),
    *(f"L{n}" for n in range(1, 5)),
    *(f"B{n}" for n in (*range(2, 14), 16, 18, 21)),
}
NOT_YET: set[str] = set()
"""The behaviours that are still to come. The table says so, and says what holds meanwhile."""


def rows() -> dict[str, str]:
    """Return promised behaviour -> the cell that proves it, for each row."""
    lines = [line.split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    found = [(line[0].removeprefix("| "), line[1]) for line in lines if re.match(r"\| [A-Z]\d", line[0])]
    assert [what for what, count in Counter(what for what, _ in found).items() if count > 1] == []
    return dict(found)


def number(row: str) -> str:
    return row.split()[0]


def test_every_promise_has_a_row() -> None:
    assert {number(row) for row in rows()} == REQUIRED


def test_only_what_is_known_to_come_later_is_missing() -> None:
    assert {number(row) for row, proof in rows().items() if proof.startswith("not yet: ")} == NOT_YET


@pytest.mark.parametrize("row", rows())
def test_the_tests_of_a_row_exist_and_run(row: str) -> None:
    named = NAMED.findall(rows()[row])
    assert named, f"nothing proves: {row}"
    assert [found for file, name in named if (found := problem(file, name))] == [], f"name what proves this now: {row}"
