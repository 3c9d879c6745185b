"""An edited call shows what the model asked for and what runs, and each line of text once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.model import ApprovalRequest, Edit
from signoff.approvals.tool_description import ToolDescription
from signoff.bot.card_view import render
from signoff.cards.edited_values import changed_values
from signoff.cards.line_changes import COMPARED, compare, name_new_lines
from tests.rigs.cards import ADMIN, NOW, arguments_of_file, card_of, make_batch, make_request
from tests.rigs.drawn_cards import texts

TEXT = st.text("ab\n ", max_size=30)


def edited(before: dict[str, Any], now: dict[str, Any], **changes: Any) -> ApprovalRequest:
    return make_request(args=now, edit=Edit(before, "00" * 32, ADMIN, NOW), **changes)


def write(before: str, now: str) -> ApprovalRequest:
    """A write to a new file whose content a person edited, with the diff that the tool would make of it."""
    diff = "".join(f"+{line}\n" for line in now.splitlines())
    preview = f"New file a.txt.\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,{now.count(chr(10))} @@\n{diff}".rstrip("\n")
    args = [{"path": "a.txt", "content": content} for content in (before, now)]
    return edited(*args, preview=preview, diff_of="content", description=ToolDescription(order=("path", "content")))


def drawn(request: ApprovalRequest) -> str:
    return "\n".join(texts(render(make_batch(request), NOW)))


async def test_an_edited_write_shows_the_diff_and_the_lines_that_do_not_run() -> None:
    text = drawn(write("one\ntwo\nthree\n", "one\nTWO\nthree\nfour\n"))
    assert "**path** `a.txt` · **content (lines that the edit replaced)** `two`" in text
    assert "**content (as a diff)** · lines 2, 4 by the edit\n```diff\nNew file a.txt.\n+one\n+TWO" in text
    for line in ("one", "two", "TWO", "three", "four"):
        assert text.count(line) == 1, line


async def test_a_write_that_was_replaced_whole_shows_the_whole_original() -> None:
    text = drawn(write("PORT=8080", "PORT=9090"))
    assert "**content (original, does not run)** `PORT=8080`" in text
    assert "· line 1 by the edit" in text


async def test_an_edit_that_only_takes_lines_out_says_so() -> None:
    text = drawn(write("one\ntwo\n", "one\n"))
    assert "**content (as a diff)** · lines were removed by the edit" in text
    assert "**content (lines that the edit replaced)** `two`" in text


@pytest.mark.parametrize(("count", "said"), [(1, "a line break"), (2, "2 line breaks")])
async def test_blank_lines_that_the_edit_took_out_are_not_called_empty(count: int, said: str) -> None:
    text = drawn(write("one\n" + "\n" * count + "two\n", "one\ntwo\n"))
    assert f"**content (lines that the edit replaced)**\n*({said} and nothing else)*" in text


def test_many_lines_that_do_not_run_are_folded_and_in_the_file() -> None:
    before = "".join(f"old {n}\n" for n in range(60))
    request = write(before, "new\n")
    card = card_of(make_batch(request))
    assert card.calls[0].quotes[1].after == "… 52 more lines"
    (file,) = card.files
    assert "arguments before the edit, which do not run" in file.data.decode()
    assert arguments_of_file(file) == request.call.args


async def test_a_text_of_several_lines_is_shown_once_with_both_versions() -> None:
    text = drawn(edited({"body": "Dear all,\nit is done.\nBye"}, {"body": "Dear all,\nit is not done.\nBye"}))
    changes = " Dear all,\n-it is done.\n+it is not done.\n Bye"
    assert f"**body (edited: - is the original, + runs)**\n```diff\n{changes}\n```" in text


async def test_short_values_share_a_line() -> None:
    text = drawn(edited({"mode": "a", "n": 5}, {"mode": "b", "n": 5}))
    assert "**mode (original, does not run)** `a` · **mode (edited)** `b` · **n** `5`" in text


def test_an_argument_without_a_name_is_not_taken_for_the_diffed_one() -> None:
    request = make_request(args={"": "rm -rf /"}, preview="- a", edit=Edit({"": "ls"}, "00" * 32, ADMIN, NOW))
    shown = [quote.text for quote in card_of(make_batch(request)).calls[0].quotes]
    assert "rm -rf /" in shown
    assert "ls" in shown


@given(TEXT, TEXT)
def test_both_versions_can_be_read_from_the_changes(before: str, now: str) -> None:
    values = changed_values("x", before, now)
    if len(values) == 2:
        assert [value.text for value, _ in values] == [before, now]
        return
    lines = values[0][0].text.split("\n")
    assert "\n".join(line[1:] for line in lines if line[0] in " -") == before
    assert "\n".join(line[1:] for line in lines if line[0] in " +") == now


def test_large_differences_are_not_matched_line_by_line() -> None:
    old, new = [f"{n}" for n in range(2 * COMPARED)], [f"{n + 1}" for n in range(2 * COMPARED)]
    assert [sign for sign, _ in compare(old, new)] == ["-"] * len(old) + ["+"] * len(new)


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        ("  ", ""),
        (" - ", ""),
        (" + ", "line 2"),
        ("-+ ++", "lines 1, 3-4"),
        ("+ + + + +", "lines 1, 3, 5, 7 and more"),
    ],
)
def test_new_lines_are_named_by_number(signs: str, words: str) -> None:
    assert name_new_lines([(sign, "x") for sign in signs]) == words
