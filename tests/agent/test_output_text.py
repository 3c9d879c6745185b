"""An output as text: names and values as a list that no value can forge."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic import BaseModel
from pydantic_ai.messages import BinaryContent

from signoff.agent.output_text import DEEPEST, EMPTY, NOTHING, text_of_output
from tests.rigs.discord_markdown import MARKUP, read
from tests.rigs.hostile_text import ATTACKS

MORE = [
    "===",
    "1) one",
    "    code",
    "&#42;&#42;x&#42;&#42;",
    "<b>x</b>",
    "+ list",
    "~~~",
    "a | b",
    "--- | ---",
    "&nbsp;",
]
HOSTILE = st.text() | st.lists(st.sampled_from(ATTACKS + MORE), max_size=4).map("\n".join)


class Address(BaseModel):
    city: str
    page: str = "https://example.com/a_b_c"


class Person(BaseModel):
    name: str
    addresses: list[Address]
    tags: list[str] = []
    note: str | None = None


def test_a_model_is_a_list_of_names_and_values() -> None:
    person = Person(name="Ada *the first*", addresses=[Address(city="Bern")], tags=["a", "- b"])
    assert text_of_output(person).splitlines() == [
        r"- **name:** Ada \*the first\*",
        "- **addresses:**",
        "  - **1:**",
        "    - **city:** Bern",
        "    - **page:** https://example.com/a_b_c",
        "- **tags:**",
        "  - a",
        r"  - \- b",
        "- **note:** *(none)*",
    ]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("as *it* is", "as *it* is"),
        (None, NOTHING),
        ([], NOTHING),
        ({}, NOTHING),
        (True, "true"),
        (-1.5, r"\-1.5"),
        ({"a": {}, "b": [], "c": "  "}, "- **a:** *(empty)*\n- **b:** *(empty)*\n- **c:** *(empty)*"),
        ({"note": "one\n\n- two"}, "- **note:**\n> one\n> \n> \\- two"),
        (
            BinaryContent(b"123", media_type="image/png"),
            "The output is a file (image/png, 3 bytes), which is not shown.",
        ),
    ],
)
def test_the_other_kinds(output: Any, text: str) -> None:
    assert text_of_output(output) == text


def test_very_deep_values_are_json_at_last() -> None:
    value: Any = "end"
    for number in range(DEEPEST + 3):
        value = {f"n{number}": value}
    lines = text_of_output(value).splitlines()
    assert len(lines) == DEEPEST
    assert lines[-1].lstrip().startswith('- **n3:** {"n2"')


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | HOSTILE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HOSTILE, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), HOSTILE, min_size=1))
def test_no_value_forges_a_field(values: dict[str, str]) -> None:
    """Read as Markdown, the text has one list entry for each field and nothing but text, bold names and quotes."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("strikethrough").enable("table")
    tokens = parser.parse(text_of_output(values))
    entries = [token for token in tokens if token.type == "list_item_open"]
    assert len(entries) == len(values)
    kinds = {token.type for token in tokens} | {inner.type for token in tokens for inner in token.children or ()}
    blocks = {
        f"{name}_{end}" for name in ("bullet_list", "list_item", "paragraph", "blockquote") for end in ("open", "close")
    }
    allowed = {"text", "softbreak", "strong_open", "strong_close", "em_open", "em_close", "inline", "text_special"}
    allowed |= {"code_block"}  # an indented line of a quote
    assert kinds <= blocks | allowed, kinds - blocks - allowed


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), HOSTILE, min_size=1))
def test_no_value_is_markup_on_discord(values: dict[str, str]) -> None:
    for line in text_of_output(values).split("\n"):
        rest = re.sub(r"^(?:- \*\*[abc]:\*\* ?|> )", "", line)
        assert rest != line, "each line is ours or quoted"
        pieces = read(rest)
        assert {piece.kind for piece in pieces} <= {"plain", "escaped"}
        if rest not in (EMPTY, "https://evil.example"):
            assert not MARKUP.search("".join(piece.text if piece.kind == "plain" else "x" for piece in pieces)), rest


@given(VALUES)
def test_every_value_can_be_shown(value: Any) -> None:
    text = text_of_output({"value": value})
    assert text.startswith("- **value:**")
    assert text_of_output(json.loads(json.dumps(value))) or isinstance(value, str)
