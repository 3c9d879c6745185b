"""Makes hidden characters visible: bidi controls, zero-width characters, odd spaces, control codes, mark floods.

Pure. Nothing is lost: a character that is not shown as itself is written as an escape such as `\\u{202E}`, and a
backslash before `u{` in the input is written as `\\u{005C}`, so `unescape` restores the input. Knows nothing of cards,
arguments or any medium; front ends handle markup.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern

STACK = 4
"""Up to this many combining marks on one letter are ordinary writing; Vietnamese, Hebrew and Thai need fewer."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp", "Me"})
# Invisible although their category says letter, mark or symbol: fillers, selectors, joiners, blank glyphs.
_HIDDEN_RANGES = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFFC, 0xFFFC),
    (0x16FE4, 0x16FE4),
    (0x1BC9D, 0x1BC9E),
    (0x1D159, 0x1D159),
    (0xE0000, 0xE0FFF),
)
_CONTROL_NAMES = {0x00: "NULL", 0x08: "BACKSPACE", 0x0D: "CARRIAGE RETURN", 0x1B: "ESCAPE", 0x7F: "DELETE"}
_OTHER_NAMES = {"Cs": "LONE SURROGATE", "Co": "PRIVATE USE", "Cn": "UNASSIGNED", "Cc": "CONTROL"}
_ORDINARY = lazy_pattern(r"[\n\t -~]*+")
_WRITTEN_ESCAPE = lazy_pattern(r"\\(?=u\{)")
_ESCAPE = lazy_pattern(r"\\u\{([0-9A-F]{4,6})\}")
_PLAIN = lazy_pattern(r"[A-Za-z0-9_.:/-]*+")
_PROSE = lazy_pattern(r"[A-Za-z0-9_.:/ ,'()-]*+")


@dataclass(frozen=True, slots=True)
class Visible:
    text: str
    findings: tuple[str, ...] = ()
    """Trusted text for warnings; it repeats no character of the input."""


def is_plain_line(text: str) -> bool:
    """Whether this is one line of printable ASCII that is shown as it is. Most texts are, and this is quick to find."""
    return text.isascii() and text.isprintable() and "\\u{" not in text


def visible(text: str) -> Visible:
    """Return the text with every hidden character written as an escape; newline and tab stay."""
    if _ORDINARY.fullmatch(text) and "\\u{" not in text:
        return Visible(text)
    # A text has few distinct characters, so classifying each of them is cheap. Only C code walks the whole text.
    used = sorted(set(text))
    hidden = [c for c in used if is_hidden(c)]
    marks = [c for c in used if c not in hidden and unicodedata.category(c) == "Mn"]
    findings: list[str] = []
    shown = _WRITTEN_ESCAPE.sub(_constant(escape("\\")), text)
    if hidden:
        count = sum(text.count(c) for c in hidden)
        findings.append(f"contains {_plural(count, 'hidden character')}: {_names(hidden)}")
    if marks:
        shown, flood = _thin_out(shown, marks)
        if flood:
            findings.append(f"contains {_plural(flood, 'stacked or stray combining mark')}")
    return Visible(shown.translate({ord(c): escape(c) for c in hidden}), tuple(findings))


def one_line(text: str) -> str:
    """Do the same for names and labels: newline and tab are escaped as well."""
    return text if is_plain_line(text) else visible(text).text.translate(_BREAKS)


def unescape(shown: str) -> str:
    """Return the exact input of `visible` or `one_line` from its output."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), shown)


def plain(text: str, budget: int, *, prose: bool = False) -> str:
    """Make an untrusted name safe for a trusted line: keep ASCII letters, digits and `_.:/-`, escape all else.

    With `prose`, spaces, commas, apostrophes and parentheses stay too. The name cannot form markup, a line break or a
    quotation.
    """
    kept = _PROSE if prose else _PLAIN
    if len(text) <= budget and kept.fullmatch(text):
        return text

    def show(part: str) -> str:
        return part if kept.fullmatch(part) else "".join(c if kept.fullmatch(c) else escape(c) for c in part)

    whole = show(text)
    return whole if len(whole) <= budget else show(text[: longest_head(text, budget - 3, show)]) + "..."


def clip(text: str, budget: int) -> tuple[str, bool]:
    """Return one visible line of at most `budget` characters, and whether it was cut, which the caller must say."""
    if len(text) <= budget and is_plain_line(text):
        return text, False
    # No escape is shorter than its character, so a text that is too long does not fit.
    if len(text) <= budget and len(whole := one_line(text)) <= budget:
        return whole, False
    return one_line(text[: longest_head(text, budget - 1, one_line)]) + "…", True


def longest_head(text: str, budget: int, show: Callable[[str], str]) -> int:
    """Return how many leading characters fit into `budget` once shown. Escapes are never cut in two."""
    if len(text) <= budget and len(show(text)) <= budget:
        return len(text)
    return _longest(min(len(text), max(budget, 0)), lambda n: len(show(text[:n])) <= budget)


def longest_tail(text: str, budget: int, show: Callable[[str], str]) -> int:
    """Return how many trailing characters fit into `budget` once shown."""
    return _longest(min(len(text), max(budget, 0)), lambda n: len(show(text[len(text) - n :])) <= budget)


@lru_cache(maxsize=8192)
def is_hidden(char: str) -> bool:
    """Whether this character is invisible, or changes how its neighbours look."""
    code = ord(char)
    if char in "\n\t" or 0x20 <= code < 0x7F:
        return False
    return unicodedata.category(char) in _HIDDEN_CATEGORIES or any(low <= code <= high for low, high in _HIDDEN_RANGES)


def escape(char: str) -> str:
    return f"\\u{{{ord(char):04X}}}"


_BREAKS = {9: escape("\t"), 10: escape("\n")}


def char_name(char: str) -> str:
    """Return a name like `U+202E RIGHT-TO-LEFT OVERRIDE`, with a word of our own if Unicode has no name."""
    code = ord(char)
    name = unicodedata.name(char, "") or _CONTROL_NAMES.get(code) or _OTHER_NAMES[unicodedata.category(char)]
    if name == "UNASSIGNED" and (code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF):
        name = "NONCHARACTER"
    return f"U+{code:04X} {name}"


def _thin_out(text: str, marks: Iterable[str]) -> tuple[str, int]:
    """Escape combining marks that follow no letter, and those beyond `STACK`. Returns the text and their number."""
    escaped = 0
    table = {ord(mark): escape(mark) for mark in marks}

    def replace(run: re.Match[str]) -> str:
        nonlocal escaped
        stacked = run[0]
        keep = STACK if _carries_marks(text[run.start() - 1] if run.start() else " ") else 0
        if len(stacked) <= keep:
            return stacked
        escaped += len(stacked) - keep
        return stacked[:keep] + stacked[keep:].translate(table)

    return re.sub(f"[{''.join(marks)}]+", replace, text), escaped


@lru_cache(maxsize=8192)
def _carries_marks(char: str) -> bool:
    category = unicodedata.category(char)
    return (category[0] in "LN" or category == "Mc") and not is_hidden(char)


def _constant(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _: text


def _names(chars: list[str]) -> str:
    listed = ", ".join(char_name(c) for c in chars[:3])
    return listed if len(chars) <= 3 else f"{listed} and {len(chars) - 3} more kinds"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _longest(high: int, fits: Callable[[int], bool]) -> int:
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
