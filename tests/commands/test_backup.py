"""`signoff backup` beside a running bot, and `signoff restore`: nothing is overwritten, and nothing runs twice."""

from __future__ import annotations

import asyncio
import gzip
import logging
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from signoff.approvals.clicks import Click
from signoff.approvals.desk import Desk
from signoff.approvals.grants import GrantTerms
from signoff.approvals.model import Choice, Remember, RequestState
from signoff.clock import SteadyClock
from signoff.commands.parser import commands
from signoff.store import Store
from signoff.store.backup import back_up
from signoff.turns.model import TurnState
from tests.conftest import ADA, PLACE, make_batch, make_request, make_turn
from tests.rigs.audit_samples import attacking, write_record, write_row
from tests.rigs.desk import opened

OLD = Path(__file__).parents[1] / "fixtures" / "dec12ae"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def the_log_as_before() -> Iterator[None]:
    """Remove the log's masking after each test: a restore adds it for the rest of the process."""
    before = {handler: list(handler.filters) for handler in logging.getLogger().handlers}
    yield
    for handler, filters in before.items():
        handler.filters[:] = filters


def run(*words: object) -> Result:
    return CliRunner().invoke(commands, [*map(str, words)])


def backup(database: Path, target: Path) -> Result:
    return run("backup", target, "--database", f"sqlite:///{database}")


def restore(database: Path, copy: Path, *words: str) -> Result:
    return run("restore", copy, "--database", f"sqlite:///{database}", *words)


def verify(database: Path) -> Result:
    return run("audit", "verify", "--database", f"sqlite:///{database}")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def remove(path: Path) -> None:
    path.unlink()


def failure(result: Result) -> str:
    """The one line that the program ends with."""
    assert result.exit_code == 1
    error = str(result.exception)
    assert "\n" not in error
    return error


async def test_a_copy_made_while_the_store_is_written_is_whole(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: write_row(tx, 0))
        making = asyncio.create_task(asyncio.to_thread(back_up, database, copy))
        written = 1
        while not making.done():
            await store.run(lambda tx, n=written: write_row(tx, n))
            written += 1
        made = await making
        await store.run(lambda tx: write_row(tx, written))  # the store goes on as before
    assert 1 <= made.report.rows <= written
    checked = verify(copy)
    assert checked.exit_code == 0
    assert "anchored" in checked.output
    assert "up to row" not in checked.output, "the anchor of the copy is its newest row"
    assert stat.S_IMODE(copy.stat().st_mode) == stat.S_IMODE(copy.with_name("copy.db.head").stat().st_mode) == 0o600
    assert names(tmp_path) == ["copy.db", "copy.db.head", "data"]


@pytest.mark.parametrize("name", ["copy.db", "copy.db.head"])
async def test_a_file_that_exists_is_not_overwritten(database: Path, tmp_path: Path, name: str) -> None:
    await write_record(database, 3)
    (tmp_path / name).write_text("precious")
    assert "exists already" in failure(backup(database, tmp_path / "copy.db"))
    assert (tmp_path / name).read_text() == "precious"
    assert names(tmp_path) == sorted(["data", name])


async def test_a_copy_that_cannot_be_written_leaves_nothing(database: Path, tmp_path: Path) -> None:
    await write_record(database, 3)
    assert "name a file in another folder" in failure(backup(database, tmp_path / "nowhere" / "copy.db"))
    assert names(tmp_path) == ["data"]


def test_without_a_database_there_is_one_line(tmp_path: Path) -> None:
    assert "There is no database" in failure(backup(tmp_path / "none.db", tmp_path / "copy.db"))


async def test_a_record_that_was_changed_is_copied_as_it_is_and_that_is_said(database: Path, tmp_path: Path) -> None:
    await write_record(database, 6)
    with attacking(database) as attack:
        attack.execute("DELETE FROM audit WHERE seq > 4")
    assert "cut off" in failure(backup(database, tmp_path / "copy.db"))
    assert verify(tmp_path / "copy.db").output == verify(database).output


async def test_texts_that_retention_removed_are_not_in_the_copy(database: Path, tmp_path: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: tx.audit("k", "s", "x", "a", {}, 1.0, tool="t", text="a text to be forgotten" * 50))
        await store.run(lambda tx: tx.prune_texts(2.0, at=3.0))
    back_up(database, tmp_path / "copy.db")
    assert b"to be forgotten" not in (tmp_path / "copy.db").read_bytes()
    assert verify(tmp_path / "copy.db").exit_code == 0


# Restoring


async def unfinished(database: Path) -> tuple[str, str]:
    """Write a turn with an open request and one whose request was approved but has not run. Return their ids."""
    clock = SteadyClock()
    async with await Store.open(f"sqlite:///{database}") as store:
        desk = Desk(store, clock, grants=GrantTerms(Remember.SESSION))
        ids: list[str] = []
        for accepted in (False, True):
            turn = make_turn(place=PLACE if accepted else type(PLACE)(PLACE.server, PLACE.channel, "other"))
            request = make_request()
            batch = make_batch(request, now=clock.now(), turn=turn.id, place=turn.place)
            await store.run(lambda tx, turn=turn: tx.insert_turn(turn))
            await store.run(lambda tx, turn=turn: tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING))
            await store.run(lambda tx, turn=turn: tx.move(turn.id, TurnState.RUNNING, TurnState.WAITING))
            await opened(desk, batch)
            await store.run(lambda tx, turn=turn, batch=batch: tx.await_batch(turn.id, batch.id))
            if accepted:
                await desk.decide(Click(batch.id, Choice.ACCEPT, ADA, PLACE.channel, remember=Remember.SESSION))
            ids.append(turn.id)
    return ids[0], ids[1]


async def test_what_was_under_way_in_the_copy_is_ended_and_runs_never(database: Path, tmp_path: Path) -> None:
    """It may have been decided, run or revoked after the copy was made."""
    turns = await unfinished(database)
    back_up(database, tmp_path / "copy.db")
    before = time.time()
    result = await asyncio.to_thread(restore, database, tmp_path / "copy.db", "--replace")
    assert result.exit_code == 0, result.output
    assert "2 turns, 1 requests, 1 grants" in result.output
    async with await Store.open(f"sqlite:///{database}") as store:
        for name in turns:
            turn = await store.run(lambda tx, name=name: tx.turn(name))
            assert turn is not None
            assert turn.state is TurnState.STOPPED
            assert "restored from a backup" in (turn.reply or "")
        assert await store.run(lambda tx: tx.resumable()) == []
        batches = await store.run(lambda tx: tx.unfinished_cards())
        assert RequestState.PENDING not in {r.state for batch in batches for r in batch.requests}
        assert await store.run(lambda tx: tx.grants_of(PLACE.server)) == []
        assert (await store.run(lambda tx: tx.listened_until()) or 0) >= before, (
            "older mentions may be answered already"
        )
    assert verify(database).exit_code == 0
    with sqlite3.connect(database) as rows:
        kinds = [kind for (kind,) in rows.execute("SELECT kind FROM audit ORDER BY seq DESC LIMIT 1")]
    assert kinds == ["restored"]


async def test_a_status_message_of_the_copy_is_left_alone(database: Path, tmp_path: Path) -> None:
    """After the copy was made, it may have become the reply, which the end of the turn must not overwrite."""
    turn = make_turn()
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: tx.insert_turn(turn))
        await store.run(lambda tx: tx.move(turn.id, TurnState.QUEUED, TurnState.RUNNING))
        await store.run(lambda tx: tx.set_status(turn.id, "555"))
    back_up(database, tmp_path / "copy.db")
    assert (await asyncio.to_thread(restore, database, tmp_path / "copy.db", "--replace")).exit_code == 0
    async with await Store.open(f"sqlite:///{database}") as store:
        (unposted,) = await store.run(lambda tx: tx.unposted_replies())
    assert (unposted.id, unposted.status_message) == (turn.id, None)


async def test_the_old_database_is_moved_aside_whole(database: Path, tmp_path: Path) -> None:
    await write_record(database, 3)
    back_up(database, tmp_path / "copy.db")
    await write_record(database, 5)
    old = verify(database).output
    result = await asyncio.to_thread(restore, database, tmp_path / "copy.db", "--replace")
    assert result.exit_code == 0
    (aside,) = database.parent.glob("signoff.db.replaced-*[0-9]")
    assert str(aside) in result.output
    assert verify(aside).output == old
    assert verify(database).exit_code == 0
    left = ["signoff.db", "signoff.db.head", "signoff.db.lock", aside.name, f"{aside.name}.head"]
    assert names(database.parent) == sorted(left)
    assert verify(tmp_path / "copy.db").exit_code == 0, "the copy itself is unchanged"


@pytest.mark.parametrize("removed", [True, False])
async def test_changes_that_a_killed_bot_left_do_not_come_back(database: Path, tmp_path: Path, removed: bool) -> None:
    """SQLite replays a -wal into whatever database stands beside it."""
    await write_record(database, 3)
    back_up(database, tmp_path / "copy.db")
    async with await Store.open(f"sqlite:///{database}") as store:
        for n in range(3, 40):
            await store.run(lambda tx, n=n: write_row(tx, n))
        # The store may write the anchor at this moment: its new file has another name until it is whole.
        files = [path for path in database.parent.glob("signoff.db*") if path.suffix not in (".lock", ".new")]
        left = {path: path.read_bytes() for path in files}
    for path, content in left.items():
        path.write_bytes(content)  # as a kill leaves them
    assert database.with_name("signoff.db-wal").stat().st_size
    if removed:
        remove(database)
    result = await asyncio.to_thread(restore, database, tmp_path / "copy.db", *([] if removed else ["--replace"]))
    assert result.exit_code == 0, result.output
    with sqlite3.connect(database) as rows:
        assert rows.execute("SELECT COUNT(*) FROM audit").fetchone() == (4,), "three rows and the restore's own"
    (aside,) = database.parent.glob("signoff.db.replaced-*-wal")
    assert aside.name.removesuffix("-wal") in result.output


async def test_a_database_is_not_replaced_unless_asked(database: Path, tmp_path: Path) -> None:
    await write_record(database, 3)
    back_up(database, tmp_path / "copy.db")
    content = content_of(database)
    assert "--replace" in failure(await asyncio.to_thread(restore, database, tmp_path / "copy.db"))
    assert content_of(database) == content


async def test_nothing_is_restored_under_a_running_bot(database: Path, tmp_path: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: write_row(tx, 0))
        back_up(database, tmp_path / "copy.db")
        said = failure(await asyncio.to_thread(restore, database, tmp_path / "copy.db", "--replace"))
        assert said.startswith("Already running: process ")
        await store.run(lambda tx: write_row(tx, 1))
    assert verify(database).exit_code == 0


async def test_a_copy_goes_to_a_new_place_too(database: Path, tmp_path: Path) -> None:
    await write_record(database, 3)
    back_up(database, tmp_path / "copy.db")
    other = tmp_path / "new" / "signoff.db"
    assert (await asyncio.to_thread(restore, other, tmp_path / "copy.db")).exit_code == 0
    assert verify(other).exit_code == 0


@pytest.mark.parametrize(("damage", "words"), [("pages", "is damaged"), ("not one", "not a readable database")])
async def test_a_damaged_copy_is_refused(database: Path, tmp_path: Path, damage: str, words: str) -> None:
    await write_record(database, 300)
    copy = tmp_path / "copy.db"
    back_up(database, copy)
    content = bytearray(copy.read_bytes())
    if damage == "pages":
        content[len(content) // 2 : len(content) // 2 + 6000] = b"\xff" * 6000
    copy.write_bytes(content if damage == "pages" else b"something else" * 500)
    assert words in failure(await asyncio.to_thread(restore, tmp_path / "new.db", copy))
    assert not (tmp_path / "new.db").exists()


async def test_a_copy_of_a_newer_version_is_refused(database: Path, tmp_path: Path) -> None:
    await write_record(database, 3)
    back_up(database, tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as rows:
        rows.execute("INSERT INTO schema_version VALUES (999, 'later')")
    assert "Update the program" in failure(await asyncio.to_thread(restore, tmp_path / "new.db", tmp_path / "copy.db"))


async def test_a_copy_without_its_anchor_is_restored_and_that_is_recorded(database: Path, tmp_path: Path) -> None:
    await write_record(database, 3)
    back_up(database, tmp_path / "copy.db")
    (tmp_path / "copy.db.head").unlink()
    result = await asyncio.to_thread(restore, tmp_path / "new.db", tmp_path / "copy.db")
    assert "no anchor" in failure(result)
    assert verify(tmp_path / "new.db").exit_code == 1


async def test_a_copy_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(gzip.decompress((OLD / "signoff.db.gz").read_bytes()))
    shutil.copy(OLD / "signoff.db.head", tmp_path / "copy.db.head")
    result = await asyncio.to_thread(restore, tmp_path / "new.db", copy)
    assert result.exit_code == 0, result.exception
    async with await Store.open(f"sqlite:///{tmp_path / 'new.db'}") as store:
        assert (await store.run(lambda tx: tx.work_left()))["open_requests"] == 0
