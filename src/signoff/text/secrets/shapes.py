"""Where secrets stand in a text: known token shapes, credentials in addresses, and values beside a name that says so.

Gives spans and nothing else: what of a span is masked, and how, is the masker's affair. Every expression starts at a
fixed mark and never goes back over what it has read, so that no text, however long, makes it slow. What must not stand
before the mark is looked at behind it: the search then leaps from mark to mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from signoff.text.secrets.tokens import token_places


class Span(NamedTuple):
    start: int
    end: int
    named: bool = False
    """Found by its name only, so that it may be anything: what reads as a command or a path in it stays visible."""


_WITHIN = (
    re.compile(r"://[^\s/@:\"'<>‹]{0,200}:([^\s/\"'<>‹]{1,400})@"),
    re.compile(r"://([A-Za-z0-9_-]{20,200})@"),
    re.compile(r"/api/webhooks/[0-9]{1,20}/([A-Za-z0-9_-]{20,}+)"),
    re.compile(r"hooks\.slack\.com/[a-z]{1,20}/([A-Za-z0-9_/-]{16,}+)"),
    re.compile(r"[?&](?i:(?:sig|signature|x-amz-signature|x-goog-signature)=([^&\s#\"'<>‹]++))"),
    re.compile(r"[bB](?<!(?i:[a-z]).)(?i:earer[ \t]{1,8}(?=[^\s‹]{0,80}[0-9=])([A-Za-z0-9_\-./+=~]{8,}+))"),
    re.compile(r"[bB](?<!(?i:[a-z]).)(?i:asic[ \t]{1,8}(?=[^\s‹]{0,80}[0-9=])([A-Za-z0-9+/=]{12,}+))"),
    re.compile(r"-(?<!\S-)(?:u|-user)[ =][\"']?[^\s:\"'‹]{1,100}:([^\s\"'‹]{1,200})"),
)
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----([^-]*+)(-----END)?")
_PEM_LINE = re.compile(r"[A-Za-z0-9+/=]{16,}+")
_PEM_LAST = re.compile(r"[A-Za-z0-9+/=]{1,76}(?=[\s\\nr]{0,8}\Z)")

_NAME = r"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]++)"
_PAIR = re.compile(_NAME + r"[\"'\\\]]{0,4}[ \t]{0,8}(?:=>|:=|==|=|:(?!//))[ \t]{0,8}")
_FLAG = re.compile(r"-(?<!\S-)-?([A-Za-z][A-Za-z0-9_.-]*+)[ \t]{1,8}(?!-)")
_LINE = re.compile(r"(?m)^[ \t]*+(?:export[ \t]++)?([A-Za-z0-9_.-]++)[ \t]{0,8}[=:][ \t]{0,8}([^\s\"'`‹]++)[ \t]*+$")
_SCHEME = r"(?:(?i:bearer|basic|token|digest|bot|apikey|negotiate)[ \t]{1,8})?+"
# In quotes a value goes on to the closing one; without, it ends where a shell or an address would end it.
_QUOTED = re.compile(r"\\{0,3}[\"'`]" + _SCHEME + r"([^\s\"'`\\‹]++)")
_BARE = re.compile(_SCHEME + r"([^\s\"'`\\‹;|&<>(){}$,\[\]#?]++)")


def token_spans(text: str) -> Iterator[Span]:
    """What is a secret by its own shape, or by the place it has in an address or a header."""
    yield from (Span(*place) for place in token_places(text))
    for pattern in _WITHIN:
        yield from (Span(*match.span(1)) for match in pattern.finditer(text))
    for block in _PEM.finditer(text):
        # Only what is base64 by its length or its place: a script after a false BEGIN line stays visible.
        begin, end = block.span(1)
        yield from (Span(*line.span()) for line in _PEM_LINE.finditer(text, begin, end))
        tail = max(begin, end - 84)
        if block[2] and (last := _PEM_LAST.search(text[tail:end])):
            yield Span(tail + last.start(), tail + last.end(), named=True)


def named_spans(text: str, secret: Callable[[str], bool]) -> Iterator[Span]:
    """Values that stand beside a secret's name: `DB_PASSWORD=...`, `"token": "..."`, `--api-key ...`."""
    judged: dict[str, bool] = {}
    for pattern in (_PAIR, _FLAG):
        covered = 0
        for match in pattern.finditer(text):
            name = match[1]
            told = judged.get(name)
            if told is None:
                told = judged[name] = secret(name)
            # What stands inside a value belongs to it; looking again from there would read a long one over and over.
            if not told or match.end() < covered:
                continue
            if value := _QUOTED.match(text, match.end()) or _BARE.match(text, match.end()):
                covered = value.end()
                yield Span(*value.span(1), named=True)
    # A line of nothing else, as in an .env file: its value may have signs that would end it in a command.
    for match in _LINE.finditer(text):
        if secret(match[1]):
            yield Span(*match.span(2), named=True)
