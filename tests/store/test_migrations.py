from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from signoff.errors import StoreUnavailable
from signoff.store import Store
from signoff.store.migrate import Migration, migrate, shipped
from signoff.store.sqlite import open_sqlite
from tests.rigs.store_samples import a_turn

FIRST = Migration(1, "first", "CREATE TABLE a (x TEXT);\nINSERT INTO a VALUES ('kept; here');")
SECOND = Migration(2, "second", "-- a comment; with a semicolon\nCREATE TABLE b (x TEXT);\nALTER TABLE a ADD y TEXT")


def bring_to(path: Path, *steps: Migration) -> int:
    db = open_sqlite(path)
    try:
        return migrate(db, steps, place=path.name)
    finally:
        db.close()


def look(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_shipped_migrations_are_numbered_without_gaps() -> None:
    steps = shipped("sqlite")
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert steps[0].name == "start"


async def test_a_new_database_records_every_step(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: tx.insert_turn(a_turn()))
    expected = [(step.number, step.name) for step in shipped("sqlite")]
    assert look(database, "SELECT version, name FROM schema_version ORDER BY version") == expected
    async with await Store.open(f"sqlite:///{database}") as store:
        assert await store.run(lambda tx: tx.turn("t1")) == a_turn()
    assert look(database, "SELECT version, name FROM schema_version ORDER BY version") == expected


def test_only_what_is_missing_is_applied(database: Path) -> None:
    assert bring_to(database, FIRST) == 1
    assert bring_to(database, FIRST, SECOND) == 2
    assert bring_to(database, FIRST, SECOND) == 2
    assert look(database, "SELECT x, y FROM a") == [("kept; here", None)]
    assert look(database, "SELECT * FROM b") == []


def test_a_failing_step_leaves_the_version_before_it(database: Path) -> None:
    broken = Migration(3, "broken", "CREATE TABLE c (x TEXT);\nDROP TABLE b;\nINSERT INTO nowhere VALUES (1);")
    with pytest.raises(StoreUnavailable, match=r"version 3 \(broken\); it stays at version 2"):
        bring_to(database, FIRST, SECOND, broken)
    assert look(database, "SELECT MAX(version) FROM schema_version") == [(2,)]
    assert look(database, "SELECT name FROM sqlite_master WHERE name IN ('b', 'c')") == [("b",)]
    mended = Migration(3, "mended", "CREATE TABLE c (x TEXT);")
    assert bring_to(database, FIRST, SECOND, mended) == 3


async def test_a_newer_database_is_refused_and_left_alone(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}"):
        pass
    newest = len(shipped("sqlite"))
    connection = sqlite3.connect(database)
    connection.execute("INSERT INTO schema_version VALUES (99, 'the future')")
    connection.commit()
    connection.close()
    with pytest.raises(StoreUnavailable) as caught:
        await Store.open(f"sqlite:///{database}")
    text = str(caught.value)
    assert "99" in text
    assert str(newest) in text
    assert "Update the program" in text
    assert look(database, "SELECT MAX(version) FROM schema_version") == [(99,)]
