"""The line of a key, in any text that tomllib accepts."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from signoff.config.toml_lines import TomlLines


def test_the_nearest_thing_around_a_missing_key_is_found() -> None:
    lines = TomlLines("a.b = 1\n[c]\nd = { e = 1, f = [\n1,\n2] }\n[[c.g]]\n[[c.g]]\n[c.g.h]\ni = 1\n[[c.g]]\n")
    assert lines.find(("a", "b")) == 1
    assert lines.find(("c", "d", "f", 1)) == 5
    assert lines.find(("c", "d", "f", 1, "str")) == 5
    assert lines.find(("c", "g", 1, "h", "i")) == 9
    assert lines.find(("c", "g", 1, "missing")) == 7
    assert lines.find(("c", "g", 2, "missing")) == 10
    assert lines.find(("c", "missing")) == 2
    assert lines.find(("missing",)) == 1


_keys = st.text(alphabet="ab_-\"'. é", min_size=1, max_size=5)
_values = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(max_size=8), st.sampled_from(['"""x', "'''", "#", "[[a]]", "\n"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_keys, inner, max_size=3)),
    max_leaves=6,
)


def _toml(value: Any, spread: str) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)} = {_toml(item, '')}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{spread}" + f", # ]\n{spread}".join(_toml(item, spread) for item in value) + f"{spread}]"
    if isinstance(value, bool):
        return str(value).lower()
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in value)
    return f'"{escaped}"'


@given(
    st.lists(st.tuples(_keys, _values, st.sampled_from(["", "\n", " # = [\n"])), max_size=5, unique_by=lambda t: t[0])
)
def test_the_line_of_every_key_is_found_whatever_stands_before_it(items: list[tuple[str, Any, str]]) -> None:
    text, expected = "", {}
    for number, (key, value, spread) in enumerate(items):
        text += f"[[t]] # {number}\n"
        expected[("t", number, key)] = text.count("\n") + 1
        text += f"{_text(key)} = {_toml(value, spread)}\n"
    assert len(tomllib.loads(text).get("t", [])) == len(items)
    lines = TomlLines(text)
    assert {path: lines.find(path) for path in expected} == expected
