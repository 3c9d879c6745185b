"""Forms from schemas that other people wrote, and that may be wrong in every way."""

from __future__ import annotations

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
