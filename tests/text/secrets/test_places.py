"""The places in a text where a secret is searched for, and how much of it is masked."""

from __future__ import annotations

import pytest

from signoff.text.secrets.masker import MASK, Masker

KEY = b"0123456789abcdef"
MASKER = Masker(KEY)


@pytest.mark.parametrize(
    "text",
    [
        "-u ada:Zebra42x",
        "curl\t-u=ada:Zebra42x",
        "curl --user 'ada:Zebra42x'",
        "bearer Zebra42x",
        "\nBEARER\tZebra42x",
        "(Basic Zebra42xZebra42x",
        "-token Zebra42x",
        "mysql --db-password  Zebra42x",
        "h?sig=Zebra42x",
        "h&X-Amz-Signature=Zebra42x",
    ],
)
def test_a_sign_counts_where_a_word_begins(text: str) -> None:
    assert MASK.search(MASKER.mask_text(text))
    assert "Zebra42x" not in MASKER.mask_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "x-u ada:Zebra42x",
        "--u ada:Zebra42x",
        "x--user ada:Zebra42x",
        "overbearer Zebra42x",
        "ſbearer Zebra42x",
        "aBasic Zebra42xZebra42x",
        "x--token Zebra42x",
        "h/sig=Zebra42x",
    ],
)
def test_and_not_inside_of_one(text: str) -> None:
    assert MASKER.mask_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        'password = "{}"',
        "password: {}",
        '{{"password": "{}"}}',
        "passphrase='{}'",
    ],
)
def test_of_several_words_beside_a_name_only_the_first_is_masked(text: str) -> None:
    """The author of a text chooses its names. If more than one word was masked, a name could hide a whole command."""
    for phrase in ("correct horse battery staple", "diskpart clean all", "please pay mallory instead"):
        first, _, others = phrase.partition(" ")
        found = MASKER.mask_text(text.format(phrase))
        assert MASK.sub(first, found) == text.format(phrase)
        assert others in found
        assert len(MASK.findall(found)) == 1


def test_an_operator_who_knows_their_texts_may_have_all_words_masked() -> None:
    masker = Masker(KEY, patterns=(r'password = "([^"\n]*)"',))
    found = masker.mask_text('password = "correct horse battery staple"; reboot')
    assert MASK.sub("*", found) == 'password = "* * * *"; reboot'
