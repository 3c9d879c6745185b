"""Hidden characters become visible, nothing else changes, and the exact text can be read back."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.text.visible import clip, is_hidden, is_plain_line, longest_head, one_line, plain, unescape, visible

HIDDEN = {
    "bidi": "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff\u180e\u034f",
    "variation selectors": "\ufe00\ufe0f\U000e0100\U000e01ef\u180b",
    "tag characters": "\U000e0001\U000e0041\U000e007f",
    "soft hyphen": "\u00ad",
    "fillers": "\u115f\u1160\u3164\uffa0\u2800\u17b4",
    "spaces": "\u00a0\u1680\u2000\u2003\u2007\u2009\u200a\u202f\u205f\u3000",
    "separators": "\u2028\u2029\u0085",
    "controls": "\x00\x01\x07\x08\x0b\x0c\r\x1b\x1f\x7f\x80\x9b\x9f",
    "surrogates": "\ud800\udbff\udc00\udfff",
    "private use": "\ue000\uf8ff\U000f0000\U0010fffd",
    "unassigned": "\u0378\ufdd0\uffff\U0001ffff\U0010ffff",
    "enclosing marks": "\u20dd\u0489",
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_hidden_characters_are_escaped_and_reported(kind: str) -> None:
    for char in HIDDEN[kind]:
        shown = visible(f"a{char}b")
        assert shown.text == f"a\\u{{{ord(char):04X}}}b"
        assert f"U+{ord(char):04X} " in shown.findings[0]


TEXTS = st.text("ab \\u{0}\n\t\x7f\u0301\u202e\u00e9", max_size=30) | st.text(max_size=30)


def test_findings_count_and_name() -> None:
    assert visible("a\u202eb\u202e").findings == ("contains 2 hidden characters: U+202E RIGHT-TO-LEFT OVERRIDE",)
    assert visible("\x1b[31m").findings == ("contains 1 hidden character: U+001B ESCAPE",)
    many = visible("\u200b\u200c\u200d\u2060\u2061").findings[0]
    assert many.startswith("contains 5 hidden characters: ")
    assert many.endswith(" and 2 more kinds")


@pytest.mark.parametrize(
    "text",
    [
        "plain ASCII, `code`, @everyone, # heading\n\tindented",
        "Crème brûlée, Ångström, naïve, Việt Nam, žluťoučký kůň",
        "Việt Nam đẹp".replace("ẹ", "e\u0323\u0302"),
        "北京市 東京都 서울특별시 ひらがな カタカナ",
        "السلام عليكم",
        "שָׁלוֹם עֲלֵיכֶם",
        "नमस्ते दुनिया",
        "สวัสดีครับ ที่นี่",
        "Привет, мир",
        "Γειά σου Κόσμε",
        "😀🎉 ½ ² € → ≠",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == visible(text).__class__(text, ())


def test_a_written_escape_is_told_from_an_escaped_character() -> None:
    written, real = visible("\\u{202E}").text, visible("\u202e").text
    assert (written, real) == ("\\u{005C}u{202E}", "\\u{202E}")
    assert visible("C:\\users").text == "C:\\users"


def test_mark_floods_are_escaped_beyond_the_ordinary_stack() -> None:
    shown = visible("Z" + "\u0301" * 20 + "o")
    assert shown.text == "Z" + "\u0301" * 4 + "\\u{0301}" * 16 + "o"
    assert shown.findings == ("contains 16 stacked or stray combining marks",)


def test_marks_need_a_letter_to_sit_on() -> None:
    assert visible("rm /\u0338etc").text == "rm /\\u{0338}etc"
    assert visible("\u0301a").text == "\\u{0301}a"
    assert visible("a\u0301\u034f\u0301").text == "a\u0301\\u{034F}\\u{0301}", "a joiner does not hide a taller stack"


def test_one_line_has_no_line_break() -> None:
    assert one_line("a\n\tb\r") == "a\\u{000A}\\u{0009}b\\u{000D}"


def test_clip_never_cuts_an_escape_in_two() -> None:
    assert clip("ab\u202ecd", 20) == ("ab\\u{202E}cd", False)
    assert clip("ab\u202ecd" * 9, 8) == ("ab…", True)


@given(st.text(st.characters(blacklist_categories=()), max_size=60))
def test_nothing_hidden_is_left_and_nothing_is_lost(text: str) -> None:
    shown = visible(text)
    assert not any(is_hidden(c) for c in shown.text)
    assert unescape(shown.text) == text
    assert unescape(one_line(text)) == text
    assert "\n" not in one_line(text)
    assert bool(shown.findings) == (shown.text.replace("\\u{005C}u{", "\\u{") != text)


@given(st.text(st.characters(blacklist_categories=()), max_size=60), st.integers(4, 60))
def test_plain_has_no_markup_and_is_bounded(text: str, budget: int) -> None:
    shown = plain(text, budget, prose=True)
    assert len(shown) <= budget
    assert shown.isascii()
    assert not set(shown) & set('`*~|<>@#[]\n"')


@pytest.mark.slow
def test_every_format_and_space_character_of_unicode_is_covered() -> None:
    for code in range(0x110000):
        char = chr(code)
        if unicodedata.category(char) in ("Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Co", "Cn") and char not in " \n\t":
            assert is_hidden(char), hex(code)


@given(TEXTS)
def test_ordinary_text_is_not_treated_differently(text: str) -> None:
    """A hidden character at the end of a text changes nothing in front of it."""
    shown, more = visible(text), visible(text + "\u202e")
    assert more.text == shown.text + r"\u{202E}"
    assert len(more.findings) == len(shown.findings) + (not any("hidden" in finding for finding in shown.findings))


@given(TEXTS | st.text("ab \\u{0}", max_size=9))
def test_a_plain_line_is_shown_as_it_is(text: str) -> None:
    ordinary = all(" " <= c <= "~" for c in text) and "\\u{" not in text
    assert is_plain_line(text) == ordinary
    if ordinary:
        assert (visible(text).text, visible(text).findings, one_line(text)) == (text, (), text)


@given(TEXTS, st.integers(0, 40))
def test_a_text_is_cut_only_if_it_does_not_fit(text: str, budget: int) -> None:
    shown, is_cut = clip(text, budget)
    assert is_cut == (len(one_line(text)) > budget)
    if not is_cut:
        assert shown == one_line(text)
    head = longest_head(text, budget, one_line)
    assert len(one_line(text[:head])) <= budget
    assert head == len(text) or len(one_line(text[: head + 1])) > budget
