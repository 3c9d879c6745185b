"""How single values are shown: distinct types, labels, and the division of the budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.cards.contents import read_calls
from signoff.cards.layout import (
    LABEL_BUDGET,
    NOTE_BUDGET,
    Quoted,
    Value,
    argument,
    argument_label,
    cost,
    quote_values,
    share,
)
from tests.rigs.cards import make_batch, make_request


def _natural(value: Value) -> Quoted:
    assert value.natural is not None
    return value.natural


LOOK_ALIKE_VALUES: list[Any] = [
    "5",
    5,
    5.0,
    "null",
    None,
    "true",
    True,
    "",
    [],
    {},
    "[]",
    "{}",
    '"5"',
    " ",
    "nul",
    "0",
    0,
]


def test_no_two_different_values_look_the_same() -> None:
    shown = [_natural(argument("x", value)).quotes for value in LOOK_ALIKE_VALUES]
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize(
    ("value", "text", "note"),
    [
        ("hello", "hello", ""),
        ("5", "5", "text"),
        (5, "5", "number"),
        ("null", "null", "text"),
        (None, "null", "null"),
        (True, "true", "true or false"),
        ("", "", "empty text"),
        ([1, 2], "[1, 2]", "list of 2"),
        ({"b": 1, "a": "x"}, '{"a": "x", "b": 1}', "object of 2"),
        ("a\nb\nc\nd", "a\nb\nc\nd", "4 lines"),
        ("x" * 201, "x" * 201, "201 characters"),
    ],
)
def test_values_and_their_notes(value: Any, text: str, note: str) -> None:
    (quote,) = _natural(argument("x", value)).quotes
    assert (quote.text, quote.note) == (text, note)


def test_short_values_come_before_long_ones_whatever_the_order() -> None:
    args = {"content": "x\n" * 9, "path": "p", "a": "y" * 500, "mode": 1}
    for written in (args, dict(reversed(args.items()))):
        (draft,) = read_calls(make_batch(make_request(args=written)))
        assert [value.label for value in draft.values] == ["mode", "path", "a", "content"]


def test_names_that_are_not_one_word_are_quoted() -> None:
    assert argument_label("file_path") == ("file_path", False)
    assert argument_label("a b") == ('"a b"', False)
    assert argument_label("") == ('""', False)
    assert argument_label("a\u202e") == ('"a\\u{202E}"', False)
    long, was_cut = argument_label("n" * 900)
    assert (len(long), was_cut) == (LABEL_BUDGET, True)
    assert not _natural(argument("n" * 900, 1)).complete


def test_equal_lines_in_a_list_are_collapsed_with_their_kind() -> None:
    (first, last) = _natural(argument("x", [0] * 400)).quotes
    assert (first.note, first.after) == ("list of 400, 402 lines", "… 398 more lines like the last one")
    assert last.text == "  0\n]"


def test_only_the_longest_runs_are_collapsed() -> None:
    text = "".join(f"{i}\n" + "\n" * (20 + i) for i in range(5)) + "end"
    quotes = _natural(Value("x", text, lines_at_most=100)).quotes
    assert len(quotes) == 4
    assert quotes[-1].text.endswith("end")


@given(st.lists(st.integers(0, 500), max_size=12), st.integers(0, 2000))
def test_room_is_shared_out_fairly(wants: list[int], budget: int) -> None:
    given_out = share(wants, budget)
    assert sum(given_out) <= budget
    assert all(0 <= got <= want for got, want in zip(given_out, wants, strict=True))
    if sum(wants) <= budget:
        assert given_out == wants


@given(st.lists(st.text("ab\n\u202e \u0301", max_size=400), max_size=6), st.integers(0, 1500))
def test_quotes_stay_within_their_budget(texts: list[str], budget: int) -> None:
    values = [argument(f"name{i}" * (i + 1), text) for i, text in enumerate(texts)]
    quoted = quote_values(values, budget)
    assert cost(quoted.quotes) <= budget
    assert all(len(q.note) <= NOTE_BUDGET for q in quoted.quotes)
    assert quoted.missing + len({q.label for q in quoted.quotes}) == len(values)
