"""A value that was masked before gets its kept mask, and only the time shows the difference."""

from __future__ import annotations

import copy
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.text.secrets.kept_masks import KeptMasks
from signoff.text.secrets.masker import Masker

KEY = b"0123456789abcdef"
LONG = "lorem ipsum dolor sit amet " * 100
PIECES = [
    "password=",
    "Zebra42x",
    '"token": "',
    "ghp_" + "Ab12" * 9,
    "‹masked",
    r"\u{2039}masked",
    "\ud83d",
    "\ude00",
    " ",
]

TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=5).map("".join)
LEAVES = TEXTS | st.none() | st.booleans() | st.integers() | st.floats()
NAMES = TEXTS | st.sampled_from(["password", "tokens", "pin", "content"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
ARGS = st.dictionaries(NAMES, VALUES, max_size=4).map(lambda args: {**args, "long": LONG})


def shown(masker: Masker, args: dict[str, Any]) -> str:
    """Return the masked arguments exactly, with the order of names, or the error."""
    try:
        return repr(masker.mask_args(args))
    except ValueError as error:
        return f"no: {error}"


def held_by(masker: Masker) -> KeptMasks:
    (held,) = [value for value in vars(masker).values() if isinstance(value, KeptMasks)]
    return held


class Counted:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> str:
        self.times += 1
        return "made"


MASKER = Masker(KEY)


@given(ARGS)
@settings(deadline=None)
def test_kept_and_masked_anew_are_the_same(args: dict[str, Any]) -> None:
    anew = shown(Masker(KEY), args)
    assert shown(MASKER, copy.deepcopy(args)) == shown(MASKER, copy.deepcopy(args)) == anew


@given(TEXTS.map(lambda text: LONG + text))
@settings(deadline=None)
def test_a_kept_text_is_the_text_masked_anew(text: str) -> None:
    assert MASKER.mask_untrusted(text) == MASKER.mask_untrusted(text) == Masker(KEY).mask_untrusted(text)


def test_the_second_time_costs_next_to_nothing() -> None:
    masker = Masker(KEY)
    spent: list[float] = []
    for _ in range(2):
        start = time.thread_time()
        masker.mask_args({"content": LONG * 200, "many": ["a few words"] * 10_000})
        spent.append(time.thread_time() - start)
    first, second = spent
    assert second < first / 10


def test_what_was_made_once_is_not_made_again() -> None:
    kept = KeptMasks(least=0)
    work = Counted()
    assert [kept.once("arguments", {"a": 1}, work) for _ in range(3)] == ["made"] * 3
    assert work.times == 1


def test_the_arguments_of_an_ordinary_call_are_masked_once() -> None:
    masker = Masker(KEY)
    for _ in range(3):
        masker.mask_args({"path": "notes/today.txt", "content": "a line"})
    assert len(held_by(masker)) == 1


def test_what_cannot_be_masked_is_not_tried_again_either() -> None:
    masker = Masker(KEY)
    for _ in range(2):
        with pytest.raises(ValueError, match="two names are the same"):
            masker.mask_args({"‹masked x": 1, r"\u{2039}masked x": 2, "long": LONG})
        assert len(held_by(masker)) == 1


def test_who_changes_what_they_were_given_changes_it_for_nobody_else() -> None:
    masker = Masker(KEY)
    args = {"content": LONG, "list": [{"a": "b"}]}
    for _ in range(3):
        found = masker.mask_args(args)
        assert found == args
        found["list"][0]["a"] = "changed"
        found["list"].append("added")
    assert args["list"] == [{"a": "b"}]


def test_values_that_are_equal_but_not_the_same_are_told_apart() -> None:
    kept = KeptMasks(least=0)
    values = [
        1,
        True,
        1.0,
        "1",
        [1],
        (1,),
        {"1": 1},
        -0.0,
        0.0,
        "\ud83d\ude00",
        "😀",
        None,
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
    ]
    assert [kept.once("x", value, lambda value=value: repr(value)) for value in values] == list(map(repr, values))
    assert kept.once("y", 1, lambda: "another kind") == "another kind"


def test_another_masker_shares_nothing() -> None:
    args = {"badge": "Zebra42x", "password": "Zebra42x", "long": LONG}
    found = MASKER.mask_args(args)
    assert found["badge"] == "Zebra42x"
    assert replace(MASKER, names=("badge",)).mask_args(args)["badge"] == found["password"]
    assert replace(MASKER, key=b"another key, 16+").mask_args(args)["password"] != found["password"]


def test_entries_and_bytes_are_bounded_and_the_oldest_go_first() -> None:
    kept = KeptMasks(entries=3, size=1_000, least=0)
    for number in range(10):
        kept.once("x", number, lambda: "m" * 100)
    assert len(kept) == 3
    again = Counted()
    kept.once("x", 9, again)
    assert again.times == 0
    kept.once("x", 6, again)
    assert again.times == 1
    for number in range(10, 20):
        kept.once("x", number, lambda: "m" * 400)
        assert kept.size <= 1_000
    assert len(kept) == 2
    kept.once("x", 20, lambda: "m" * 2_000)
    assert len(kept) == 2, "what is larger than all budget is not kept, and pushes nothing out"


def test_what_is_short_or_no_plain_data_is_not_kept() -> None:
    kept = KeptMasks()
    work = Counted()
    for value in ("short", object(), {"a": object()}, [LONG, threading.Lock()]):
        assert kept.once("x", value, work) == kept.once("x", value, work) == "made"
    assert (len(kept), work.times) == (0, 8)


def test_nothing_is_kept_as_it_came() -> None:
    masker = Masker(KEY)
    masker.mask_args({"password": "Zebra42x", "long": LONG})
    assert len(held_by(masker)) == 1
    assert "Zebra42x" not in str(vars(held_by(masker)))
    assert "Zebra42x" not in repr(masker)


def test_what_two_make_at_the_same_time_is_counted_once() -> None:
    once, twice = KeptMasks(least=0), KeptMasks(least=0)
    once.once("x", 1, Counted())
    twice.once("x", 1, lambda: twice.once("x", 1, Counted()))
    assert (len(twice), twice.size) == (1, once.size)


def test_threads_may_share_it() -> None:
    kept = KeptMasks(entries=5, size=2_000, least=0)

    def use(seed: int) -> bool:
        right = [kept.once("x", n % 9, lambda n=n: f"{n % 9}" * 300) == f"{n % 9}" * 300 for n in range(seed, 3_000)]
        return all(right)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(8)))
    assert len(kept) <= 5
    assert 0 < kept.size <= 2_000
