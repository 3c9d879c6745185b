"""Strategies for arbitrary arguments of a call."""

from __future__ import annotations

from hypothesis import strategies as st

ANY_CHAR = st.characters(blacklist_categories=())
NASTY = st.sampled_from(
    ["\u202e", "\n" * 30, "x\n" * 200, "`" * 9, "\\u{202E}", "\u0301" * 9, "@everyone", "xn--pple-43d.com"]
)
TEXT = st.text(ANY_CHAR, max_size=30) | st.lists(NASTY | st.text(ANY_CHAR, max_size=9), max_size=6).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
ARGS = st.dictionaries(TEXT, JSON, max_size=8)
