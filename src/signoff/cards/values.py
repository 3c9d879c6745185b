"""A value as a reader meets it: its label, its exact text, what kind of JSON it is, and its natural form.

Whatever is said about a text, that lines are left out or how long it is, stands in a quote's note and never in the
quoted text, where the text itself could say it. Knows arguments as JSON, and nothing of batches or any medium.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, cast

from signoff.cards.model import Quote
from signoff.text.visible import clip, visible

LABEL_ROOM = 40
NOTE_ROOM = 104
"""No note is longer."""
SHORT = 200
"""Up to here a value on one line is shown without counts, and before the long ones."""
LINES = 100
"""More lines than this are not shown in full, however short they are."""
MOST = 100_000
"""No medium shows so many characters of one value; what is longer is not even tried."""
RUN = 10
"""So many equal or blank lines in a row are shown once."""
RUNS = 3
_BLANK = " \t\r"
_NAME = re.compile(r"[\w.$-]+")


@dataclass(frozen=True, slots=True)
class Quoted:
    quotes: tuple[Quote, ...]
    cut: int = 0
    """Values of which a part is missing."""
    missing: int = 0
    """Values that are not there at all."""

    @property
    def complete(self) -> bool:
        return not self.cut and not self.missing


@dataclass(frozen=True)
class Value:
    """Something to be quoted. A card may be built several times until it fits, so the costly parts are kept."""

    label: str
    """Trusted, or made visible and short."""
    text: str
    kind: str = ""
    """Empty for a string or words; else `number`, `null`, `list of 3` and so on, which tells 5 from "5"."""
    label_cut: bool = False

    @property
    def prefix(self) -> str:
        return f"{self.kind}, " if self.kind else ""

    @property
    def count(self) -> str:
        return "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"

    @property
    def wants(self) -> int:
        """The room it takes in its natural form."""
        return cost(self.natural.quotes) if self.natural else MOST

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """(first line, end) of the longest runs of equal or blank lines, in order."""
        found: list[tuple[int, int]] = []
        start = 0
        for _, group in groupby(self.lines, key=lambda line: line if line.strip(_BLANK) else ""):
            end = start + sum(1 for _ in group)
            if end - start > RUN:
                found.append((start, end))
            start = end
        return sorted(sorted(found, key=lambda run: run[0] - run[1])[:RUNS])

    @cached_property
    def natural(self) -> Quoted | None:
        """As it is shown where there is room, long runs collapsed; None if it is too much for any room."""
        if not self.runs:
            if len(self.lines) > LINES or len(self.text) > MOST:
                return None
            return Quoted((Quote(self.label, show(self.text), self._about()),), cut=int(self.label_cut))
        quotes: list[Quote] = []
        start, kept, total = 0, 0, len(self.lines)
        for first, end in [*self.runs, (total, total)]:
            # The first line of a run stays, so that the reader sees what is repeated.
            stop = min(first + 1, total)
            text = "\n".join(self.lines[start:stop])
            kept += max(0, stop - start)
            if kept > LINES or len(text) > MOST:
                return None
            if start < stop:
                note = f"{self.prefix}lines {start + 1}-{stop} of {total}"
                if end > stop:
                    what = "lines equal to the last one" if self.lines[first].strip(_BLANK) else "blank lines"
                    note += f"; then {end - stop} more {what} left out"
                quotes.append(Quote(self.label, show(text), note))
            start = end
        return Quoted(tuple(quotes), cut=1)

    def _about(self) -> str:
        if not self.text and not self.kind:
            return "empty text"
        parts = [self.kind or ("text" if _reads_as_json(self.text[:SHORT]) else "")]
        if len(self.lines) > 3 or len(self.text) > SHORT:
            parts.append(f"{self.count}, {len(self.text)} characters")
        return ", ".join(filter(None, parts))


def argument(name: str, value: Any) -> Value:
    label, cut = argument_label(name)
    if isinstance(value, str):
        return Value(label, value, label_cut=cut)
    return Value(label, _json_text(value), _kind(value), cut)


def argument_label(name: str) -> tuple[str, bool]:
    """An argument's name; in quotation marks unless it is one word, so that it never reads like a label of ours."""
    return clip(name if _NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False), LABEL_ROOM)


def strings_in(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included: JSON writes some hidden characters as escapes of its own."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack += [*cast("Mapping[str, Any]", item).keys(), *cast("Mapping[str, Any]", item).values()]
        elif isinstance(item, list | tuple):
            stack += cast("Sequence[Any]", item)


def cost(quotes: Sequence[Quote]) -> int:
    return sum(len(q.label) + len(q.text) + len(q.note) for q in quotes)


def show(text: str) -> str:
    return visible(text).text


def _json_text(value: Any) -> str:
    short = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return short if len(short) <= 80 else json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, Mapping):
        return f"object of {len(cast('Mapping[str, Any]', value))}"
    return f"list of {len(value)}"


def _reads_as_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
