"""Forms from schemas that other people wrote, and that may be wrong in every way."""

from __future__ import annotations

import time
from typing import Any

import pytest

from signoff.approvals.answer_forms import Unaskable, inquire


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "default": nested(2000)},
        {"type": "string", "minLength": 10**400},
        {"type": "number", "default": float("nan")},
        {"type": "string", "title": "\ud800"},
    ],
    ids=["deep", "too large", "no number", "no text"],
)
def test_a_schema_that_could_not_be_stored_is_refused(field: dict[str, Any]) -> None:
    with pytest.raises(Unaskable):
        inquire("Which?", {"type": "object", "properties": {"a": field}})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {f"a{n}": {"type": "string"} for n in range(100_000)}},
        {"properties": {"a": {"type": "string"}}, "required": [f"b{n}" for n in range(1_000_000)]},
        {"properties": {"a": {"enum": [str(n) for n in range(500_000)]}}},
        {"properties": {"a": {"type": "string", "default": [0] * 1_000_000}}},
    ],
    ids=["fields", "required", "options", "default"],
)
def test_a_huge_schema_is_refused_without_reading_all_of_it(schema: dict[str, Any]) -> None:
    before = time.perf_counter()
    with pytest.raises(Unaskable, match="more than"):
        inquire("Which?", {"type": "object", **schema})
    assert time.perf_counter() - before < 0.1
