"""How many lines of a card's values are shown, counted as a phone shows them. The rest is in the attached file.

A card with few lines shows all of them. Otherwise the values share the lines: short values are shown whole, long ones
are folded to their beginning and their end. A settled card is folded harder, because nobody has to review it any more.
If no file can be attached, nothing is folded for its height: nobody may accept a call that is not shown whole. This
module knows values and lines, but neither characters nor any medium.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from signoff.cards.layout import COLUMNS, LINES, MOST, Value, share
from signoff.cards.model import Shape

FOLD = 25
"""The values of a card with one to three calls are shown whole if they have at most this many lines together."""
PER_CALL = 8
"""More calls may have this many lines each."""
FOLDED = 8
"""The lines of the folded values of a call together: the file is attached anyway, so more would only be tall."""
SETTLED_FOLD, SETTLED = 16, 6
"""The same two numbers for a settled card. A file takes the space of four lines, so fewer lines are not folded."""
LEAST = 4
"""A value with at most this many lines is never folded."""
BLOCKS = 10
"""The most values with a block of their own. Others are only in the file."""


def fold(
    calls: Sequence[Sequence[Value]], *, settled: bool, can_attach: bool, columns: int = COLUMNS
) -> list[tuple[Value, ...]]:
    """Return the values of each call with the number of lines that they may have, of `columns` characters each."""
    if columns != COLUMNS:
        calls = [[replace(value, columns=columns) for value in values] for values in calls]
    if not can_attach:
        return [tuple(replace(value, columns=MOST, lines_at_most=LINES) for value in values) for values in calls]
    blocks = [value for values in calls for value in values if value.shape is Shape.BLOCK]
    wants = [value.height for value in blocks]
    limit = max(SETTLED_FOLD if settled else FOLD, PER_CALL * len(calls))
    if sum(wants) <= limit and len(blocks) <= BLOCKS:
        return [tuple(values) for values in calls]
    given = [max(lines, LEAST) for lines in share(wants, limit)]
    long = [number for number, want in enumerate(wants) if want > given[number]]
    parts = share([wants[number] for number in long], (SETTLED if settled else FOLDED) * len(calls))
    shown = dict(zip(long, parts, strict=True))
    folded = iter(
        replace(
            value,
            lines_at_most=given[number] if number < BLOCKS else 0,
            shown_lines=max(shown.get(number, 0), LEAST),
        )
        for number, value in enumerate(blocks)
    )
    return [tuple(next(folded) if value.shape is Shape.BLOCK else value for value in values) for values in calls]
