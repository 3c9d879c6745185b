"""How two versions of a text differ, line by line. Pure functions on lines; this module knows no cards."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

COMPARED = 400
"""If more lines than this differ, they are shown as all removed and all added, not matched."""
RANGES = 4
"""The most ranges of lines that are named."""
Change = tuple[str, str]
"""A sign and a line: " " is in both versions, "-" only in the old one, "+" only in the new one."""


def compare(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return all lines of both versions, each once if both have it."""
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    changes: list[Change] = [(" ", line) for line in old[:head]]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    whole = [("replace", 0, len(before), 0, len(after))]
    for kind, i, j, k, m in matcher.get_opcodes() if max(len(before), len(after)) <= COMPARED else whole:
        if kind == "equal":
            changes += [(" ", line) for line in before[i:j]]
        else:
            changes += [*(("-", line) for line in before[i:j]), *(("+", line) for line in after[k:m])]
    return [*changes, *((" ", line) for line in old[len(old) - tail :])]


def name_new_lines(changes: Sequence[Change]) -> str:
    """Name the lines that only the new version has, by number: "line 4", "lines 4, 8-9"; empty if there are none."""
    ranges: list[tuple[int, int]] = []
    number = 0
    for sign, _ in changes:
        number += sign != "-"
        if sign == "+" and ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        elif sign == "+":
            ranges.append((number, number))
    if not ranges:
        return ""
    named = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in ranges[:RANGES])
    more = " and more" if len(ranges) > RANGES else ""
    is_one = ranges == [(ranges[0][0], ranges[0][0])]
    return f"line {named}" if is_one else f"lines {named}{more}"
