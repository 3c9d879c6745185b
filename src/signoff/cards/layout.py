"""Values as quotes: dividing the room there is, and cutting what does not fit into a beginning and an end.

A cut is two quotes, each with a note that says which part of the whole it is. Knows values and room, and nothing of
batches or any medium.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.cards.model import Quote
from signoff.cards.values import NOTE_ROOM, Quoted, Value, show
from signoff.text.visible import longest_head, longest_tail

CUT_LINES = 40
"""A beginning or an end has no more lines."""
_LEAST = 16


def quote_values(values: Sequence[Value], room: int) -> Quoted:
    """As many values as fit, whole where possible. Never costs more than `room`."""
    shown: list[tuple[Value, int]] = []
    left = room
    for value in values:
        least = min(value.wants, 2 * (len(value.label) + NOTE_ROOM + _LEAST))
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


def cut(value: Value, room: int) -> Quoted:
    """Beginning and end, each in a quote of its own whose note says which part of the whole it is."""
    half = (room - 2 * (len(value.label) + NOTE_ROOM)) // 2
    text, total = value.text, len(value.text)
    head_stop, (tail_start, end) = _edges(value)
    head = longest_head(text[:head_stop], half, show)
    tail = longest_tail(text[max(head, tail_start) : end], half, show)
    begins = f"{value.prefix}characters 1-{head} of {total}, {value.count} in all"
    ends = f"characters {end - tail + 1}-{end} of {total}; the others are not shown here"
    first, last = Quote(value.label, show(text[:head]), begins), Quote(value.label, show(text[end - tail : end]), ends)
    return Quoted((first, last), cut=1)


def beginning(value: Value, room: int) -> tuple[str, bool]:
    """For words that explain and do not run: as much of the beginning as fits, and whether that is all."""
    head = longest_head(value.text[: _edges(value)[0]], room, show)
    return show(value.text[:head]), head == len(value.text)


def share(wants: Sequence[int], room: int) -> list[int]:
    """Divide the room fairly: who wants less than an equal part gets what it wants, the others divide the rest."""
    given = [0] * len(wants)
    left = room
    for rank, index in enumerate(sorted(range(len(wants)), key=lambda i: wants[i])):
        given[index] = min(wants[index], left // (len(wants) - rank))
        left -= given[index]
    return given


def _edges(value: Value) -> tuple[int, tuple[int, int]]:
    """Where a beginning must stop, and the span of an end: few lines each, and no long run of equal lines in them."""
    lines, runs = value.lines, value.runs
    head = min([CUT_LINES, *(first + 1 for first, _ in runs)])
    stop = runs[-1][0] + 1 if runs and runs[-1][1] == len(lines) else len(lines)
    start = max([stop - CUT_LINES, *(end for _, end in runs if end < stop), 0])

    def ends(count: int) -> int:
        return len("\n".join(lines[:count]))

    return ends(head), (min(ends(start) + 1, ends(stop)) if start else 0, ends(stop))
