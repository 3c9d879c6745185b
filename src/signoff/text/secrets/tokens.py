"""Finds tokens by their shape alone: each kind has known beginnings, and an expression for the rest.

Beginnings are rare, and searching for them is ten times as fast as trying every shape at every character. So a long
text is searched for tokens only if it contains a beginning. Knows nothing of names, masks or cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

Kinds = tuple[tuple[str, str], ...]

_SHORT = 100
"""Shorter texts are searched for tokens directly: there are many of them, and searching twice would cost more."""

_KINDS: Kinds = (
    ("sk-", r"(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{16,}+"),  # OpenAI, Anthropic and similar
    ("xai- gsk- pplx- r8- hf- npm- dckr_pat- figd- lin_api-", r"[A-Za-z0-9_-]{24,}+"),
    ("xai_ gsk_ pplx_ r8_ hf_ npm_ dckr_pat_ figd_ lin_api_", r"[A-Za-z0-9_-]{24,}+"),
    ("ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}+"),
    ("github_pat_", r"[A-Za-z0-9_]{20,}+"),
    ("glpat- gldt- glrt- glptt- glsoat- glcbt- glft- glagent- gloas-", r"[A-Za-z0-9_.-]{16,}+"),
    ("xox", r"[a-z]-[A-Za-z0-9-]{10,}+"),
    ("xapp-", r"[A-Za-z0-9-]{10,}+"),
    ("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("AIza", r"[A-Za-z0-9_-]{30,}+"),
    ("ya29. GOCSPX-", r"[A-Za-z0-9_-]{20,}+"),
    ("sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_", r"[A-Za-z0-9]{10,}+"),
    ("whsec_", r"[A-Za-z0-9+/=]{16,}+"),
    ("pypi-", r"[A-Za-z0-9_-]{16,}+"),
    ("shpat_ shpca_ shppa_ shpss_", r"[A-Fa-f0-9]{32}"),
    ("doo_v1_ dop_v1_ dor_v1_", r"[a-f0-9]{40,}+"),
    ("hvs. hvb.", r"[A-Za-z0-9_-]{20,}+"),
    ("AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}+"),
)
# No token may follow a letter or digit. Tokens of these kinds may not follow `_` or `-` either.
_APART: Kinds = (
    ("eyJ", r"[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]++)*+"),  # JSON web tokens
    ("SG.", r"[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),
)
# Kinds without a fixed beginning: (a part that every such token has, the whole token).
_OTHERS: Kinds = (
    (  # Discord bots
        r"\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27}",
        r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}+",
    ),
    (  # Telegram bots
        r":[A-Za-z0-9_-]{32,38}(?![A-Za-z0-9_-])",
        r"(?:bot)?[0-9]{6,12}:[A-Za-z0-9_-]{32,38}(?![A-Za-z0-9_-])",
    ),
)


def token_places(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each token in the text."""
    if len(text) < _SHORT or any(sign.search(text) for sign in _SIGNS):
        for match in _TOKENS.finditer(text):
            yield match.span()


def _expressions(kinds: Kinds) -> Iterator[str]:
    for beginnings, rest in kinds:
        yield f"(?:{'|'.join(map(re.escape, beginnings.split()))}){rest}"


def _signs(kinds: Kinds) -> Iterator[re.Pattern[str]]:
    """Yield one expression for each last character of a beginning: searching for a single character is fastest."""
    by_last: dict[str, list[str]] = {}
    for beginnings, _ in kinds:
        for beginning in beginnings.split():
            by_last.setdefault(beginning[-1], []).append(re.escape(beginning))
    for last, beginnings in by_last.items():
        yield re.compile(re.escape(last) + _one_of(f"(?<={b})(?<![A-Za-z0-9]{b})" for b in beginnings))


def _one_of(expressions: Iterable[str]) -> str:
    return f"(?:{'|'.join(expressions)})"


_TOKENS = re.compile(
    r"(?<![A-Za-z0-9])"
    + _one_of([*_expressions(_KINDS), *(shape for _, shape in _OTHERS)])
    + r"[A-Za-z0-9_-]*+"  # text joined to it: perhaps the rest of another token, whose beginning this one took
    + r"|(?<![A-Za-z0-9_-])"
    + _one_of(_expressions(_APART))
)
_SIGNS = (*_signs((*_KINDS, *_APART)), *(re.compile(part) for part, _ in _OTHERS))
