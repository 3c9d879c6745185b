"""Tall cards fold: the beginning and the end of what is long, how much is left out, and the whole in the file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.model import Batch, Choice
from signoff.bot.card_view import render
from signoff.cards.build import build_card
from signoff.cards.folding import BLOCKS, FOLD, FOLDED, LEAST, SETTLED, SETTLED_FOLD, fold
from signoff.cards.layout import COLUMNS, Value
from signoff.cards.model import Card, Shape
from tests.rigs.cards import NOW, arguments_of_file, as_text, card_of, make_batch, make_request, settle
from tests.rigs.drawn_cards import texts


def numbered(lines: int) -> str:
    return "\n".join(f"line {number}" for number in range(1, lines + 1))


def rows(card: Card) -> int:
    """Count the quoted lines as a phone shows them."""
    quotes = [quote for call in card.calls for quote in call.quotes if quote.shape is Shape.BLOCK]
    return sum(Value("", quote.text).height for quote in quotes)


def call_with(**args: Any) -> Batch:
    return make_batch(make_request(args=args))


@pytest.mark.parametrize(
    "value",
    [
        numbered(FOLD + 1),
        numbered(3000),
        [f"person number {n}" for n in range(60)],
        {f"key {n}": n for n in range(60)},
        "All work and no play makes Jack a dull boy. " * 40,
        "x" * 5000,
    ],
)
def test_anything_past_25_lines_is_folded_and_attached(value: object) -> None:
    card = card_of(call_with(text=value))
    first, last = card.calls[0].quotes
    assert 0 < rows(card) <= FOLDED
    assert first.after.startswith("… ")
    assert (last.continued, last.after) == (True, "")
    assert arguments_of_file(card.files[0]) == {"text": value}
    assert card.files[0].name in as_text(card.calls[0].attached)


def test_what_has_25_lines_is_shown_whole() -> None:
    card = card_of(call_with(text=numbered(FOLD)))
    (quote,) = card.calls[0].quotes
    assert (quote.text, quote.after, card.files) == (numbered(FOLD), "", ())


def test_lines_are_counted_as_a_phone_shows_them() -> None:
    line = "x" * (COLUMNS + 1)
    assert card_of(call_with(text="\n".join([line] * 9 + ["y"] * 7))).files == ()
    assert card_of(call_with(text="\n".join([line] * 10 + ["y"] * 6))).files


def test_a_wide_medium_shows_a_paragraph_that_a_phone_folds() -> None:
    batch = call_with(text="word " * 200)
    assert build_card(batch, now=NOW).files
    assert build_card(batch, now=NOW, columns=80).files == ()


def test_the_lines_left_out_are_counted() -> None:
    first, last = card_of(call_with(text=numbered(60))).calls[0].quotes
    shown = (*first.text.split("\n"), *last.text.split("\n"))
    assert (first.note, first.after) == ("60 lines", f"… {60 - len(shown)} more lines")
    assert shown[0] == "line 1"
    assert shown[-1] == "line 60"


def test_two_long_values_share_the_lines_and_a_short_one_is_whole() -> None:
    card = card_of(call_with(a=numbered(60), b=numbered(60), c="one\ntwo"))
    assert rows(card) <= FOLDED + 2
    assert "one\ntwo" in [quote.text for quote in card.calls[0].quotes]


def test_a_settled_card_is_folded_harder_and_keeps_its_file() -> None:
    batch = call_with(text=numbered(60))
    before, after = card_of(batch), card_of(settle(batch))
    assert before.files == after.files
    assert rows(after) == SETTLED
    first, last = after.calls[0].quotes
    assert first.after == f"… {60 - SETTLED} more lines"
    assert last.text.endswith("line 60")


@pytest.mark.parametrize("choice", [Choice.ACCEPT, Choice.REJECT, None])
def test_nothing_is_lost_if_a_card_is_folded_only_once_it_is_settled(choice: Choice | None) -> None:
    batch = call_with(text=numbered(SETTLED_FOLD + 1))
    assert card_of(batch).files == ()
    card = card_of(settle(batch, choice))
    assert rows(card) == SETTLED
    assert arguments_of_file(card.files[0]) == {"text": numbered(SETTLED_FOLD + 1)}
    assert card_of(settle(call_with(text=numbered(SETTLED_FOLD)), choice)).files == ()


@pytest.mark.parametrize("text", [numbered(40), "word " * 400])
def test_if_no_file_can_be_attached_nothing_is_folded_for_its_height(text: str) -> None:
    """Attack 7: a folded call could not be accepted there."""
    batch = call_with(text=text)
    for state in (batch, settle(batch)):
        (quote,) = card_of(state, can_attach=False).calls[0].quotes
        assert quote.text == text
    assert card_of(batch, can_attach=False).actions[0].label == "Accept"


def test_very_many_blocks_are_in_the_file() -> None:
    card = card_of(call_with(**{f"name_{n:02}": "x" * 90 for n in range(30)}), 20_000)
    assert len(card.calls[0].quotes) == BLOCKS
    assert "20 of 30 values only there" in as_text(card.calls[0].attached)


async def test_a_folded_value_has_one_label() -> None:
    text = "\n".join(texts(render(call_with(text=numbered(60)), NOW)))
    assert text.count("`text`") == 1
    assert "```\n-# … 52 more lines\n```\nline 59" in text


@given(st.lists(st.lists(st.integers(1, 80), max_size=6), min_size=1, max_size=4), st.booleans())
def test_a_folded_page_is_never_tall(heights: list[list[int]], settled: bool) -> None:
    calls = [[Value("x", numbered(height)) for height in call] for call in heights]
    folded = [value for call in fold(calls, settled=settled, can_attach=True) for value in call]
    assert [value.text for value in folded] == [value.text for call in calls for value in call]
    wholes = [v.height for v in folded if v.lines_at_most and v.height <= v.lines_at_most]
    cuts = [v.shown_lines for v in folded if v.lines_at_most and v.height > v.lines_at_most]
    limit = max(FOLD, 8 * len(calls))
    assert sum(wholes) <= limit + LEAST * len(wholes)
    assert sum(cuts) <= FOLDED * len(calls) + LEAST * len(cuts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n" * 15 + "rm -rf /", "*(a blank line)*\n-# … 14 more blank lines\n```\nrm -rf /\n```"),
        ("\n" * 15 + numbered(60), "*(a blank line)*\n-# … 72 more lines\n```\nline 59"),
        ("same\n" * 15, "```\nsame\n```\n-# … 14 more lines like the last one\n*(a blank line)*"),
    ],
)
async def test_a_blank_line_of_a_folded_text_is_not_called_empty(text: str, said: str) -> None:
    drawn = "\n".join(texts(render(call_with(text=text), NOW)))
    assert said in drawn
    assert "(empty)" not in drawn


WORDS = "I write the file now, because you asked me to do so. " * 9


def test_a_call_beside_long_words_of_the_model_can_be_accepted_without_a_file() -> None:
    """The model's words are cut on a phone, and nobody may accept a call beside a cut text if no file has the rest."""
    batch = make_batch(make_request(args={"path": "a.txt"}), model_text=WORDS)
    assert len(card_of(batch).files) == 1
    card = card_of(batch, can_attach=False)
    assert card.model_text
    assert card.model_text.text == WORDS
    assert [action.label for action in card.actions][:2] == ["Accept", "Reject"]


def test_a_wide_medium_shows_words_of_the_model_that_a_phone_folds() -> None:
    batch = make_batch(make_request(args={"path": "a.txt"}), model_text=WORDS)
    assert build_card(batch, now=NOW, columns=80).files == ()
