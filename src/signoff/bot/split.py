"""Split a long reply into messages without breaking its code blocks. Pure text; knows no Discord objects.

Discord's API counts code points, its clients count UTF-16 units. Parts are measured in UTF-16, which is never less.
Discord takes three backticks for a fence anywhere in a line, so this module looks for fences anywhere too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern

LIMIT = 2000
MAX_PARTS = 6
FENCE = "```"
CLOSING = "\n" + FENCE

_FENCE = lazy_pattern(r"```(?:(?P<language>[A-Za-z0-9_+\-.#]{1,20})(?=\n))?")
_SENTENCE = lazy_pattern(r"[.!?][\"')\]]? ")
_CONTROLS = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f]")


def size(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def sendable(text: str) -> str:
    """Remove lone surrogates and control characters, which JSON or Discord would refuse."""
    whole = text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return _CONTROLS.sub("", whole)


@dataclass(frozen=True, slots=True)
class Framed:
    """A text, and what we say above and below it. No code block of the text contains our lines."""

    text: str
    above: str = ""
    below: str = ""

    def around(self, text: str) -> str:
        below = f"{_closing(None, list(_fences(text, None)))}\n{self.below}" if self.below else ""
        return f"{self.above}{text}{below}"


@dataclass(frozen=True, slots=True)
class Fence:
    start: int
    end: int
    language: str | None
    """None if this fence closes a block."""


def split(text: str, limit: int = LIMIT) -> list[str]:
    """Split the text into parts of at most `limit` units. No part is empty, and each part's fences are balanced."""
    if limit < 100:
        raise ValueError("too small a limit to close and reopen code blocks")
    parts: list[str] = []
    rest, language = text, None
    while rest.strip():
        cut = _take(rest, language, limit)
        parts.append(cut.part)
        rest, language = cut.rest, cut.language
    return [part for part in parts if part.strip()]


@dataclass(frozen=True, slots=True)
class _Cut:
    part: str
    rest: str
    language: str | None
    """The language of the code block that the rest begins in; None if it begins outside a block."""


def _take(text: str, language: str | None, limit: int) -> _Cut:
    opening = "" if language is None else f"{FENCE}{language}\n"
    space = limit - len(opening) - len(CLOSING)
    fences = list(_fences(text[: limit + 64], language))  # only what this part can reach, however long the text is
    if len(text) <= limit:
        whole = opening + text + _closing(language, fences)
        if size(whole) <= limit:
            return _Cut(whole, "", None)
    end = _boundary(text, _fit(text, space), fences, language)
    inside = _language_at(end, fences, language)
    chunk, rest = text[:end], text[end:]
    if inside is None:
        # Discord trims both ends of a message anyway. Remove at most one space, to keep the next line's indentation.
        return _Cut(opening + chunk.rstrip(), rest.lstrip("\n").removeprefix(" "), None)
    rest = rest.removeprefix("\n")
    closed = re.match(rf"\n*{FENCE}", rest)
    if closed:
        # The block ended right here: the part has its closing fence already, so an empty block is not reopened.
        return _Cut(opening + chunk + CLOSING, rest[closed.end() :].lstrip("\n"), None)
    return _Cut(opening + chunk + CLOSING, rest, inside)


def _fences(text: str, language: str | None) -> Iterator[Fence]:
    opened = language is not None
    position = 0
    while True:
        if opened:
            start = text.find(FENCE, position)
            fence = Fence(start, start + len(FENCE), None) if start >= 0 else None
        else:
            match = _FENCE.search(text, position)
            fence = Fence(match.start(), match.end(), match["language"] or "") if match else None
        if fence is None:
            return
        yield fence
        opened = not opened
        position = fence.end


def _language_at(index: int, fences: list[Fence], language: str | None) -> str | None:
    for fence in fences:
        if fence.end > index:
            break
        language = fence.language
    return language


def _closing(language: str | None, fences: list[Fence]) -> str:
    return "" if _language_at(1 << 62, fences, language) is None else CLOSING


def _fit(text: str, space: int) -> int:
    """Return how many characters from the start take at most `space` units."""
    used = 0
    for index, char in enumerate(text[: space + 1]):
        used += 2 if ord(char) > 0xFFFF else 1
        if used > space:
            return index
    return min(len(text), space)


def _boundary(text: str, most: int, fences: list[Fence], language: str | None) -> int:
    """Return where to cut, at or before `most`: between paragraphs, lines, sentences or words, else where allowed."""

    def allowed(index: int) -> bool:
        return index > 0 and not any(fence.start < index <= _opened(fence) for fence in fences)

    def _opened(fence: Fence) -> int:
        # Do not cut inside a fence, nor right behind one that opens a block: that would leave an empty block.
        if fence.language is None:
            return fence.end - 1
        end = fence.end
        while end < len(text) and text[end] == "\n":
            end += 1
        return end

    def outside(index: int) -> bool:
        return _language_at(index, fences, language) is None

    window = text[:most]
    half, quarter = most // 2, most // 4
    lines = [m.start() for m in re.finditer(r"\n", text[: most + 1])]
    paragraphs = [m.start() for m in re.finditer(r"\n\n", text[: most + 1])]
    sentences = [m.end() - 1 for m in _SENTENCE.finditer(window)]
    words = [m.start() for m in re.finditer(r" ", text[: most + 1])]
    for candidates, least, only_outside in (
        (paragraphs, half, True),
        (lines, half, True),
        (lines, quarter, False),
        (sentences, quarter, False),
        (words, quarter, False),
    ):
        for index in reversed(candidates):
            if index >= least and allowed(index) and (not only_outside or outside(index)):
                return index
    index = most
    while index > 1 and not allowed(index):
        index -= 1
    return index
