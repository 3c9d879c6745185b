"""Finds secrets in a text: known token shapes, credentials in addresses, and values beside a secret's name.

It only returns spans. The masker decides which parts of a span to mask, and how. Every expression starts at a fixed
mark and does not reread text, so that no text, however long, makes it slow. Conditions on the text before the mark are
lookbehinds after the mark, so that the search can jump from mark to mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from signoff.text.patterns import lazy_pattern


class Span(NamedTuple):
    start: int
    end: int
    named: bool = False
    """Whether only a name says that this is a secret. It may be anything, so commands and paths in it stay visible."""


_WITHIN = (
    lazy_pattern(r"://[^\s/@:\"'<>‹]{0,200}:([^\s/\"'<>‹]{1,400})@"),
    lazy_pattern(r"://([A-Za-z0-9_-]{20,200})@"),
    lazy_pattern(r"/api/webhooks/[0-9]{1,20}/([A-Za-z0-9_-]{20,}+)"),
    lazy_pattern(r"hooks\.slack\.com/[a-z]{1,20}/([A-Za-z0-9_/-]{16,}+)"),
    lazy_pattern(r"[?&](?i:(?:sig|signature|x-amz-signature|x-goog-signature)=([^&\s#\"'<>‹]++))"),
    lazy_pattern(r"[bB](?<!(?i:[a-z]).)(?i:earer[ \t]{1,8}(?=[^\s‹]{0,80}[0-9=])([A-Za-z0-9_\-./+=~]{8,}+))"),
    lazy_pattern(r"[bB](?<!(?i:[a-z]).)(?i:asic[ \t]{1,8}(?=[^\s‹]{0,80}[0-9=])([A-Za-z0-9+/=]{12,}+))"),
    lazy_pattern(r"-(?<!\S-)(?:u|-user)[ =][\"']?[^\s:\"'‹]{1,100}:([^\s\"'‹]{1,200})"),
)
_PEM = lazy_pattern(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----([^-]*+)(-----END)?")
_PEM_LINE = lazy_pattern(r"[A-Za-z0-9+/=]{16,}+")
_PEM_LAST = lazy_pattern(r"[A-Za-z0-9+/=]{1,76}(?=[\s\\nr]{0,8}\Z)")

_NAME = r"(?<![A-Za-z0-9_.-])([A-Za-z0-9_.-]++)"
_PAIR = lazy_pattern(_NAME + r"[\"'\\\]]{0,4}[ \t]{0,8}(?:=>|:=|==|=|:(?!//))[ \t]{0,8}")
_FLAG = lazy_pattern(r"-(?<!\S-)-?([A-Za-z][A-Za-z0-9_.-]*+)[ \t]{1,8}(?!-)")
_LINE = lazy_pattern(r"(?m)^[ \t]*+(?:export[ \t]++)?([A-Za-z0-9_.-]++)[ \t]{0,8}[=:][ \t]{0,8}([^\s\"'`‹]++)[ \t]*+$")
_SCHEME = r"(?:(?i:bearer|basic|token|digest|bot|apikey|negotiate)[ \t]{1,8})?+"
# A value in quotes ends at a quote, space or backslash; without quotes, also where a shell or an address would end it.
_QUOTED = lazy_pattern(r"(?:[nN](?='))?\\{0,3}[\"'`]" + _SCHEME + r"([^\s\"'`\\‹]++)")
_BARE = lazy_pattern(r"(?![nN]')" + _SCHEME + r"([^\s\"'`\\‹;|&<>(){}$,\[\]#?]++)")


_SIGN = lazy_pattern(
    r"[=:\"'`]|(?<!\S)--?[A-Za-z]"  # a pair, an address or a quoted password; an option
    r"|[A-Za-z0-9_.+/-]{15}"  # a token, or an address of a webhook
    # Words before a secret, some of which are in the first line of a private key.
    r"|(?i:pass(?:wor[dt]|wd|phrase|code)|kennwort|mot de passe|token|secret|key|pin|bearer|basic)"
    r"|[：是は]"
)
"""Every text with a secret in it has one of these, in a place where one of the expressions reads it."""
_ID = lazy_pattern(r"[0-9a-f]*+")
"""An id or a digest, as in every log line. It is as long as a token, but no expression finds anything in it."""
_MOST = 2000
"""In a longer text, some sign is almost certain, and looking for all of them at every character is slow."""


def may_contain_secret(text: str) -> bool:
    """Whether the text has to be searched at all. Most names and short values have no sign of a secret."""
    return len(text) > _MOST or bool(not _ID.fullmatch(text) and _SIGN.search(text))


def token_spans(text: str) -> Iterator[Span]:
    """Yield secrets that are known by their own shape, or by their place in an address or a header."""
    from signoff.text.secrets.tokens import token_places  # here: compiling its expressions would delay every start

    for place in token_places(text):
        yield Span(*place)
    for pattern in _WITHIN:
        for match in pattern.finditer(text):
            yield Span(*match.span(1))
    for block in _PEM.finditer(text):
        # Take only text that is base64 by its length or its place: a script after a fake BEGIN line stays visible.
        begin, end = block.span(1)
        yield from (Span(*line.span()) for line in _PEM_LINE.finditer(text, begin, end))
        tail = max(begin, end - 84)
        if block[2] and (last := _PEM_LAST.search(text[tail:end])):
            yield Span(tail + last.start(), tail + last.end(), named=True)


def named_spans(text: str, secret: Callable[[str], bool]) -> Iterator[Span]:
    """Yield the values beside a secret's name: `DB_PASSWORD=...`, `"token": "..."`, `--api-key ...`."""
    from signoff.text.secrets.told import told_places  # here for the same reason

    judged: dict[str, bool] = {}
    for pattern in (_PAIR, _FLAG):
        covered = 0
        for match in pattern.finditer(text):
            name = match[1]
            told = judged.get(name)
            if told is None:
                told = judged[name] = secret(name)
            # A name inside a value is part of that value. Starting again there would reread a long value many times.
            if not told or match.end() < covered:
                continue
            if value := _QUOTED.match(text, match.end()) or _BARE.match(text, match.end()):
                covered = value.end()
                yield Span(*value.span(1), named=True)
    for place in told_places(text):
        yield Span(*place, named=True)
    # On a line of its own, as in an .env file, a value may contain signs that would end it in a command.
    for match in _LINE.finditer(text):
        if secret(match[1]):
            yield Span(*match.span(2), named=True)
