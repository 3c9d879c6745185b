"""The anchor beside the database: how it follows the record, and what happens if the two disagree."""

from __future__ import annotations

import asyncio
import logging
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from signoff.approvals.audit import START, Anchor
from signoff.store import Store
from signoff.store import anchor as anchor_module
from signoff.store.anchor import anchor_path, read_anchor
from tests.rigs.audit_samples import attacking, found, look, rows_of, write_record, write_row

WRITE = """
import asyncio, os, sys
from signoff.store import Store

async def keep_writing(store, who):
    for n in range(1_000_000):
        await store.run(lambda tx: tx.audit("asked", "s1", f"{who}.{n}", "u1", {}, 1.0, text=f"{who}.{n}"))
        os.write(1, b".")

async def main(url):
    async with await Store.open(url) as store:
        await asyncio.gather(*(keep_writing(store, who) for who in range(20)))

asyncio.run(main(sys.argv[1]))
"""


def head(database: Path) -> Path:
    return database.with_name("signoff.db.head")


async def reopen(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}"):
        pass


def newest(database: Path) -> Anchor:
    row = rows_of(database)[-1]
    return Anchor(row.seq, row.hash)


async def until_anchored(database: Path, seq: int) -> None:
    for _ in range(1000):
        anchor = read_anchor(head(database))
        if anchor and anchor.seq == seq:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(f"row {seq} was not anchored")


async def test_a_new_database_is_anchored_before_its_first_row(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}"):
        assert read_anchor(head(database)) == START
    assert head(database).stat().st_mode & 0o777 == 0o600
    assert look(database).intact


async def test_the_anchor_follows_a_commit_soon_and_closing_at_once(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        for n in range(1, 6):
            await store.run(lambda tx, n=n: write_row(tx, n))
        await until_anchored(database, 5)
        assert read_anchor(head(database)) == newest(database)
        assert newest(database).seq == 5
        await store.run(lambda tx: write_row(tx, 6))
        await store.run(lambda tx: write_row(tx, 7))
    assert read_anchor(head(database)) == newest(database)
    assert newest(database).seq == 7
    assert sorted(path.name for path in database.parent.iterdir()) == [
        "signoff.db",
        "signoff.db.head",
        "signoff.db.lock",
    ]


async def test_the_anchor_lies_beside_the_file_that_a_link_leads_to(database: Path) -> None:
    await write_record(database, 1)
    link = database.parent.parent / "link.db"
    link.symlink_to(database)
    async with await Store.open(f"sqlite:///{link}") as store:
        await store.run(lambda tx: write_row(tx, 2))
    assert read_anchor(anchor_path(link)) == newest(database)
    assert not link.with_name("link.db.head").exists()
    assert look(link).intact


async def test_many_commits_share_one_write_of_the_anchor(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Anchor] = []
    real = anchor_module.write_anchor
    monkeypatch.setattr(anchor_module, "write_anchor", lambda path, new: (written.append(new), real(path, new)))
    started = time.monotonic()
    async with await Store.open(f"sqlite:///{database}") as store:
        for n in range(1, 101):
            await store.run(lambda tx, n=n: write_row(tx, n))
        assert store.commits == 100
    assert len(written) <= (time.monotonic() - started) / anchor_module.DELAY + 4
    assert written[-1] == newest(database)


async def test_rows_cut_while_the_bot_was_down_are_recorded_for_ever(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await write_record(database, 9)
    before = head(database).read_bytes()
    anchored = read_anchor(head(database))
    with attacking(database) as db:
        db.execute("DELETE FROM audit WHERE seq > 6")
    with caplog.at_level(logging.ERROR):
        await reopen(database)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "row 9 was anchored, and the table ends at row 6" in line
    assert "\n" not in line
    assert head(database).with_name("signoff.db.head.broken-7").read_bytes() == before
    row = rows_of(database)[-1]
    assert anchored
    assert (row.seq, row.kind) == (7, "chain_broken")
    assert row.details["anchored"] == {"seq": 9, "hash": anchored.hash}
    assert row.details["found"] == {"seq": 6, "hash": rows_of(database)[5].hash}
    assert row.details["kept"] == "signoff.db.head.broken-7"
    caplog.clear()
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: write_row(tx, 8))
    assert caplog.records == [], "said once"
    assert found(database) == (7, "says that rows were cut off or changed before it was written")
    with attacking(database) as db:
        db.execute("UPDATE audit SET actor = 'x' WHERE seq = 8")
    assert found(database)[0] == 8, "what came after the break is still looked at"


async def test_rows_written_anew_while_the_bot_was_down_are_recorded(database: Path) -> None:
    await write_record(database, 3)
    with attacking(database) as db:
        db.execute("UPDATE audit SET hash = 'forged' WHERE seq = 3")
    await reopen(database)
    assert rows_of(database)[-1].kind == "chain_broken"
    assert found(database)[0] == 3


async def test_a_table_emptied_while_the_bot_was_down_is_recorded(database: Path) -> None:
    await write_record(database, 3)
    with attacking(database) as db:
        db.execute("DELETE FROM audit")
    await reopen(database)
    assert [row.kind for row in rows_of(database)] == ["chain_broken"]


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"[]", b'{"seq": "x", "hash": 1}', b'{"seq": -1, "hash": ""}'])
async def test_an_anchor_that_is_gone_or_spoiled_is_recorded(database: Path, content: bytes | None) -> None:
    await write_record(database, 3)
    if content is None:
        head(database).unlink()
    else:
        head(database).write_bytes(content)
    assert look(database).anchor is None
    await reopen(database)
    row = rows_of(database)[-1]
    assert (row.seq, row.kind, row.details["anchored"]) == (4, "chain_broken", None)
    aside = head(database).with_name("signoff.db.head.broken-4")
    assert content == (aside.read_bytes() if aside.exists() else None)


async def test_every_broken_anchor_is_kept_under_a_name_of_its_own(database: Path) -> None:
    await write_record(database, 3)
    for content in (b"one", b"two", b"two"):
        head(database).write_bytes(content)
        await reopen(database)
        with attacking(database) as db:
            db.execute("DELETE FROM audit WHERE seq > 3")
    kept = {path.name: path.read_bytes() for path in database.parent.glob("*.broken-*")}
    assert kept == {"signoff.db.head.broken-4": b"one", "signoff.db.head.broken-4-2": b"two"}


async def test_rows_cut_while_the_bot_is_running_are_recorded(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: [write_row(tx, n) for n in range(1, 10)])
        await until_anchored(database, 9)
        with attacking(database) as db:
            db.execute("DELETE FROM audit WHERE seq > 6")
        for n in range(10):
            await store.run(lambda tx, n=n: write_row(tx, n))
    assert "chain_broken" in [row.kind for row in rows_of(database)]
    assert not look(database).intact


async def test_an_anchor_that_cannot_be_written_stops_nothing_and_is_said_once(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        with monkeypatch.context() as patched:

            def full(path: Path, anchor: Anchor) -> None:
                raise OSError(28, "No space left on device")

            patched.setattr(anchor_module, "write_anchor", full)
            for n in range(4):
                await store.run(lambda tx, n=n: write_row(tx, n))
                await asyncio.sleep(0.06)
        assert [record.getMessage() for record in caplog.records if "unanchored" in record.getMessage()] != []
        assert len(caplog.records) == 1
        await store.run(lambda tx: write_row(tx, 4))
    assert read_anchor(head(database)) == newest(database)


@pytest.mark.slow
def test_kill_9_in_the_middle_of_commits_leaves_an_intact_record(database: Path) -> None:
    acknowledged = 0
    for moment in (0.05, 0.31, 0.6):
        writer = subprocess.Popen([sys.executable, "-c", WRITE, f"sqlite:///{database}"], stdout=subprocess.PIPE)
        assert writer.stdout
        assert writer.stdout.read(1)
        time.sleep(moment)
        report = look(database)
        assert report.intact, "while it is being written, too"
        writer.send_signal(signal.SIGKILL)
        acknowledged += 1 + len(writer.communicate()[0])
        report = look(database)
        assert report.intact, report.finding
        assert report.anchor
        assert report.rows >= acknowledged
    assert {row.kind for row in rows_of(database)} == {"asked"}
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT COUNT(*) FROM audit").fetchone()[0] >= acknowledged > 50
    connection.close()
