"""Mask the diff of a write as both whole files would be masked.

A diff shows a few lines of a file, with a sign before each. A key is known by its first line, which the diff may leave
out, and by the lines below it, which the signs break up. So the diff alone is not enough. The old file is made again
from the new content and the diff; both files are masked, and each line of the diff is taken from them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from signoff.text.patterns import lazy_pattern

_HUNK = lazy_pattern(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_COUNTS = lazy_pattern(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_Place = tuple[int | None, int | None]
"""The number of a line in the old and in the new file; None if it is not there."""


def mask_diff(diff: str, new: str, mask: Callable[[str], str]) -> str:
    """Return the masked diff. `new`: the content after the change. `mask` keeps the number of lines of a text."""
    lines, after = diff.split("\n"), new.split("\n")
    before, places = _read(lines, after)
    if any(at is not None and lines[number][1:] != "".join(after[at : at + 1]) for number, (_, at) in places.items()):
        return mask(diff)  # it is not the diff of this content
    old, now = mask("\n".join(before)).split("\n"), mask(new).split("\n")

    def show(number: int, line: str) -> str:
        if number not in places:
            return line if _HUNK.fullmatch(line) else mask(line)
        was, at = places[number]
        is_masked_there = was is not None and old[was] != before[was]
        return line[:1] + (old[was] if was is not None and (is_masked_there or at is None) else now[at or 0])

    return "\n".join(show(number, line) for number, line in enumerate(lines))


def mask_hunks(diff: str, mask: Callable[[str], str]) -> str:
    """Return a diff of which only the lines are known, masked as the old and the new lines of each hunk would be."""
    lines = diff.split("\n")
    shown: list[str] = []
    at = 0
    while at < len(lines):
        hunk = _COUNTS.fullmatch(lines[at])
        end = _end(lines, at + 1, int(hunk[1] or 1), int(hunk[2] or 1)) if hunk else at + 1
        shown += [lines[at], *_masked_hunk(lines[at + 1 : end], mask)] if hunk else [mask(lines[at])]
        at = end
    return "\n".join(shown)


def _end(lines: list[str], at: int, old: int, new: int) -> int:
    """Return the index after a hunk with so many old and new lines, whose first line is at `at`."""
    while at < len(lines) and (old > 0 or new > 0 or lines[at].startswith("\\")):
        old -= lines[at][:1] in ("-", " ")
        new -= lines[at][:1] in ("+", " ")
        at += 1
    return at


def _masked_hunk(lines: list[str], mask: Callable[[str], str]) -> list[str]:
    result = list(lines)
    for signs in ("+ ", "- "):
        here = [number for number, line in enumerate(lines) if line[:1] in signs]
        masked = mask("\n".join(lines[number][1:] for number in here)).split("\n")
        for number, text in zip(here, masked, strict=True) if here else ():
            if text != lines[number][1:]:  # a line of both files is masked if one of them has it masked
                result[number] = lines[number][:1] + text
    return result


def _read(lines: list[str], after: list[str]) -> tuple[list[str], dict[int, _Place]]:
    """Return the lines of the old file, and a dict of line of the diff -> its place in both files."""
    before: list[str] = []
    places: dict[int, _Place] = {}
    done, in_hunk = 0, False
    for number, line in enumerate(lines):
        if hunk := _HUNK.fullmatch(line):
            # An empty range is named by the line before it.
            start = int(hunk[1]) - (hunk[2] != "0")
            before += after[done:start]
            done, in_hunk = start, True
        elif in_hunk and (sign := line[:1]) in ("-", "+", " "):
            places[number] = None if sign == "+" else len(before), None if sign == "-" else done
            before += [] if sign == "+" else [line[1:]]
            done += sign != "-"
    return [*before, *after[done:]], places
