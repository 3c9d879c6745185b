"""Lay out values as quotes: the label, the exact text, and the part of the text that fits.

Every remark about a text, such as its length or that lines are left out, is beside or below the quoted text. It is
never in the quoted text, where the text itself could forge it. A cut text becomes two quotes, its beginning and its
end, with a line between them that says how much is left out. `folding` says how many lines a value may have. This
module knows JSON and sizes, but neither batches nor any medium.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, cast

from signoff.cards.model import Quote, Shape
from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import clip, is_plain_line, longest_head, longest_tail, visible

LABEL_BUDGET = 40
NOTE_BUDGET = 104
"""No note is longer."""
SHORT = 200
"""A value on one line with at most this many characters is shown without counts, and before longer values."""
LINES = 40
"""A value with more lines than this is not shown in full, however short the lines are, unless `folding` says less."""
COLUMNS = 34
"""Characters in a line of a block on a phone. A longer line takes several."""
SHOWN_LINES = 16
"""The most lines of a value that is cut because its characters do not fit."""
MOST = 100_000
"""No medium shows this many characters of one value, so a longer value is always cut."""
RUN = 10
"""If more equal or blank lines than this follow each other, only the first is shown."""
RUNS = 3
_BLANK = " \t\r"
_NAME = lazy_pattern(r"[\w.$-]+")
_JSON_BEGINS = lazy_pattern(r"[\s{\[\"0-9tfnNI-]")


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
    """A part of the note that comes first."""
    lines_at_most: int = LINES
    """A value with more lines than this is cut: its beginning and its end are shown. 0: it is left out."""
    shown_lines: int = SHOWN_LINES
    """The number of lines that are shown of a cut value."""
    columns: int = COLUMNS
    """Characters in a line, as `lines_at_most` counts lines."""
    has_end: bool = True
    """Whether the end of a cut value is shown, too."""
    diff: bool = False

    @cached_property
    def wants(self) -> int:
        """The budget that the value needs: whole, or as much of it as is ever shown."""
        if not self.lines_at_most:
            return 0
        return cost(self.natural.quotes) if self.natural else 2 * (len(self.label) + NOTE_BUDGET) + CUT_MOST

    @property
    def is_one_line(self) -> bool:
        """Whether there are neither lines to count nor runs of lines to collapse."""
        return "\n" not in self.text

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """(first line, end) of the longest runs of equal or blank lines, in order."""
        runs: list[tuple[int, int]] = []
        if len(self.lines) <= RUN:
            return runs
        start = 0
        for _, group in groupby(self.lines, key=lambda line: line if line.strip(_BLANK) else ""):
            end = start + sum(1 for _ in group)
            if end - start > RUN:
                runs.append((start, end))
            start = end
        return sorted(sorted(runs, key=lambda run: run[0] - run[1])[:RUNS])

    @cached_property
    def pieces(self) -> list[tuple[int, int, int]]:
        """(first line, end, end of what is left out after it) of each piece that is shown if long runs are collapsed.

        The first line of a run is shown, so that the reader sees the repeated line.
        """
        pieces: list[tuple[int, int, int]] = []
        start, total = 0, len(self.lines)
        for first, end in [*self.runs, (total, total)]:
            stop = min(first + 1, total)
            pieces += [(start, stop, end)] if start < stop else []
            start = end
        return pieces

    @property
    def height(self) -> int:
        """The number of lines on a phone, with long runs collapsed."""
        return self.rows(self.text) if self.is_one_line else self._height

    @cached_property
    def _height(self) -> int:
        return sum(self.rows(line) for start, stop, _ in self.pieces for line in self.lines[start:stop])

    def rows(self, line: str) -> int:
        return max(1, -(-len(line) // self.columns))

    @cached_property
    def natural(self) -> Quoted | None:
        """The value as shown if the budget suffices, with long runs collapsed; None if it is too long for any."""
        if self.height > self.lines_at_most or len(self.text) > MOST:
            return None
        if self.is_one_line or not self.runs:
            quote = Quote(self.label, show(self.text), self._about(), self.diff, self.shape)
            return Quoted((quote,), cut=int(self.label_cut))
        quotes: list[Quote] = []
        for start, stop, end in self.pieces:
            what = "lines like the last one" if self.lines[stop - 1].strip(_BLANK) else "blank lines"
            after = f"… {end - stop} more {what}" if end > stop else ""
            text, note = show("\n".join(self.lines[start:stop])), "" if quotes else self.counts
            quotes.append(Quote(self.label, text, note, self.diff, after=after, continued=bool(quotes)))
        return Quoted(tuple(quotes), cut=1)

    @property
    def counts(self) -> str:
        """The note on a value of which something is left out."""
        return ", ".join(filter(None, [self.remark, self.kind, self.size]))

    @property
    def size(self) -> str:
        return f"{len(self.lines)} lines" if len(self.lines) > 3 else f"{len(self.text)} characters"

    def _about(self) -> str:
        if not self.text and not self.kind and not self.remark:
            return "empty text"
        if self.shape is not Shape.BLOCK:
            # A number is shown as it is, so only a text that reads like one needs a note.
            return self.remark or ("text" if not self.kind and _reads_as_json(self.text) else "")
        parts = [self.remark, self.kind or ("text" if _reads_as_json(self.text[:SHORT]) else "")]
        if not self.diff and (len(self.lines) > 3 or len(self.text) > SHORT):
            parts.append(self.size)
        return ", ".join(filter(None, parts))


def argument(name: str, value: Any) -> Value:
    (label, cut), (text, kind) = argument_label(name), argument_text(value)
    return Value(label, text, kind, cut)


def argument_text(value: Any) -> tuple[str, str]:
    """Return an argument's value as text, and its kind, which is empty for text."""
    return (value, "") if isinstance(value, str) else (_json_text(value), _kind(value))


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
    return sum([len(q.label) + len(q.text) + len(q.note) + len(q.after) for q in quotes])


def show(text: str) -> str:
    return text if is_plain_line(text) else visible(text).text


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
    if not _JSON_BEGINS.match(text):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


CUT_MOST = 1000
"""The most characters of a cut text that are shown. The whole text is in a file, so more of it would only be tall."""
_LEAST = 16


def quote_values(values: Sequence[Value], budget: int) -> Quoted:
    """Quote as many values as fit, whole if possible. The quotes never cost more than `budget`."""
    given = [(value, value.wants) for value in values if value.lines_at_most]
    if sum([wants for _, wants in given]) > budget:
        given = _divide(values, budget)
    quotes: list[Quote] = []
    cuts = 0
    for value, most in given:
        part = (value.natural if value.wants <= most else None) or cut(value, most)
        quotes += part.quotes
        cuts += part.cut
    return Quoted(tuple(quotes), cuts, len(values) - len(given))


def _divide(values: Sequence[Value], budget: int) -> list[tuple[Value, int]]:
    """Return as many values as fit, each with its part of the budget."""
    shown: list[tuple[Value, int]] = []
    left = budget
    for value in values:
        least = min(value.wants, 2 * (len(value.label) + NOTE_BUDGET + _LEAST))
        if least <= left and value.lines_at_most:
            shown.append((value, least))
            left -= least
    more = share([value.wants - least for value, least in shown], left)
    return [(value, least + extra) for (value, least), extra in zip(shown, more, strict=True)]


def cut(value: Value, budget: int) -> Quoted:
    """Quote the beginning and the end, and say between them how much is left out."""
    most = min(CUT_MOST, budget - 2 * (len(value.label) + NOTE_BUDGET))
    half = most // 2 if value.has_end else most
    text = value.text
    head_stop, (tail_start, end) = _edges(value)
    head = longest_head(text[:head_stop], half, show)
    tail = longest_tail(text[max(head, tail_start) : end], half, show) if value.has_end else 0
    after = [_left_out(text, head, end - tail), _left_out(text, end, len(text))] if tail else []
    between, behind = after or [_left_out(text, head, len(text)), ""]
    first = Quote(value.label, show(text[:head]), value.counts, value.diff, after=between)
    last = Quote(value.label, show(text[end - tail : end]), "", value.diff, after=behind, continued=True)
    return Quoted((first, last) if tail else (first,), cut=1)


def _left_out(text: str, start: int, stop: int) -> str:
    """Say how much of the text is left out between two positions, in lines if it begins and ends with a line."""
    if start >= stop:
        return ""
    body = text[start:stop]
    begins = not start or body.startswith("\n") or text[start - 1] == "\n"
    ends = stop == len(text) or body.endswith("\n") or text[stop] == "\n"
    if not begins or not ends:
        return f"… {len(body)} more character{'s' if len(body) > 1 else ''}"
    body = body.removeprefix("\n")
    lines = (body.removesuffix("\n") if stop < len(text) else body).count("\n") + 1
    return f"… {lines} more line{'s' if lines > 1 else ''}"


def beginning(value: Value, budget: int) -> tuple[str, bool]:
    """Return as much of the beginning as fits, and whether that is all. For text that explains and does not run."""
    head = longest_head(value.text[: _edges(value)[0]], budget, show)
    return show(value.text[:head]), head == len(value.text)


def share(wants: Sequence[int], budget: int) -> list[int]:
    """Divide the budget fairly: wants below an equal part are met in full, the others divide the rest."""
    if sum(wants) <= budget:
        return [*wants]
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
    for_end = value.shown_lines // 3 if value.has_end else 0
    head = min([len(lines), *(first + 1 for first, _ in runs)])
    stop = runs[-1][0] + 1 if runs and runs[-1][1] == len(lines) else len(lines)
    start = max([0, *(end for _, end in runs if end < stop)])

    def ends(count: int) -> int:
        return len("\n".join(lines[:count]))

    end = ends(stop)
    begin = end - _reach(value, lines[start:stop][::-1], for_end)
    return _reach(value, lines[:head], value.shown_lines - for_end), (begin, end)


def _reach(value: Value, lines: Sequence[str], rows: int) -> int:
    """Return how many characters of these lines take at most `rows` lines on a phone. Only the first may be cut."""
    reached = 0
    for number, line in enumerate(lines):
        rows -= value.rows(line)
        if rows < 0:
            return reached - 1 if number else min(len(line), max(0, rows + value.rows(line)) * value.columns)
        reached += len(line) + 1
    return reached - 1
