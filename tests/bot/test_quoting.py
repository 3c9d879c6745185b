"""Quoted text stays inside its code, and our own text has no markup but bold."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.bot import quoting
from signoff.cards.model import Moment, Person, RoleRef
from tests.rigs.discord_markdown import MARKUP, live, read, shown
from tests.rigs.hostile_text import ATTACKS

hostile = st.one_of(st.sampled_from(ATTACKS), st.text(st.sampled_from("`\n\\ a*_<@1>#-[]()|~:.😀"), max_size=60))


@given(st.lists(hostile, max_size=5).map("".join))
@settings(deadline=None)
def test_a_block_is_exactly_one_block_whatever_is_in_it(text: str) -> None:
    """Attacks 1 and 2."""
    made, note = quoting.block(text)
    after = f"{made}\n**status**"
    blocks = [piece for piece in read(after) if piece.kind == "block"]
    if not text.strip("\n"):
        assert blocks == []
        assert re.search("empty|line break", made)
        return
    (only,) = blocks
    assert only.language == ""
    assert shown(after) == "\n**status**"
    assert only.text.replace(quoting.BACKTICK, "`") == text.strip("\n").replace(quoting.BACKTICK, "`")
    assert (quoting.BACKTICK_NOTE in note) == bool(re.search("`{3,}", text))
    assert ("Begins" in note) == text.startswith("\n")
    assert ("Ends" in note) == text.endswith("\n")


@given(st.lists(hostile, max_size=4).map("".join))
@settings(deadline=None)
def test_a_name_is_exactly_one_piece_of_inline_code(text: str) -> None:
    made = quoting.code(text)
    (only,) = read(made)
    assert only.kind == "inline"
    assert "\n" not in made


@given(st.lists(hostile, max_size=4).map("".join))
@settings(deadline=None)
def test_escaped_text_reads_as_it_stands(text: str) -> None:
    made = quoting.escape(text)
    assert shown(made) == text
    assert all(piece.kind in ("plain", "escaped") for piece in read(made))
    assert not MARKUP.search(live(made))


@given(st.lists(hostile, max_size=4).map("".join))
@settings(deadline=None)
def test_our_own_lines_know_bold_and_nothing_else(text: str) -> None:
    made = quoting.line((text, "**done**"))
    assert "\n" not in made
    assert not MARKUP.search(live(made).replace("**", ""))


def test_people_roles_and_times_are_data() -> None:
    line = (Person("12", "@everyone"), " ", RoleRef("34"), " ", Moment(56.7))
    assert quoting.line(line) == "<@12> <@&34> <t:56:R>"
    assert quoting.line((Person("1> <@2", "Eve`"), RoleRef("x>"))) == r"`Eve\u{0060}``x>`"


@pytest.mark.parametrize(
    ("text", "made", "note"),
    [
        ("", "*(empty)*", ""),
        ("\n", "*(a line break and nothing else)*", ""),
        ("\n\n", "*(2 line breaks and nothing else)*", ""),
        ("  ", "```\n  \n```", "Blanks only."),
        ("a\n", "```\na\n```", "Ends with a line break."),
        ("\n\na", "```\na\n```", "Begins with 2 line breaks."),
        ("py\nx", "```\npy\nx\n```", ""),
        ("x```y", "```\nx``\\u{0060}y\n```", r"\u{0060} stands for a backtick."),
    ],
)
def test_what_discord_would_drop_is_said_in_words(text: str, made: str, note: str) -> None:
    assert quoting.block(text) == (made, note)


@given(st.text("ab1 -+.,:;/()*_`#\n·…", max_size=20) | st.text(max_size=20))
def test_text_without_markup_is_not_treated_differently(text: str) -> None:
    """A line in front of a text changes nothing in it."""
    assert quoting.escape(f"*\n{text}") == "\\*\n" + quoting.escape(text)
    flat = " ".join(text.splitlines())
    if "**" not in flat:
        assert quoting.trusted(text) == quoting.escape(flat)
