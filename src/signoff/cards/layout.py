"""Lay out values as quotes: the label, the exact text, and the part of the text that fits.

Every remark about a text, such as its length or that lines are left out, is in the quote's note. It is never in the
quoted text, where the text itself could forge it. A cut text becomes two quotes, its beginning and its end, each with
a note that says which part of the whole it is. This module knows JSON and sizes, but neither batches nor any medium.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, cast

from signoff.cards.model import Quote, Shape
from signoff.text.visible import clip, longest_head, longest_tail, visible

LABEL_BUDGET = 40
NOTE_BUDGET = 104
"""No note is longer."""
SHORT = 200
"""A value on one line with at most this many characters is shown without counts, and before longer values."""
LINES = 40
"""A value with more lines than this is not shown in full, however short the lines are."""
MOST = 100_000
"""No medium shows this many characters of one value, so a longer value is always cut."""
RUN = 10
"""If more equal or blank lines than this follow each other, only the first is shown."""
RUNS = 3
_BLANK = " \t\r"
_NAME = re.compile(r"[\w.$-]+")


@dataclass(frozen=True, slots=True)
class Quoted:
    quotes: tuple[Quote, ...]
    cut: int = 0
    """The number of values that are shown only in part."""
    missing: int = 0
    """The number of values that are not shown at all."""

    @property
    def complete(self) -> bool:
        return not self.cut and not self.missing


@dataclass(frozen=True)
class Value:
    """A value to be quoted. A card may be built several times until it fits, so the costly parts are cached."""

    label: str
    """Our own text, or an argument's name with hidden characters made visible, cut if it is long."""
    text: str
    kind: str = ""
    """Empty for text; else `number`, `null`, `list of 3` and so on, which tells 5 from "5"."""
    label_cut: bool = False
    shape: Shape = Shape.BLOCK
    """The shape of the quote if the whole value fits. A cut value is always a block."""
    remark: str = ""
    """A note that takes the place of the usual one."""
    lines_at_most: int = LINES
    """A value with more lines than this is cut: its beginning and its end are shown."""

    @property
    def prefix(self) -> str:
        return f"{self.kind}, " if self.kind else ""

    @property
    def count(self) -> str:
        return "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"

    @property
    def wants(self) -> int:
        """The budget that `natural` needs."""
        return cost(self.natural.quotes) if self.natural else MOST

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """(first line, end) of the longest runs of equal or blank lines, in order."""
        runs: list[tuple[int, int]] = []
        start = 0
        for _, group in groupby(self.lines, key=lambda line: line if line.strip(_BLANK) else ""):
            end = start + sum(1 for _ in group)
            if end - start > RUN:
                runs.append((start, end))
            start = end
        return sorted(sorted(runs, key=lambda run: run[0] - run[1])[:RUNS])

    @cached_property
    def natural(self) -> Quoted | None:
        """The value as shown if the budget suffices, with long runs collapsed; None if it is too long for any."""
        if not self.runs:
            if len(self.lines) > self.lines_at_most or len(self.text) > MOST:
                return None
            quote = Quote(self.label, show(self.text), self.remark or self._about(), shape=self.shape)
            return Quoted((quote,), cut=int(self.label_cut))
        quotes: list[Quote] = []
        start, kept, total = 0, 0, len(self.lines)
        for first, end in [*self.runs, (total, total)]:
            # The first line of a run stays, so that the reader sees the repeated line.
            stop = min(first + 1, total)
            text = "\n".join(self.lines[start:stop])
            kept += max(0, stop - start)
            if kept > self.lines_at_most or len(text) > MOST:
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
        if self.shape is not Shape.BLOCK:
            # A number is shown as it is, so only a text that reads like one needs a note.
            return "text" if not self.kind and _reads_as_json(self.text) else ""
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
    """Return an argument's name and whether it was cut.

    A name that is not one word is put in quotation marks, so that it never reads like a label of ours.
    """
    return clip(name if _NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False), LABEL_BUDGET)


def strings_in(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, keys included.

    Check these strings, not the JSON text: JSON writes some hidden characters as escapes.
    """
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


HEAD_LINES, TAIL_LINES = 17, 8
"""The most lines in the beginning and in the end of a cut text."""
CUT_MOST = 1000
"""The most characters of a cut text that are shown. The whole text is in a file, so more of it would only be tall."""
_LEAST = 16


def quote_values(values: Sequence[Value], budget: int) -> Quoted:
    """Quote as many values as fit, whole if possible. The quotes never cost more than `budget`."""
    shown: list[tuple[Value, int]] = []
    left = budget
    for value in values:
        least = min(value.wants, 2 * (len(value.label) + NOTE_BUDGET + _LEAST))
        if least <= left:
            shown.append((value, least))
            left -= least
    quotes: list[Quote] = []
    cuts = 0
    more = share([value.wants - least for value, least in shown], left)
    for (value, least), extra in zip(shown, more, strict=True):
        whole = value.natural if value.wants <= least + extra else None
        part = whole or cut(value, least + extra)
        quotes += part.quotes
        cuts += part.cut
    return Quoted(tuple(quotes), cuts, len(values) - len(shown))


def cut(value: Value, budget: int) -> Quoted:
    """Quote the beginning and the end separately. Each note says which part of the whole the quote is."""
    half = min(CUT_MOST, budget - 2 * (len(value.label) + NOTE_BUDGET)) // 2
    text, total = value.text, len(value.text)
    head_stop, (tail_start, end) = _edges(value)
    head = longest_head(text[:head_stop], half, show)
    tail = longest_tail(text[max(head, tail_start) : end], half, show)
    begins = f"{value.prefix}characters 1-{head} of {total}, {value.count} in all"
    ends = f"characters {end - tail + 1}-{end} of {total}; the others are not shown here"
    first, last = Quote(value.label, show(text[:head]), begins), Quote(value.label, show(text[end - tail : end]), ends)
    return Quoted((first, last), cut=1)


def beginning(value: Value, budget: int) -> tuple[str, bool]:
    """Return as much of the beginning as fits, and whether that is all. For text that explains and does not run."""
    head = longest_head(value.text[: _edges(value)[0]], budget, show)
    return show(value.text[:head]), head == len(value.text)


def share(wants: Sequence[int], budget: int) -> list[int]:
    """Divide the budget fairly: wants below an equal part are met in full, the others divide the rest."""
    given = [0] * len(wants)
    left = budget
    for rank, index in enumerate(sorted(range(len(wants)), key=lambda i: wants[i])):
        given[index] = min(wants[index], left // (len(wants) - rank))
        left -= given[index]
    return given


def _edges(value: Value) -> tuple[int, tuple[int, int]]:
    """Return where the beginning must stop, and the span of the end.

    Neither contains a long run of equal lines.
    """
    lines, runs = value.lines, value.runs
    head = min([HEAD_LINES, *(first + 1 for first, _ in runs)])
    stop = runs[-1][0] + 1 if runs and runs[-1][1] == len(lines) else len(lines)
    start = max([stop - TAIL_LINES, *(end for _, end in runs if end < stop), 0])

    def ends(count: int) -> int:
        return len("\n".join(lines[:count]))

    return ends(head), (min(ends(start) + 1, ends(stop)) if start else 0, ends(stop))
