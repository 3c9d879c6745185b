"""Attack row 30: the record is edited, removed or cut off in the file itself, by somebody who knows the tables."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.approvals.audit import chain
from signoff.store import Store
from signoff.store.audit_rows import APPEND
from tests.rigs.audit_samples import attacking, found, look, rows_of, write_record

ROWS = 12
COLUMNS = ("at", "kind", "server", "subject", "actor", "tool", "data", "text", "hash")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("record") / "signoff.db"
    asyncio.run(write_record(path, ROWS))
    assert look(path).intact
    return path


def copied(untouched: Path, folder: Path) -> Path:
    for file in untouched.parent.iterdir():
        shutil.copy(file, folder)
    return folder / untouched.name


@pytest.fixture
def record(untouched: Path, tmp_path: Path) -> Path:
    return copied(untouched, tmp_path)


@pytest.mark.parametrize("column", COLUMNS)
def test_one_changed_column_is_found_and_its_row_named(record: Path, column: str) -> None:
    with attacking(record) as db:
        change = "at + 0.5" if column == "at" else f"{column} || 'x'"
        db.execute(f"UPDATE audit SET {column} = {change} WHERE seq = 5")
    assert found(record) == (5, "does not match its hash: a column was changed, or another row is in its place")


@pytest.mark.parametrize("value", [None, b"\xff", 7, float("inf"), "\ud800".encode("utf-8", "surrogatepass"), '"open'])
@pytest.mark.parametrize("column", COLUMNS)
def test_values_that_are_never_written_are_found(record: Path, column: str, value: object) -> None:
    with attacking(record) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'audit'")
        db.execute("PRAGMA writable_schema = RESET")
        as_text = isinstance(value, bytes) and column != "at"
        mark = "CAST(? AS TEXT)" if as_text else "?"
        db.execute(f"UPDATE audit SET {column} = {mark} WHERE seq = 5", (value,))
    assert found(record)[0] == 5


@given(st.data())
def test_any_changed_byte_of_any_column_is_found_and_its_row_named(untouched: Path, data: st.DataObject) -> None:
    seq = data.draw(st.integers(1, ROWS), label="row")
    column = data.draw(st.sampled_from(COLUMNS), label="column")
    with tempfile.TemporaryDirectory() as folder:
        record = copied(untouched, Path(folder))
        with attacking(record) as db:
            (raw,) = db.execute(f"SELECT CAST({column} AS BLOB) FROM audit WHERE seq = ?", (seq,)).fetchone()
            at = data.draw(st.integers(0, len(raw) - 1), label="byte")
            byte = data.draw(st.integers(0, 255).filter(lambda b: b != raw[at]), label="becomes")
            changed = raw[:at] + bytes([byte]) + raw[at + 1 :]
            db.execute(f"UPDATE audit SET {column} = CAST(? AS TEXT) WHERE seq = ?", (changed, seq))
            (now,) = db.execute(f"SELECT CAST({column} AS BLOB) FROM audit WHERE seq = ?", (seq,)).fetchone()
        # 1001.5 with another zero at the end is the same number: then nothing was changed.
        assert look(record).intact if now == raw else found(record)[0] == seq


@given(seq=st.integers(1, ROWS), becomes=st.integers(-3, 300) | st.sampled_from([4.5, "x", "1x"]))
def test_a_changed_number_is_found(untouched: Path, seq: int, becomes: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        record = copied(untouched, Path(folder))
        with attacking(record) as db:
            taken = isinstance(becomes, int) and 1 <= becomes <= ROWS
            if not taken:
                db.execute("UPDATE audit SET seq = ? WHERE seq = ?", (becomes, seq))
        assert look(record).intact if taken else found(record)[0] in (seq, becomes)


def test_a_row_removed_in_the_middle_is_found(record: Path) -> None:
    with attacking(record) as db:
        db.execute("DELETE FROM audit WHERE seq = 7")
    assert found(record) == (7, "is missing: after row 6 comes row 8")


def test_a_row_removed_and_the_others_renumbered_is_found(record: Path) -> None:
    with attacking(record) as db:
        db.execute("DELETE FROM audit WHERE seq = 7")
        for seq in range(8, ROWS + 1):
            db.execute("UPDATE audit SET seq = ? WHERE seq = ?", (seq - 1, seq))
    assert found(record)[0] == 7


@pytest.mark.parametrize("left", [0, 1, ROWS - 1])
def test_a_cut_at_the_end_is_found_by_the_anchor(record: Path, left: int) -> None:
    with attacking(record) as db:
        db.execute("DELETE FROM audit WHERE seq > ?", (left,))
    assert found(record) == (left + 1, f"is cut off: the record ends at row {left}, and the anchor knows row {ROWS}")


def test_two_swapped_rows_are_found(record: Path) -> None:
    with attacking(record) as db:
        for old, new in ((4, 99), (9, 4), (99, 9)):
            db.execute("UPDATE audit SET seq = ? WHERE seq = ?", (new, old))
    assert found(record)[0] == 4


def test_a_row_inserted_with_a_right_hash_is_named(record: Path) -> None:
    fourth, fifth = rows_of(record)[3:5]
    forged = replace(fifth, actor="mallory", hash="")
    forged = replace(forged, hash=chain(fourth.hash, forged.columns))
    with attacking(record) as db:
        for seq in range(ROWS, 4, -1):
            db.execute("UPDATE audit SET seq = ? WHERE seq = ?", (seq + 1, seq))
        db.execute(APPEND, astuple(forged))
    assert found(record) == (5, "was inserted: the next row follows the one before it")


def test_a_row_inserted_between_two_numbers_is_found(record: Path) -> None:
    with attacking(record) as db:
        db.execute(APPEND, astuple(replace(rows_of(record)[4], seq=5.5)))  # type: ignore[arg-type]
    seq, what = found(record)
    assert (seq, what) == (5.5, "was inserted: its number does not follow 5")


def test_a_changed_text_is_found(record: Path) -> None:
    with attacking(record) as db:
        db.execute("UPDATE audit_texts SET text = 'text of l' WHERE text = 'text of 9'")
    assert found(record) == (9, "its kept text was changed")


def test_a_text_removed_by_hand_is_found(record: Path) -> None:
    with attacking(record) as db:
        db.execute("DELETE FROM audit_texts WHERE text = 'text of 3'")
    assert found(record) == (3, "its kept text was removed, and not by retention")


async def test_what_retention_took_is_fine_and_a_newer_text_that_is_gone_is_not(record: Path) -> None:
    async with await Store.open(f"sqlite:///{record}") as store:
        assert await store.run(lambda tx: tx.prune_texts(1004.0)) == 3
    assert look(record).intact
    with attacking(record) as db:
        db.execute("DELETE FROM audit_texts WHERE text = 'text of 4'")
    assert found(record)[0] == 4


def test_a_tail_written_anew_with_right_hashes_is_found_by_the_anchor(record: Path) -> None:
    rows = rows_of(record)
    previous = rows[7].hash
    with attacking(record) as db:
        for row in rows[8:]:
            forged = replace(row, actor="mallory")
            previous = chain(previous, forged.columns)
            db.execute("UPDATE audit SET actor = ?, hash = ? WHERE seq = ?", (forged.actor, previous, row.seq))
    assert found(record) == (ROWS, "contradicts the anchor: rows up to this one were written anew")
