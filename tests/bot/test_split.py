"""Replies are cut at Discord's limit, and code blocks stay code blocks."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.bot.split import LIMIT, sendable, size, split

words = st.text(st.sampled_from("abc .,!?\n日😀é-"), min_size=1, max_size=400)
code = st.builds(
    lambda language, body: f"```{language}\n{body}\n```",
    st.sampled_from(["", "py", "c++", "js"]),
    st.text(st.sampled_from("xyz =()\n`😀"), min_size=1, max_size=600)
    .map(lambda body: re.sub("`{3,}", "``", body))
    .filter(lambda body: body.strip().strip("`")),
)
replies = st.lists(st.one_of(words, code), min_size=1, max_size=12).map("\n".join).filter(str.strip)


def bare(text: str) -> str:
    """Return a text without fences and white space."""
    return re.sub(r"\s+", "", re.sub(r"```(?:(?:py|c\+\+|js)(?=\n))?", "", text))


def balanced(part: str) -> bool:
    return part.count("```") % 2 == 0


@given(replies, st.integers(100, 400))
@settings(deadline=None)
def test_nothing_is_lost_and_every_part_fits(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert all(part.strip() for part in parts)
    assert all(size(part) <= limit for part in parts)
    assert all(balanced(part) for part in parts)
    assert bare("\n".join(parts)) == bare(text)


@given(st.text(st.sampled_from("`\n a😀"), min_size=1, max_size=1500), st.integers(100, 300))
@settings(deadline=None)
def test_stray_backticks_cannot_push_a_part_over_the_limit(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert all(0 < size(part) <= limit and part.strip() for part in parts)
    assert "".join(parts).count("a") == text.count("a")


def test_a_short_reply_is_left_alone() -> None:
    assert split("Hello\n\n```py\nx = 1\n```\nbye") == ["Hello\n\n```py\nx = 1\n```\nbye"]
    assert split("a" * LIMIT) == ["a" * LIMIT]
    assert split("") == []
    assert split(" \n ") == []


def test_a_code_block_is_closed_and_reopened_with_its_language() -> None:
    first, *others = split("```py\n" + "print('x')\n" * 400 + "```")
    assert first.startswith("```py\n")
    assert first.endswith("\n```")
    assert all(part.startswith("```py\n") and part.endswith("```") for part in others)
    assert all("\n" not in line and line.startswith("print") for part in others for line in part.split("\n")[1:-1])


def test_paragraphs_are_preferred_to_lines_and_lines_to_words() -> None:
    paragraph = "word " * 250
    first, second = split(f"{paragraph}\n\n{paragraph}")
    assert (first, second) == (paragraph.rstrip(), paragraph)
    lines = "\n".join(["one line of the poem"] * 150)
    assert all(line == "one line of the poem" for part in split(lines) for line in part.split("\n"))
    assert all(part.endswith("word") for part in split("word " * 900)[:-1])


def test_a_block_is_not_torn_when_it_fits_the_next_part() -> None:
    prose, block = "prose\n" * 250, "```py\n" + "x = 1\n" * 100 + "```"
    first, second = split(f"{prose}\n{block}")
    assert "```" not in first
    assert second == block


def test_an_unclosed_block_is_closed() -> None:
    assert split("```py\nx = 1") == ["```py\nx = 1\n```"]


def test_emoji_count_twice() -> None:
    parts = split("😀" * 1500)
    assert [len(part) for part in parts] == [998, 502]
    assert all(size(part) <= LIMIT for part in parts)


def test_a_huge_text_takes_no_time() -> None:
    started = time.process_time()
    split("lorem ipsum ```x``` dolor\n" * 20_000)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("raw", ["a\ud800b", "a\x00b", "a\r\nb\x1b[31m"])
def test_what_json_or_discord_refuses_is_taken_out(raw: str) -> None:
    clean = sendable(raw)
    clean.encode("utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", clean)


def test_a_tiny_limit_is_a_mistake() -> None:
    with pytest.raises(ValueError):
        split("x", 20)


@given(st.text(st.characters(blacklist_categories=())))
def test_a_size_counts_each_character_as_discords_clients_do(text: str) -> None:
    assert size(text) == sum(2 if ord(char) > 0xFFFF else 1 for char in text)
