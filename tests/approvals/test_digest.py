"""A digest stands for exactly one call."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.digest import DEEPEST, bind, canonical, fingerprint
from signoff.approvals.model import Place
from tests.conftest import PLACE, make_call

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_the_order_of_keys_does_not_matter(args: dict[str, Any]) -> None:
    assert fingerprint(args) == fingerprint(dict(reversed(args.items())))


@pytest.mark.parametrize(
    "other",
    [
        make_call(args={"path": "b.txt"}),
        make_call(args={"path": "a.txt", "force": None}),
        make_call(args={"path": ["a.txt"]}),
        make_call("delete_files"),
        replace(make_call(), schema="another"),
    ],
)
def test_any_other_call_has_another_digest(other: Any) -> None:
    assert bind(other, PLACE).digest != make_call().digest


@pytest.mark.parametrize("place", [replace(PLACE, server="2"), replace(PLACE, conversation="2")])
def test_a_digest_holds_in_its_server_and_conversation_only(place: Place) -> None:
    call = make_call()
    assert bind(call, place).digest != call.digest
    assert bind(call, replace(PLACE, channel="2")).digest == call.digest


def test_what_is_not_plain_json_is_refused() -> None:
    deep: Any = "end"
    for _ in range(200):
        deep = [deep]
    for value in (float("nan"), float("inf"), deep):
        with pytest.raises(ValueError):
            canonical({"value": value})


@pytest.mark.parametrize("bottom", ["end", 1, True, None, 1.5])
def test_arguments_are_as_deep_as_permitted_for_every_type(bottom: Any) -> None:
    deepest: Any = bottom
    for level in range(DEEPEST - 1):
        deepest = [deepest] if level % 2 else {"inner": deepest}
    assert json.loads(canonical({"value": deepest})) == {"value": deepest}
    with pytest.raises(ValueError, match="levels deep"):
        canonical({"value": [deepest]})
