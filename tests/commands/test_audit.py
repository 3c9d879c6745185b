"""`signoff audit`: its output, its exit codes, and that it never changes the files it reads."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from signoff.commands.parser import commands
from signoff.store import Store
from tests.rigs.audit_samples import attacking, write_record, write_row

FORMULAS = ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "|cmd", "%0A=1"]


def run(*words: object) -> Result:
    return CliRunner().invoke(commands, ["audit", *map(str, words)])


def verify(database: Path) -> Result:
    return run("verify", "--database", f"sqlite:///{database}")


def export(database: Path, *words: object) -> Result:
    return run("export", "--database", f"sqlite:///{database}", *words)


def files(database: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in database.parent.iterdir()}


async def test_an_intact_record_is_one_line_and_exit_0(database: Path) -> None:
    await write_record(database, 12)
    before = files(database)
    result = verify(database)
    assert (result.exit_code, result.output.count("\n")) == (0, 1)
    assert result.output.startswith("intact: 12 rows, head ")
    assert result.output.endswith(", anchored\n")
    assert files(database) == before, "nothing was created or changed"


async def test_it_reads_beside_a_running_bot_without_waiting(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: [write_row(tx, n) for n in range(1, 4)])
        with attacking(database) as db:
            db.execute("BEGIN IMMEDIATE")
            names = set(files(database)) - {"signoff.db.head.new"}  # the running store may be writing its anchor
            assert verify(database).output.startswith("intact: 3 rows")
            assert len(export(database).output.splitlines()) == 3
            assert set(files(database)) - {"signoff.db.head.new"} == names
            db.rollback()


def test_it_needs_no_right_to_write(database: Path) -> None:
    asyncio.run(write_record(database, 3))
    database.chmod(0o400)
    database.parent.chmod(0o500)
    try:
        assert verify(database).exit_code == 0
    finally:
        database.parent.chmod(0o700)


async def test_a_changed_row_is_named_with_its_kind_and_time_and_exit_1(database: Path) -> None:
    await write_record(database, 12)
    with attacking(database) as db:
        db.execute("UPDATE audit SET actor = 'mallory' WHERE seq = 5")
    result = verify(database)
    assert result.exit_code == 1
    assert result.output.startswith("row 5 (approved, 1970-01-01T00:16:45+00:00): does not match its hash")


async def test_what_an_attacker_wrote_does_nothing_to_the_terminal(database: Path) -> None:
    await write_record(database, 3)
    with attacking(database) as db:
        db.execute("UPDATE audit SET kind = ?, at = 'soon' WHERE seq = 2", ("\x1b[2J\nintact: 3 rows",))
    result = verify(database)
    assert result.exit_code == 1
    assert result.output.startswith("row 2 (\\x1b[2J\\nintact: 3 rows, soon): ")
    assert result.output.count("\n") == 1


async def test_a_record_without_its_anchor_is_not_called_intact(database: Path) -> None:
    await write_record(database, 3)
    database.with_name("signoff.db.head").unlink()
    result = verify(database)
    assert result.exit_code == 1
    assert result.output.startswith("not anchored: 3 rows")


@pytest.mark.parametrize("command", ["verify", "export"])
def test_a_missing_database_is_one_line_and_exit_2(database: Path, command: str) -> None:
    result = run(command, "--database", f"sqlite:///{database}")
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert "There is no database" in result.output
    assert not database.parent.exists()


@pytest.mark.parametrize("content", [b"", b"not a database" * 100])
def test_a_file_that_is_no_record_is_one_line_and_exit_2(database: Path, content: bytes) -> None:
    database.parent.mkdir()
    database.write_bytes(content)
    result = verify(database)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert list(files(database)) == ["signoff.db"]


def test_another_database_is_one_line_and_exit_2() -> None:
    result = run("verify", "--database", "postgresql://host/db")
    assert (result.exit_code, result.output.count("\n")) == (2, 1)


async def test_json_lines_have_the_kept_text_and_null_where_it_was_pruned(database: Path) -> None:
    await write_record(database, 3)
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: tx.audit("paused", "s2", "q", "u", {}, 2000.0))
        await store.run(lambda tx: tx.prune_texts(1002.0, at=3000.0))
    rows = [json.loads(line) for line in export(database).output.splitlines()]
    assert [row["text"] for row in rows] == [None, "text of 2", "text of 3", "", ""]
    assert rows[1]["data"] == {"batch": "b2", "note": "späť"}
    assert (rows[1]["seq"], rows[1]["actor"], rows[1]["time"]) == (2, "u2", "1970-01-01T00:16:42+00:00")
    (only,) = export(database, "--server", "s2").output.splitlines()
    assert json.loads(only)["kind"] == "paused"
    some = export(database, "--since", "1970-01-01T00:16:42", "--until", "1970-01-01T00:16:43").output.splitlines()
    assert [json.loads(line)["seq"] for line in some] == [2]
    assert export(database, "--since", "yesterday").exit_code == 2


async def test_csv_starts_no_formula_and_moves_no_cursor(database: Path, tmp_path: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        for text in [*FORMULAS, 'a",=1', "\x1b[2J", "\ud800"]:
            await store.run(lambda tx, t=text: tx.audit(t, "s1", t, t, {t: t}, 1.0, tool=t, text=t))
    target = tmp_path / "out.csv"
    result = export(database, "--format", "csv", "--output", target)
    assert (result.exit_code, result.output) == (0, "")
    assert target.stat().st_mode & 0o777 == 0o600
    with target.open(encoding="utf-8", newline="") as file:
        heading, *rows = csv.reader(file)
    assert (heading[0], heading[-1], len(rows)) == ("seq", "text", len(FORMULAS) + 3)
    for row in rows:
        assert len(row) == len(heading)
        for cell in row:
            assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "|", "%"))
            assert "\x1b" not in cell
            assert "\r" not in cell
    assert rows[0][-1] == "'=1+1"
    assert rows[-2][-1] == "\\x1b[2J"


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_not_told_off(database: Path) -> None:
    asyncio.run(write_record(database, 2000))
    program = "from signoff.cli import main; main()"
    command = [sys.executable, "-c", program, "audit", "export", "--database", f"sqlite:///{database}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=database.parent)
    assert process.stdout
    assert process.stderr
    os.read(process.stdout.fileno(), 10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()


def test_an_output_that_cannot_be_written_is_one_line(database: Path, tmp_path: Path) -> None:
    asyncio.run(write_record(database, 1))
    result = export(database, "--output", tmp_path)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
