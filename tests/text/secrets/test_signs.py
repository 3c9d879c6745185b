"""A text without any sign of a secret is not searched. No expression finds anything in such a text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.text.secrets import shapes, tokens, told
from signoff.text.secrets.masker import MASK, Masker
from signoff.text.secrets.names import word_set
from signoff.text.secrets.shapes import may_contain_secret, named_spans, token_spans

MASKER = Masker(b"0123456789abcdef")
SEARCHED = (
    *shapes._WITHIN,
    *(shapes._PEM, shapes._PAIR, shapes._FLAG, shapes._LINE),
    tokens._TOKENS,
    *told._OPTION.values(),
    *told._STATEMENTS,
    *told._SENTENCES,
    told._OTHER_SCRIPTS,
)
"""Every expression that finds a secret in a text."""
PIECES = [
    "mot de passe",
    *sorted(
        word_set(
            "password passwort Kennwort PASSPHRASE token Secret api key pin bearer Basic is was ist lautet est "
            "sshpass mysql zip redis-cli -p -psecret -P -a --user -u --token sk- ghp_ AKIA eyJ xoxb- SG. ://bob @host "
            "/api/webhooks/1/ hooks.slack.com/x/ ?sig ----- BEGIN PRIVATE KEY IDENTIFIED BY 密码 是 ： contraseña は "
            "abc Zebra42x Ab12Ab12 1234567890 \u017fecret to\u212aen \u212aey"
        )
    ),
]
GLUE = ["", " ", "\n", "\t", "=", ":", ": ", "'", '"', "`", "-", ".", "_", "/", "+", "a", "1"]


@pytest.mark.parametrize("pattern", SEARCHED, ids=lambda pattern: pattern.pattern[:24])
def test_every_expression_finds_only_what_has_a_sign(pattern: re.Pattern[str]) -> None:
    possible = re.compile(pattern.pattern.replace("++", "+").replace("*+", "*").replace("?+", "?").replace("}+", "}"))

    @given(st.from_regex(possible))
    @settings(max_examples=30, deadline=None)
    def check(text: str) -> None:
        if pattern.search(text):
            assert may_contain_secret(text)

    check()


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(GLUE)), max_size=6))
@settings(max_examples=500, deadline=None)
def test_a_text_without_a_sign_has_no_secret(parts: list[tuple[str, str]]) -> None:
    text = "".join(piece + glue for piece, glue in parts)
    if not may_contain_secret(text):
        assert [*token_spans(text), *named_spans(text, lambda _: True)] == []


SHORTEST = [
    "xoxb-" + "a1b2c3d4e5",
    "xapp-" + "a1b2c3d4e5",
    "AKIA" + "Z" * 16,
    "sk_live_" + "a" * 10,
    "SG." + "a.a" * 16,
]


@pytest.mark.parametrize("token", SHORTEST)
def test_the_shortest_tokens_have_a_sign(token: str) -> None:
    assert may_contain_secret(token)
    assert may_contain_secret(f"see {token}, please")


@pytest.mark.parametrize(
    "text",
    ["", "notes/today.md", "ada@example.com", "Lunch at noon?", "send_email", "- buy milk\n- call Ada", "well-known"],
)
def test_names_and_short_values_are_not_searched(text: str) -> None:
    assert not may_contain_secret(text)


@given(st.text("0123456789abcdef", max_size=80))
@settings(max_examples=300, deadline=None)
def test_an_id_or_a_digest_alone_is_not_searched_and_no_expression_finds_anything_in_it(text: str) -> None:
    assert not may_contain_secret(text)
    assert [*token_spans(text), *named_spans(text, lambda _: True)] == []


@pytest.mark.parametrize("text", ["c0ffee0123456789\n", "key=c0ffee0123456789", "C0FFEE0123456789", "c0ffee012345678g"])
def test_whatever_is_beside_an_id_is_searched(text: str) -> None:
    assert may_contain_secret(text)


def test_the_operators_patterns_need_no_sign() -> None:
    own = Masker(b"0123456789abcdef", patterns=("noon",))
    assert MASK.fullmatch(own.mask_untrusted("noon"))
    assert own.mask_args({"at": "noon"}) != {"at": "noon"}


def test_a_secret_by_its_name_needs_no_sign() -> None:
    assert MASK.fullmatch(MASKER.mask_args({"password": "noon"})["password"])
    assert MASK.fullmatch(MASKER.mask_args({"password": {"first": ["noon"]}})["password"]["first"][0])
    assert MASKER.mask_args({"credentials": {"username": "noon"}}) == {"credentials": {"username": "noon"}}
