"""Look-alike letters are named by script, punycode is decoded, and ordinary text of any language gets no warning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.text.lookalikes import SIGNS, TWINS, lookalikes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/etc/p\u0430sswd", "mixes Cyrillic and Latin letters in one word: p\\u{0430}sswd"),
        ("https://p\u0430ypal.com/login", "p\\u{0430}ypal (U+0430 CYRILLIC SMALL LETTER A)"),
        ("g\u03bf\u03bfgle.com", "mixes Greek and Latin letters"),
        ("g\u0585ogle", "Armenian and Latin"),
        ("\u13a0ocker", "Cherokee and Latin"),
        ("https://\u0430\u0440\u0440\u04cf\u0435.com", "apple is spelled with Cyrillic letters"),
        ("/srv/\u0441\u043e\u0440\u0443/x", "copy is spelled with Cyrillic letters"),
        ("\u0441\u043e\u0440\u0443", "copy is spelled with Cyrillic letters"),
        ("p\u0251ypal", "paypal is spelled with unusual Latin letters"),
        ("https://\u2ca3\u2ca5.com", "pc is spelled with Coptic letters"),
        ("/srv/\u0441\u0430\u0433", "car is spelled with Cyrillic letters"),
        ("a\u2043rf", "U+2043 HYPHEN BULLET, which looks like a hyphen-minus"),
        ("\uff52\uff4d -rf", "U+FF4D FULLWIDTH LATIN SMALL LETTER M reads as m"),
        ("\U0001d42b\U0001d426", "reads as m"),
        ("\u24e1m", "CIRCLED LATIN SMALL LETTER R reads as r"),
        ("example.com\u2215evil", "U+2215 DIVISION SLASH, which looks like a solidus"),
        ("example\u3002com", "looks like a full stop"),
        ("a \u2212rf", "looks like a hyphen-minus"),
        ("rm \u05d0/\u05d1 now", "mixes writing directions"),
    ],
)
def test_a_warning_names_what_it_is(text: str, words: str) -> None:
    assert any(words in finding for finding in lookalikes(text)), lookalikes(text)


@pytest.mark.parametrize(
    "text",
    [
        "plain text, /etc/passwd, https://example.com",
        "Привет, это обычный текст. т.е. с/х",
        "/home/user/Документы/отчёт.txt",
        "Γειά σου Κόσμε",
        "Tシャツ iPhone版 PC방 Ａ".replace("Ａ", ""),
        "こんにちは！元気ですか？はい。",
        "münchen.de, façade, naïve, Łódź, İstanbul ılık",
        "السلام عليكم",
        "नमस्ते",
        "5 µm, x², ½ cup, Acme™, wait…",
        "😀 done → next",
        "dash – and — quotes ’ ”",
        "don’t, 1–2, 555‒1234, iPhone！",
        "סוס",
        "اها",
    ],
)
def test_ordinary_text_gets_no_warning(text: str) -> None:
    assert lookalikes(text) == ()


def test_punycode_hosts_are_decoded_and_both_are_shown() -> None:
    (finding,) = lookalikes("curl https://www.xn--pple-43d.com/x")
    assert finding == "host www.xn--pple-43d.com is punycode for www.\u0430pple.com (Cyrillic and Latin letters)"
    (upper,) = lookalikes("XN--PPLE-43D.com")
    assert "punycode for \u0430PPLE.com" in upper
    assert lookalikes("xn--\x7f") == ("host xn-- is punycode that cannot be decoded",)
    assert lookalikes("xn--" + "9" * 59)[0].endswith("cannot be decoded")


def test_decoded_hosts_bring_no_markup_or_hidden_characters() -> None:
    label = "a\u202e`*\u3164".encode("punycode").decode("ascii")
    (finding,) = lookalikes(f"http://xn--{label.replace('`', '').replace('*', '')}.com")
    assert "\u202e" not in finding
    assert "\u3164" not in finding


@given(st.text(st.characters(blacklist_categories=()), max_size=80))
def test_findings_are_short_and_carry_no_markup(text: str) -> None:
    for finding in lookalikes(text):
        assert len(finding) <= 260
        assert not set(finding) & set('`*~|<>@#[]\n"'), finding


@pytest.mark.slow
def test_a_large_hostile_text_is_scanned_quickly() -> None:
    for text in ("xn--" * 250_000, "a-" * 500_000 + "xn--", "\u0430a" * 500_000, "\u0301" * 1_000_000):
        lookalikes(text)


def test_the_table_maps_other_characters_to_ascii_ones() -> None:
    pairs = [*SIGNS.items(), *(pair for letters in TWINS.values() for pair in letters.items())]
    assert len(pairs) > 350
    for char, reads_as in pairs:
        assert not char.isascii()
        assert reads_as.isascii()
        assert reads_as.isprintable()
