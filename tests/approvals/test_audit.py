from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from signoff.approvals.audit import BROKEN, START, Anchor, AuditRow, Report, chain, text_digest, verify


def rows(count: int, **changes: str) -> Iterator[AuditRow]:
    previous = ""
    for seq in range(1, count + 1):
        row = AuditRow(seq, 1.0 * seq, "approved", "s1", f"q{seq}", "u1", "shell", "{}", "")
        row = replace(row, **changes)
        row = replace(row, hash=chain(previous, row.columns))
        previous = row.hash
        yield row


def nothing_kept(digest: str) -> str | None:
    return None


def check(found: Iterator[AuditRow] | list[AuditRow], anchor: Anchor | None = None) -> Report:
    return verify(found, anchor, nothing_kept)


def test_an_empty_record_is_intact() -> None:
    assert check([]) == Report(0, START, None)
    assert check([], START).intact


def test_rows_that_chain_are_intact_and_the_head_is_the_last() -> None:
    found = list(rows(5))
    report = check(found, Anchor(5, found[4].hash))
    assert report.intact
    assert (report.rows, report.head) == (5, Anchor(5, found[4].hash))


def test_rows_behind_the_anchor_are_fine_if_they_chain() -> None:
    found = list(rows(5))
    assert check(found, Anchor(3, found[2].hash)).intact
    found[4] = replace(found[4], actor="u2")
    finding = check(found, Anchor(3, found[2].hash)).finding
    assert finding
    assert finding.seq == 5


def test_an_anchor_that_contradicts_its_row_is_named() -> None:
    finding = check(rows(5), Anchor(3, "another")).finding
    assert finding
    assert (finding.seq, "anchor" in finding.what) == (3, True)


def test_no_two_columns_can_trade_their_contents() -> None:
    row = AuditRow(1, 1.0, "a", "b", "c", "d", "e", "{}", "f")
    assert chain("", row.columns) != chain("", replace(row, kind="b", server="a").columns)
    assert chain("", replace(row, kind='a","b', server="").columns) != chain("", row.columns)
    assert chain("x", row.columns) != chain("", row.columns)


@pytest.mark.parametrize("data", ["[]", "1", "{", "[" * 100_000])
def test_spoiled_data_has_no_details(data: str) -> None:
    assert replace(next(rows(1)), data=data).details == {}


def test_a_row_that_admits_a_break_is_reported_after_everything_else_was_looked_at() -> None:
    found = list(rows(3, kind=BROKEN))
    finding = check(found).finding
    assert finding
    assert finding.seq == 1
    finding = check([found[0], replace(found[1], actor="x"), found[2]]).finding
    assert finding
    assert finding.seq == 2


def test_the_kept_text_of_each_row_is_compared() -> None:
    found = rows(3, text=text_digest("ls"))
    assert verify(found, None, {text_digest("ls"): "ls"}.get).intact
    finding = verify(rows(3, text=text_digest("ls")), None, lambda digest: "rm").finding
    assert finding
    assert (finding.seq, finding.what) == (1, "its kept text was changed")


@pytest.mark.long
@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows() -> None:
    def once(count: int) -> int:
        tracemalloc.start()
        assert check(rows(count)).intact
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    def peak(count: int) -> int:
        """Return the lowest of several peaks, because measuring coverage allocates memory at any time."""
        return min(once(count) for _ in range(3))

    assert peak(5000) < peak(500) + 20_000
