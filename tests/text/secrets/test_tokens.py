"""Tokens by their shape: a search that starts with their prefixes misses none of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.text.secrets import tokens as token_shapes
from signoff.text.secrets.tokens import token_places

# The tokens are joined here, so that no scanner takes this file for a leak.
BODY = "a1" * 24
TOKENS = [
    *(
        f"{name}{sign}{BODY}"
        for name in ["xai", "gsk", "pplx", "r8", "hf", "npm", "dckr_pat", "figd", "lin_api"]
        for sign in "-_"
    ),
    *(f"gh{kind}_{BODY}" for kind in "pousr"),
    *(f"gl{kind}-{BODY}" for kind in ["pat", "dt", "rt", "ptt", "soat", "cbt", "ft", "agent", "oas"]),
    *(f"xox{kind}-{BODY}" for kind in "abprs"),
    *(f"{kind}{'A1' * 8}" for kind in ["AKIA", "ASIA", "ABIA", "ACCA"]),
    *(f"{who}_{stage}_{BODY}" for who in ("sk", "rk", "pk") for stage in ("live", "test")),
    *(f"shp{kind}_{'a1' * 16}" for kind in ["at", "ca", "pa", "ss"]),
    *(f"do{kind}_v1_{BODY}" for kind in "opr"),
    *(f"hv{kind}.{BODY}" for kind in "sb"),
    *(f"{name}{BODY}" for name in ("sk-", "github_pat_", "xapp-", "AIza", "ya29.", "GOCSPX-", "whsec_", "pypi-")),
    "AGE-SECRET-KEY-1" + BODY.upper(),
    *(first + "Tk4" * 8 + ".Cl2FMQ." + "Zn1" * 9 for first in "MNO"),
    *("1" * digits + ":AA" + "b" * 33 for digits in (8, 9, 10)),
    "eyJ" + "Ab12" * 3 + "." + "Ab12" * 3 + "." + "Ab12" * 3,
    "SG." + "Ab12" * 4 + "." + "Ab12" * 4,
]
PIECES = [*TOKENS, *(token[:14] for token in TOKENS), "task-", "risk-", "é", "-", "_", ".", ":", " ", "\n", "x"]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text("aA1-_.: ", max_size=12), max_size=8).map("".join)


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_found_wherever_a_word_begins(token: str) -> None:
    for before in ("", " ", "\n", '"', "=", "/", "é", "word "):
        for after in (" x", " x" * 100):
            assert list(token_places(f"{before}{token}{after}")) == [(len(before), len(before) + len(token))]
    assert not list(token_places(f"word{token}" + " x" * 100))


@given(TEXTS)
@settings(deadline=None)
def test_no_token_is_missed_for_want_of_a_beginning(text: str) -> None:
    for found in (text, text + " x" * 100):
        everywhere = [token.span() for token in token_shapes._TOKENS.finditer(found)]
        assert list(token_places(found)) == everywhere


def test_every_kind_has_a_token_here() -> None:
    beginnings = [b for kind, _ in (*token_shapes._KINDS, *token_shapes._APART) for b in kind.split()]
    assert [b for b in beginnings if not any(token.startswith(b) for token in TOKENS)] == []


def test_a_token_glued_to_another_is_masked_with_it() -> None:
    first, second = "xoxb-1234567890", "ghp_" + "Ab12" * 9
    for text in (f"{first}-{second}", f"{second}_{first}"):
        assert list(token_places(f"say {text}.")) == [(4, 4 + len(text))]
