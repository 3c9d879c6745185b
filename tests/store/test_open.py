from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.errors import SettingsError, StoreUnavailable
from signoff.store import Store
from tests.rigs.store_samples import a_turn

NOBODY = 65534


async def refusal(url: str, kind: type[Exception] = StoreUnavailable) -> str:
    """Check that this URL cannot be opened, and return the one line that a person reads."""
    with pytest.raises(kind) as caught:
        await Store.open(url)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that a user without rights can reach; `lose_rights` makes the rest of the test run as that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder
        if os.getuid() == 0:
            os.seteuid(0)


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)


def lose_rights(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    if os.getuid() == 0:
        os.seteuid(NOBODY)


async def test_relative_urls_are_seen_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with await Store.open("sqlite:///deep/er/signoff.db") as store:
        await store.run(lambda tx: tx.insert_turn(a_turn()))
    assert (tmp_path / "deep" / "er" / "signoff.db").stat().st_size > 0


async def test_absolute_urls_have_four_slashes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a b%20ü.db"
    assert url.startswith("sqlite:////")
    async with await Store.open(url):
        pass
    assert (tmp_path / "a b%20ü.db").exists()


async def test_the_database_is_durable_and_private(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        await store.run(lambda tx: tx.insert_turn(a_turn()))
        pragmas: dict[str, object] = {}
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout"):
            row = await store.run(lambda tx, name=name: tx.db.one(f"PRAGMA {name}"))
            pragmas[name] = row and row[0]
        assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000}
        for file in database.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


@pytest.mark.parametrize(
    "url",
    [
        "",
        "signoff.db",
        "data/signoff.db",
        "sqlite:data.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///data/",
        "sqlite://data/signoff.db",
        "sqlite:///:memory:",
        "sqlite:///a.db?mode=memory",
        "sqlite:///a\0b.db",
        "sqlite+aiosqlite:///a.db",
        "mysql://root:hunter2@db/signoff",
        "root:hunter2@db/signoff",
    ],
)
async def test_a_wrong_url_is_answered_with_what_is_accepted(url: str) -> None:
    text = await refusal(url, SettingsError)
    assert "sqlite:///data/signoff.db" in text
    assert "SIGNOFF_DATABASE_URL" in text
    assert "hunter2" not in text


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "PostgreSQL"])
async def test_postgresql_is_not_in_this_version(scheme: str) -> None:
    text = await refusal(f"{scheme}://me:hunter2@host/db")
    assert "does not support PostgreSQL" in text
    assert "hunter2" not in text


async def test_a_folder_is_not_a_database(tmp_path: Path) -> None:
    text = await refusal(f"sqlite:///{tmp_path}")
    assert str(tmp_path) in text
    assert "is a folder" in text


async def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    text = await refusal(f"sqlite:///{tmp_path}/data/signoff.db")
    assert "file where its folder should be" in text
    assert await refusal(f"sqlite:///{tmp_path}/data/deep/signoff.db")


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "signoff.db"
    path.write_text("my diary\n" * 500)
    text = await refusal(f"sqlite:///{path}")
    assert "not a SQLite database" in text
    assert path.read_text() == "my diary\n" * 500


async def test_a_damaged_database_is_said_to_be_damaged(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}"):
        pass
    damage(database)
    assert "damaged" in await refusal(f"sqlite:///{database}")


async def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    for table in ("users (id)", "schema_version (id TEXT)", "schema_version (version, name)"):
        path = tmp_path / f"{len(table)}.db"
        with sqlite3.connect(path) as theirs:
            theirs.execute(f"CREATE TABLE {table}")
        theirs.close()
        text = await refusal(f"sqlite:///{path}")
        assert "another program's tables" in text


async def test_a_database_held_by_another_program_is_named_as_such(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.store.sqlite._BUSY_MS", 50)
    async with await Store.open(f"sqlite:///{database}"):
        pass
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "another program holds the database" in await refusal(f"sqlite:///{database}")
    other.close()
    async with await Store.open(f"sqlite:///{database}"):
        pass


async def test_an_unwritable_folder(shared_folder: Path) -> None:
    lose_rights(shared_folder, 0o555)
    text = await refusal(f"sqlite:///{shared_folder}/signoff.db")
    assert "Permission denied" in text
    assert "SIGNOFF_DATABASE_URL" in text
    text = await refusal(f"sqlite:///{shared_folder}/data/signoff.db")
    assert "Cannot make the folder" in text


async def test_a_read_only_database(shared_folder: Path) -> None:
    path = shared_folder / "signoff.db"
    async with await Store.open(f"sqlite:///{path}"):
        pass
    (shared_folder / "signoff.db.lock").chmod(0o666)
    path.chmod(0o444)
    lose_rights(shared_folder, 0o777)
    text = await refusal(f"sqlite:///{path}")
    assert str(path) in text
    assert "write" in text


async def test_a_symlink_that_bites_its_tail(tmp_path: Path) -> None:
    (tmp_path / "signoff.db").symlink_to(tmp_path / "signoff.db")
    await refusal(f"sqlite:///{tmp_path}/signoff.db")


async def test_after_a_refusal_the_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "signoff.db"
    path.write_text("no database, for certain, this one here")
    await refusal(f"sqlite:///{path}")
    path.unlink()
    async with await Store.open(f"sqlite:///{path}"):
        pass
