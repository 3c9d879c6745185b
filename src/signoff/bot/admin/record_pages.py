"""Pages of the record: the position of a page, as stored in a button's id, and the rows of the page.

The store can only return the rows before a number, newest first; a page of newer rows is computed from those. Pure
except for the function that fetches. This module does not know interactions.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from signoff.approvals.audit import AuditRow
from signoff.approvals.errors import Refused
from signoff.bot.admin.record_wording import KINDS
from signoff.bot.split import size
from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern

PAGE = 10
LOOK = 100
"""The number of rows to fetch at once when looking for newer rows."""
MOST_ID = 100
TOOL_HINT = "tool must be a tool name as the record shows it: no spaces, at most 64 characters."
REQUEST_HINT = "request must be a request id as its card and the record show it: 16 digits and letters from a to f."

Fetch = Callable[[int | None, int], Awaitable[Sequence[AuditRow]]]
"""(before, limit) -> rows, newest first."""

_TOOL = r"[\w.:/*?\[\]!-]{1,64}"
TEMPLATE = lazy_pattern(
    r"signoff:log:(?P<way>[on])(?P<request>(?:[0-9a-f]{16})?):(?P<seq>[1-9a-z][0-9a-z]{0,12}):(?P<actor>(?:[1-9a-z][0-9a-z]{0,12})?)"
    rf":(?P<kind>[a-z]?):(?P<tool>(?:{_TOOL})?)\Z"
)
_LETTERS = {kind: entry.letter for kind, entry in KINDS.items()}
_BY_LETTER = {letter: kind for kind, letter in _LETTERS.items()}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Filters:
    actor: str | None = None
    """A Discord id."""
    tool: str | None = None
    kind: str | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True)
class Spot:
    """A page: the rows right before the row number `seq`, or those right after it."""

    older: bool
    seq: int
    filters: Filters


@dataclass(frozen=True, slots=True)
class Page:
    rows: Sequence[AuditRow]
    older: bool
    """Whether there are rows older than these."""
    newer: bool


def checked_filters(actor: str | None, tool: object, kind: object, request: object = None) -> Filters:
    """Check the filters of a command. Raises Refused if they are invalid or do not fit into a button's id."""
    name = tool.strip() if isinstance(tool, str) else None
    if tool is not None and not (name and re.fullmatch(_TOOL, name)):
        raise Refused(TOOL_HINT)
    if kind is not None and kind not in KINDS:
        raise Refused("kind must be one of the suggested kinds.")
    one = request.strip().lower() if isinstance(request, str) else None
    if request is not None and not (one and re.fullmatch(r"[0-9a-f]{16}", one)):
        raise Refused(REQUEST_HINT)
    filters = Filters(actor, name, str(kind) if kind is not None else None, one)
    write_id(Spot(True, 36**7 - 1, filters))
    return filters


def write_id(spot: Spot) -> str:
    filters = spot.filters
    actor = _write(int(filters.actor)) if filters.actor else ""
    kind = _LETTERS[filters.kind] if filters.kind else ""
    way = "o" if spot.older else "n"
    written = f"signoff:log:{way}{filters.request or ''}:{_write(spot.seq)}:{actor}:{kind}:{filters.tool or ''}"
    if size(written) > MOST_ID:
        raise Refused("These filters are too long together. Leave out the person or the tool.")
    return written


def is_page(custom_id: object) -> bool:
    """Whether an id looks like that of a page."""
    return isinstance(custom_id, str) and TEMPLATE.fullmatch(custom_id) is not None


def read_id(custom_id: object) -> Spot | None:
    """Return the page that an id names; None if `write_id` would not write this id."""
    match = TEMPLATE.fullmatch(custom_id) if isinstance(custom_id, str) else None
    if match is None or size(match[0]) > MOST_ID or (match["kind"] and match["kind"] not in _BY_LETTER):
        return None
    seq = int(match["seq"], 36)
    actor = str(int(match["actor"], 36)) if match["actor"] else None
    if seq > _HIGHEST or (actor and int(actor) > _HIGHEST):
        return None
    filters = Filters(actor, match["tool"] or None, _BY_LETTER.get(match["kind"]), match["request"] or None)
    return Spot(match["way"] == "o", seq, filters)


async def newest_page(fetch: Fetch) -> Page:
    return await _page_before(fetch, None)


async def page_at(fetch: Fetch, spot: Spot) -> Page:
    if spot.older:
        return await _page_before(fetch, spot.seq)
    newest = await fetch(None, 1)
    if not newest:
        return Page((), older=False, newer=False)
    rows = await _after(fetch, spot.seq, newest[0].seq)
    if len(rows) < PAGE:
        return await newest_page(fetch)
    return Page(rows, older=True, newer=newest[0].seq > rows[0].seq)


async def _page_before(fetch: Fetch, before: int | None) -> Page:
    rows = await fetch(before, PAGE + 1)
    return Page(rows[:PAGE], older=len(rows) > PAGE, newer=before is not None)


async def _after(fetch: Fetch, seq: int, top: int) -> Sequence[AuditRow]:
    """Return the rows right above `seq`, by searching for a range above it that holds at least a page of rows.

    All servers share the row numbers, and filters skip rows, so the width of that range is not known beforehand: widen
    it while it holds too few rows, and narrow it while it holds too many. A number has at most one row, so between a
    range with too few rows and one with too many there is one that fits.
    """
    few, many, width = 0, 0, PAGE
    while True:
        above = [row for row in await fetch(min(seq + width, top) + 1, LOOK) if row.seq > seq]
        if len(above) < LOOK and (len(above) >= PAGE or seq + width >= top):
            return above[-PAGE:]
        few, many = (few, width) if len(above) >= LOOK else (width, many)
        width = (few + many) // 2 if many else width * 8
        if width in (few, many):
            return above[-PAGE:]


def _write(number: int) -> str:
    written = ""
    while number:
        number, digit = divmod(number, 36)
        written = _DIGITS[digit] + written
    return written
