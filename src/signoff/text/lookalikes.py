"""Warnings about letters that pass for others: mixed scripts, imitated words, odd letter forms, punycode, direction.

The warnings are trusted text: they repeat ASCII as it is and escape the rest. Only a decoded host name keeps all of its
letters and digits. Nothing is changed or refused here. Knows nothing of cards or any medium.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from signoff.text import confusables
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import char_name, escape, is_hidden, plain

# Scripts that are written together with Latin letters every day.
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"})
_WORD = lazy_pattern(r"[^\W_]+")
_TOKEN = lazy_pattern(r"[^\s\"'<>()\[\]{},;|&=]+")
_LOCATOR = lazy_pattern(r"[./\\@:]")
_ACE = lazy_pattern(r"xn--", re.IGNORECASE)
_HOST_BEFORE = lazy_pattern(r"[A-Za-z0-9.-]*\Z")
_HOST_AFTER = lazy_pattern(r"[A-Za-z0-9.-]*")
_HOST_BUDGET = 253
_LISTED = 3
_ORDINARY_FORMS = frozenset("\u00aa\u00b2\u00b3\u00b9\u00ba\u2026\u2122\u00bc\u00bd\u00be\u2116\u2103\u2109")
_WORD_BUDGET = 48


def _pairs(table: str) -> dict[str, str]:
    return {chr(int(entry[:-1], 16)): entry[-1] for entry in table.split()}


TWINS = {script: _pairs(table) for script, table in confusables.LETTERS.items()}
"""Script -> letter -> the ASCII letter it looks like."""

SIGNS = _pairs(confusables.SIGNS)
"""Sign -> the ASCII sign it looks like."""


def lookalikes(text: str) -> tuple[str, ...]:
    """Return warnings about the letters of this text; none for ordinary text of any language."""
    if text.isascii() and not _ACE.search(text):
        return ()
    warnings = list(_punycode(text))
    if not text.isascii():
        warnings += _mixed_words(text)
        warnings += _imitations(text)
        warnings += _odd_forms(text)
        warnings += _odd_signs(text)
        warnings += _direction(text)
    return tuple(warnings)


def _punycode(text: str) -> Iterable[str]:
    hosts: dict[str, None] = {}
    for match in _ACE.finditer(text):
        before = _HOST_BEFORE.search(text[max(0, match.start() - _HOST_BUDGET) : match.start()])
        after = _HOST_AFTER.match(text, match.start(), match.start() + _HOST_BUDGET)
        hosts[(before[0] if before else "") + (after[0] if after else "")] = None
        if len(hosts) > _LISTED:
            break
    for host in list(hosts)[:_LISTED]:
        host = host.strip(".")
        labels = [_decoded(label) for label in host.split(".")]
        if None in labels:
            yield f"host {plain(host, _WORD_BUDGET)} is punycode that cannot be decoded"
            continue
        readable = ".".join(label for label in labels if label is not None)
        scripts = sorted({s for c in readable if (s := _script(c))})
        shown = "".join(
            c if c in ".-" or (c.isalnum() and not is_hidden(c)) else escape(c) for c in readable[:_WORD_BUDGET]
        )
        yield f"host {plain(host, _WORD_BUDGET)} is punycode for {shown} ({_listed(map(_title, scripts))} letters)"
    if len(hosts) > _LISTED:
        yield "contains more punycode hosts"


def _decoded(label: str) -> str | None:
    if not label.lower().startswith("xn--"):
        return label
    try:
        # IDNA labels have at most 63 characters; longer ones are not host names and decode slowly.
        return label[4:].encode("ascii").decode("punycode") if 4 < len(label) <= 63 else None
    except (UnicodeError, OverflowError, ValueError):
        return None


def _mixed_words(text: str) -> Iterable[str]:
    words: dict[str, frozenset[str]] = {}
    for word in _non_ascii_words(text):
        scripts = frozenset(s for c in word if (s := _script(c)))
        if len(scripts) > 1 and scripts - _EAST_ASIAN - {"LATIN"}:
            words[word] = scripts
    for word, scripts in list(words.items())[:_LISTED]:
        odd = next(c for c in word if _script(c) in scripts - _EAST_ASIAN - {"LATIN"})
        mix = _listed(sorted(map(_title, scripts)))
        yield f"mixes {mix} letters in one word: {plain(word, _WORD_BUDGET)} ({char_name(odd)})"
    if len(words) > _LISTED:
        yield f"mixes scripts in {len(words) - _LISTED} more words"


def _imitations(text: str) -> Iterable[str]:
    """Warn of words that look like ASCII but are not, in a path or host with other ASCII letters, or as the whole text.

    Also warn of unusual Latin letters in a word with ASCII letters.
    """
    imitated: dict[str, tuple[str, str]] = {}
    for token in dict.fromkeys(_TOKEN.findall(text)):
        locator = _LOCATOR.search(token) and any(c.isascii() and c.isalpha() for c in token)
        if token.isascii() or not (locator or (token == text.strip() and len(token) > 2)):
            continue
        for word in _WORD.findall(token):
            if reading := _imitated(word):
                imitated[word] = reading
    for word in _non_ascii_words(text):
        if word not in imitated and any(c in TWINS["unusual Latin"] for c in word) and any(c.isascii() for c in word):
            imitated[word] = "unusual Latin", "".join(TWINS["unusual Latin"].get(c, c) for c in word)
    for word, (script, reading) in list(imitated.items())[:_LISTED]:
        yield f"{plain(reading, _WORD_BUDGET)} is spelled with {script} letters: {plain(word, _WORD_BUDGET)}"
    if len(imitated) > _LISTED:
        yield f"spells {len(imitated) - _LISTED} more words with look-alike letters"


def _imitated(word: str) -> tuple[str, str] | None:
    """Return (script, the ASCII word) if each letter of the word is a look-alike from the same other script."""
    for script, letters in TWINS.items():
        if all(c in letters or (c.isascii() and not c.isalpha()) for c in word) and any(c in letters for c in word):
            return script, "".join(letters.get(c, c) for c in word)
    return None


def _odd_forms(text: str) -> Iterable[str]:
    odd = [c for c in sorted(set(text)) if _is_odd_form(c)]
    if odd:
        count = sum(text.count(c) for c in odd)
        noun = "character" if count == 1 else "characters"
        reads = unicodedata.normalize("NFKC", odd[0])
        yield f"contains {count} {noun} in an unusual form: {char_name(odd[0])} reads as {reads}"


def _odd_signs(text: str) -> Iterable[str]:
    """Warn of signs that look like ASCII punctuation and touch an ASCII letter or digit, as in a path or host."""
    for sign in sorted(set(text) & set(SIGNS)):
        if re.search(rf"[A-Za-z0-9]{re.escape(sign)}|{re.escape(sign)}[A-Za-z0-9]", text):
            kind = unicodedata.name(SIGNS[sign]).lower()
            yield f"contains {char_name(sign)}, which looks like a {kind}"


def _direction(text: str) -> Iterable[str]:
    if not any(unicodedata.bidirectional(c) in ("R", "AL") for c in set(text)):
        return
    for line in text.splitlines():
        classes = {unicodedata.bidirectional(c) for c in set(line)}
        if classes & {"R", "AL"} and "L" in classes:
            yield "mixes writing directions in one line: the order on screen may differ from the order in the text"
            return


def _non_ascii_words(text: str) -> list[str]:
    return [word for word in dict.fromkeys(_WORD.findall(text)) if not word.isascii()]


@lru_cache(maxsize=8192)
def _script(char: str) -> str | None:
    """Return the script of a letter, from its Unicode name. An odd form has the script of the letter it stands for."""
    base = unicodedata.normalize("NFKC", char)[:1] if char != "\u00b5" else ""
    if not base or unicodedata.category(base)[0] != "L":
        return None
    first = unicodedata.name(base, "").split(" ")[0]
    return None if first in ("", "MODIFIER") else first


@lru_cache(maxsize=8192)
def _is_odd_form(char: str) -> bool:
    """Whether this is a fullwidth, mathematical, circled or similar letter or digit that stands for an ASCII one."""
    if char.isascii() or char in _ORDINARY_FORMS or char in SIGNS or not (char.isalnum() or char.isprintable()):
        return False
    base = unicodedata.normalize("NFKC", char)
    superscript = unicodedata.name(char, "").startswith(("SUPERSCRIPT", "SUBSCRIPT", "MODIFIER", "VULGAR", "SQUARE "))
    return not superscript and base != char and base.isascii() and base.isalnum()


def _title(script: str) -> str:
    return "Chinese" if script == "CJK" else script.capitalize()


def _listed(words: Iterable[str]) -> str:
    *head, last = list(words) or ["no"]
    return f"{', '.join(head)} and {last}" if head else last
