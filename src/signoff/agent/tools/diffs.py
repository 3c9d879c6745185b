"""Describes the change that a write makes: a complete unified diff or, for large or binary files, sizes and a digest.

Pure. Only a newline ends a line, so that a stray carriage return stays inside its line and is visible.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Literal

from signoff.agent.tools.workspace import ABSENT, KB, Present, digest_of

LARGEST = 128 * KB
"""Larger files are not compared line by line."""
_COMPARED = 1_000
"""If either side has more differing lines than this, they are shown as all removed and all added, not matched."""
_KEY = "-----BEGIN "
_EVERYTHING = 1_000_000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_Code = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


def describe_change(path: str, old: Present, new: bytes) -> str:
    """Return a summary of the change, then the diff."""
    if old.digest == digest_of(new):
        return f"No change: {path} has exactly this content already ({len(new)} bytes)."
    before, after = as_text(old.data), as_text(new)
    if before is None or after is None or max(old.size, len(new)) > LARGEST:
        is_text = before is not None and after is not None
        why = "is too large to be compared here" if old.data is None or is_text else "is not text"
        words = "Creates" if old.digest == ABSENT else "Replaces"
        now = ABSENT if old.digest == ABSENT else f"{old.size} bytes, sha256 {old.digest}"
        return f"{words} {path}, which {why}.\nnow:   {now}\nafter: {len(new)} bytes"
    a, b = _LINE.findall(before), _LINE.findall(after)
    diff = list(_diff(a, b, _context(before, after)))
    if old.digest == ABSENT:
        words = f"New file {path}: {_count(len(b), 'line')}, {len(new)} bytes."
    else:
        removed, added = (sum(line.startswith(sign) for line in diff) for sign in "-+")
        words = f"Changes {path}: {_count(removed, 'line')} removed, {_count(added, 'line')} added."
    origin = "/dev/null" if old.digest == ABSENT else f"a/{path}"
    headers = [f"--- {origin}\n", f"+++ b/{path}\n"] if diff else []
    return "".join([words, *_endings(before, after, old.digest == ABSENT), "\n", *headers, *diff]).rstrip("\n")


def describe_removal(path: str, old: Present) -> str:
    """Return a summary of the deletion of a file, then a diff that shows all its lines."""
    before = as_text(old.data)
    if before is None or old.size > LARGEST:
        return f"Deletes {path} ({old.size} bytes, sha256 {old.digest})."
    lines = _LINE.findall(before)
    headers = [f"--- a/{path}\n", "+++ /dev/null\n"] if lines else []
    words = f"Deletes {path}: {_count(len(lines), 'line')}, {old.size} bytes.\n"
    return "".join([words, *headers, *_diff(lines, [], 3)]).rstrip("\n")


def _context(before: str, after: str) -> int:
    """Return how many lines around a change are shown. A key is known by its first line, so it is shown whole."""
    return _EVERYTHING if _KEY in before or _KEY in after else 3


def is_diff(change: str) -> bool:
    """Whether this description of a change has a diff, which shows every line that changes."""
    return "\n@@ -" in change


def as_text(data: bytes | None, *, is_cut: bool = False) -> str | None:
    """Decode UTF-8. Return None if there is no data or it is not text: a NUL byte is valid UTF-8, but no text has one.

    If the data is cut, it may end inside a character; that part is left out.
    """
    if data is None or b"\0" in data:
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=not is_cut)
    except UnicodeDecodeError:
        return None


def _endings(before: str, after: str, is_new: bool) -> Iterable[str]:
    """Describe a change of line endings in words, since people cannot see it in a diff."""
    if is_new and "\r\n" in after:
        yield f"\nLine endings: {_count_endings(after)}."
    elif not is_new and ("\r\n" in before) != ("\r\n" in after):
        yield f"\nLine endings: {_count_endings(before)} now, {_count_endings(after)} after."


def _count_endings(text: str) -> str:
    windows = text.count("\r\n")
    return f"{windows} CRLF and {text.count(chr(10)) - windows} LF"


def _diff(a: Sequence[str], b: Sequence[str], context: int) -> Iterable[str]:
    for group in _Ends(a, b).get_grouped_opcodes(context):
        (_, a1, _, b1, _), (_, _, a2, _, b2) = group[0], group[-1]
        yield f"@@ -{_range(a1, a2)} +{_range(b1, b2)} @@\n"
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                yield from map(_shown, " " * (i2 - i1), a[i1:i2])
            else:
                yield from map(_shown, "-" * (i2 - i1), a[i1:i2])
                yield from map(_shown, "+" * (j2 - j1), b[j1:j2])


class _Ends(SequenceMatcher[str]):
    """Skips equal lines at both ends, and compares the rest only up to `_COMPARED` lines, so that it stays fast."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self.old, self.new = old, new

    def get_opcodes(self) -> list[_Code]:
        a, b, shorter = self.old, self.new, min(len(self.old), len(self.new))
        head = next((n for n in range(shorter) if a[n] != b[n]), shorter)
        tail = next((n for n in range(shorter - head) if a[-1 - n] != b[-1 - n]), shorter - head)
        left, right = a[head : len(a) - tail], b[head : len(b) - tail]
        codes: list[_Code] = [("replace", 0, len(left), 0, len(right))] if left or right else []
        if left and right and max(len(left), len(right)) <= _COMPARED:
            codes = list(SequenceMatcher(None, left, right).get_opcodes())
        first: list[_Code] = [("equal", 0, head, 0, head)] if head else []
        last: list[_Code] = [("equal", len(a) - tail, len(a), len(b) - tail, len(b))] if tail else []
        return [*first, *((kind, i + head, j + head, k + head, m + head) for kind, i, j, k, m in codes), *last]


def _shown(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _range(start: int, stop: int) -> str:
    length = stop - start
    # An empty range is named by the line before it.
    return f"{start + 1 if length else start},{length}" if length != 1 else str(start + 1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
