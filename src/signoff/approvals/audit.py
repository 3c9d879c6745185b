"""The record: append-only rows, each bound to the one before it by a hash, and how to verify them.

Pure: knows no database and no file. The hash uses no secret, so anybody who can write rows can also compute hashes.
The anchor holds the newest row's number and hash. It is kept outside the table, so that a rewritten tail is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import cast

from signoff.approvals.model import JsonObject
from signoff.dataclass import dataclass

BROKEN = "chain_broken"
"""Kind of a row: the store found that anchored rows were removed or changed, and keeps that finding in the record."""
PRUNED = "texts_pruned"
"""Kind of a row: retention removed the texts of rows older than `before`."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One row of the record, one field per column."""

    seq: int
    at: float
    kind: str
    server: str
    subject: str
    actor: str
    tool: str
    data: str
    """A JSON object as text: the hash covers every character of it."""
    text: str
    """Digest of the row's text, which is stored separately; empty if there is none."""
    hash: str = ""

    @property
    def columns(self) -> tuple[int, float, str, str, str, str, str, str, str]:
        """The columns that the hash covers: all but the hash itself, in their order."""
        return self.seq, self.at, self.kind, self.server, self.subject, self.actor, self.tool, self.data, self.text

    @property
    def details(self) -> JsonObject:
        """`data` as an object; empty if it is not valid JSON."""
        try:
            value = json.loads(self.data)
        except (ValueError, TypeError, RecursionError):
            return {}
        return cast(JsonObject, value) if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Anchor:
    """The newest row that is known to have been written."""

    seq: int
    hash: str


START = Anchor(0, "")

# Like `digest.canonical`, without the depth check: a flat list needs none, and it took a fifth of a verification.
_canonical = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Finding:
    """The first row that was changed, inserted or removed. `row` is None if the row itself is not at hand."""

    seq: object
    what: str
    row: AuditRow | None = None


@dataclass(frozen=True, slots=True)
class Report:
    rows: int
    """How many rows passed before the verification ended."""
    head: Anchor
    anchor: Anchor | None
    finding: Finding | None = None

    @property
    def intact(self) -> bool:
        return self.finding is None


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def chain(previous_hash: str, columns: Iterable[str | int | float]) -> str:
    """Return the hash of a row after the one with `previous_hash`. Raises if a column is not text or a number.

    `columns`: as `AuditRow.columns` has them.
    """
    return hashlib.sha256(_canonical([previous_hash, *columns]).encode("ascii")).hexdigest()


def verify(rows: Iterable[AuditRow], anchor: Anchor | None, text_of: Callable[[str], str | None]) -> Report:
    """Verify rows, which come in the order of their numbers. Rows newer than the anchor pass if their hashes chain."""
    before = head = START
    count, pruned = 0, float("-inf")
    gone: AuditRow | None = None
    admitted: Finding | None = None
    for row in rows:
        text = text_of(row.text) if row.text else None
        if finding := _wrong_place(row, before, head) or _wrong_content(row, anchor, text):
            return Report(count, head, anchor, finding)
        if row.text and text is None and (gone is None or row.at > gone.at):
            gone = row
        if row.kind == PRUNED:
            bound = row.details.get("before")
            pruned = max(pruned, bound) if isinstance(bound, float) else pruned
        elif row.kind == BROKEN:
            admitted = admitted or Finding(row.seq, "says that rows were cut off or changed before it was written", row)
        before, head, count = head, Anchor(row.seq, row.hash), count + 1
    if anchor and anchor.seq > head.seq:
        cut = f"is cut off: the record ends at row {head.seq}, and the anchor knows row {anchor.seq}"
        return Report(count, head, anchor, Finding(head.seq + 1, cut))
    if gone and gone.at >= pruned:
        return Report(count, head, anchor, Finding(gone.seq, "its kept text was removed, and not by retention", gone))
    return Report(count, head, anchor, admitted)


def _wrong_place(row: AuditRow, before: Anchor, head: Anchor) -> Finding | None:
    if type(row.seq) is int and row.seq > head.seq + 1:
        return Finding(head.seq + 1, f"is missing: after row {head.seq} comes row {row.seq}")
    if type(row.seq) is not int or row.seq != head.seq + 1:
        return Finding(row.seq, f"was inserted: its number does not follow {head.seq}", row)
    if _matches(head.hash, row):
        return None
    if head.seq and _matches(before.hash, replace(row, seq=head.seq)):
        return Finding(head.seq, "was inserted: the next row follows the one before it")
    return Finding(row.seq, "does not match its hash: a column was changed, or another row is in its place", row)


def _wrong_content(row: AuditRow, anchor: Anchor | None, text: str | None) -> Finding | None:
    if anchor and row.seq == anchor.seq and row.hash != anchor.hash:
        return Finding(row.seq, "contradicts the anchor: rows up to this one were written anew", row)
    if text is not None and text_digest(text) != row.text:
        return Finding(row.seq, "its kept text was changed", row)
    return None


def _matches(previous_hash: str, row: AuditRow) -> bool:
    try:
        return type(row.at) is float and chain(previous_hash, row.columns) == row.hash
    except (TypeError, ValueError):
        return False  # a value that the store never writes
