"""Drawing without a process: cards, replies and blocks on a console that writes to a string."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType
from rich.text import Text

from signoff.approvals.model import RequestState, Settlement
from signoff.cards.build import build_card
from signoff.terminal.render import draw_card, draw_ending, left
from signoff.terminal.replies import render_reply
from signoff.terminal.sanitize import CONTINUED, GUTTER, Block, Inert, chop
from signoff.text.visible import is_hidden, unescape, visible
from tests.conftest import ADA, make_batch, make_call, make_request

NOW = 1_000_000.0


def drawn(what: RenderableType, width: int = 60, *, colour: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        markup=False,
    )
    console.print(Inert(what))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_card_has_its_parts_in_order() -> None:
    request = make_request(
        make_call("delete_file", {"path": "a.txt"}), message="look twice", metadata={"summary": "bye"}
    )
    text = drawn(draw_card(build_card(make_batch(request, model_text="I would delete it"), now=NOW), NOW), 100)
    wanted = ["Tool Approval Required", "delete_file", "Tool's words", "bye", "path", "a.txt"]
    wanted += ["Note: look twice", "Why: the tool is declared", "Model's words", "not checked", "I would delete it"]
    wanted += ["Asked by Max", "may decide: Manage Server", "rejected in 5:00", "Request "]
    at = [text.index(words) for words in wanted]
    assert at == sorted(at)


def test_a_blank_line_of_a_folded_text_is_not_called_empty() -> None:
    request = make_request(make_call("send", {"text": "\n" * 15 + "rm -rf /"}))
    text = drawn(draw_card(build_card(make_batch(request), now=NOW), NOW), 100)
    assert text.index("(a blank line)") < text.index("… 14 more blank lines") < text.index("rm -rf /")
    assert "(empty)" not in text


def test_an_ending_is_one_line_or_one_for_each_call() -> None:
    batch = make_batch()
    expired = replace(batch.requests[0], state=RequestState.EXPIRED, settlement=Settlement(None, None, NOW))
    ended = drawn(draw_ending(build_card(replace(batch, requests=(expired,)), now=NOW), NOW))
    assert ended.strip() == "TIMEOUT - Request expired: delete_file"
    rejected = replace(make_request(), state=RequestState.CANCELLED, settlement=Settlement(None, ADA, NOW, "gone"))
    mixed = drawn(draw_ending(build_card(replace(batch, requests=(expired, rejected)), now=NOW), NOW))
    assert mixed.split("\n")[:3] == [
        "DECIDED: 1 expired, 1 cancelled",
        "delete_file: TIMEOUT - Request expired",
        "delete_file: CANCELLED - gone",
    ]


def test_a_long_line_cannot_pass_for_several() -> None:
    lines = drawn(Block("x" * 100 + "\nshort"), 42).splitlines()
    assert [line[:2] for line in lines] == [GUTTER, CONTINUED, CONTINUED, GUTTER]
    assert "".join(line[2:] for line in lines) == "x" * 100 + "short"


def test_only_a_diff_is_coloured() -> None:
    text = "@@ -1 +1 @@\n-old\n+new\n same"
    assert "\x1b[31m-old" in drawn(Block(text, diff=True), colour=True)
    assert "\x1b[32m+new" in drawn(Block(text, diff=True), colour=True)
    assert not re.search(r"\x1b\[3\dm", drawn(Block(text), colour=True))


@given(st.text())
def test_nothing_hidden_is_ever_written(text: str) -> None:
    """Row 6, for any text: in a block, in a reply, and where somebody forgot to make it visible."""
    for what in (Block(visible(text).text), render_reply(text), Text(text), Block(text)):
        written = drawn(what)
        assert not [char for char in written if is_hidden(char)]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n\t")), st.integers(8, 40))
def test_a_block_loses_nothing(text: str, width: int) -> None:
    rows = [row.plain[2:] for row in Block(visible(text).text).rows(width)]
    assert unescape("".join(rows)) == text
    assert all(len(row) <= width for row in rows)


@given(st.text(min_size=1), st.integers(8, 40))
def test_pieces_fit_however_wide_a_terminal_draws_a_letter(line: str, width: int) -> None:
    pieces = list(chop(line, width))
    assert "".join(pieces) == line
    assert all(sum(1 if c.isascii() else 2 for c in piece) <= width for piece in pieces)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[good](https://evil.example)", "good (https://evil.example)"),
        ("![cat](https://evil.example/cat.png)", "[image: cat] (https://evil.example/cat.png)"),
        ("<script>x</script>", "<script>x</script>"),
        ("one\ntwo", "  one\n  two"),
        ("&#8238;x", r"\u{202E}x"),
        ("[red]x[/red]", "[red]x[/red]"),
        ("```python\nprint(1)\n```", "│ print(1)"),
        ("\ud800", r"\u{D800}"),
        ("", "no reply text"),
    ],
)
def test_an_answer_shows_what_is_there(markdown: str, shown: str) -> None:
    written = "\n".join(line.rstrip() for line in drawn(render_reply(markdown)).splitlines())
    assert shown in written


def test_no_answer_makes_a_link() -> None:
    text = drawn(
        render_reply("[good](https://evil.example) <https://evil.example> ![x](https://evil.example)"), colour=True
    )
    assert "\x1b]" not in text


def test_no_answer_begins_in_the_first_column() -> None:
    fake = "╭─ Tool Approval Required ─╮\n╰──╯\n\n# you> \n\n- x\n\n```\ndecide> a\n```\n\n| a |\n|---|\n| b |"
    assert all(line[:2] == "  " for line in drawn(render_reply(fake)).splitlines())


@pytest.mark.parametrize(("seconds", "words"), [(-1, "0:00"), (59.9, "0:59"), (300, "5:00"), (3723, "1:02:03")])
def test_remaining_time(seconds: float, words: str) -> None:
    assert left(seconds) == words
