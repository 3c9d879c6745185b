"""Brings a database to this program's schema: numbered files, in order, each in its own transaction.

A file named `0002_x.sqlite.sql` is for that dialect only. Knows only the table `schema_version`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from signoff.dataclass import dataclass
from signoff.errors import StoreError, StoreUnavailable
from signoff.store.database import Database
from signoff.text.patterns import lazy_pattern

_NAME = lazy_pattern(r"(\d{4})_(\w+?)(?:\.(\w+))?\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    script: str


def shipped(dialect: str) -> Sequence[Migration]:
    """Return this program's migrations for one dialect, in order and without gaps."""
    migrations: list[Migration] = []
    for file in resources.files("signoff.store").joinpath("migrations").iterdir():
        match = _NAME.fullmatch(file.name)
        if match and match[3] in (None, dialect):
            migrations.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    migrations.sort(key=lambda step: step.number)
    if [step.number for step in migrations] != list(range(1, len(migrations) + 1)):
        raise StoreUnavailable("This installation's database migrations are incomplete: install the program again.")
    return migrations


def migrate(db: Database, steps: Sequence[Migration], *, place: str) -> int:
    """Apply the missing migrations and return the new version. `place` names the database in error messages."""
    try:
        version = _version(db)
    except StoreError as error:
        raise StoreUnavailable(f"Cannot read the version of the database {place}. {error}") from error
    if version is None:
        raise StoreUnavailable(
            f"The database {place} holds another program's tables. Set SIGNOFF_DATABASE_URL to a file of its own."
        )
    newest = steps[-1].number if steps else 0
    if version > newest:
        raise StoreUnavailable(
            f"The database {place} has schema version {version}, and this program knows {newest} at most."
            " Update the program; nothing was changed."
        )
    for step in steps[version:]:
        try:
            _apply(db, step)
        except StoreError as error:
            db.abandon()
            raise StoreUnavailable(
                f"Cannot bring the database {place} to schema version {step.number} ({step.name});"
                f" it stays at version {step.number - 1}. {error}"
            ) from error
    return newest


def _version(db: Database) -> int | None:
    """Return the schema version: 0 for an empty database, None for one that is not ours."""
    if not db.has_table("schema_version"):
        return None if db.has_tables() else 0
    try:
        row = db.one("SELECT MAX(version), COUNT(name) FROM schema_version")
    except StoreError:
        # Another program may have a table of that name with other columns.
        return None
    return int(row[0]) if row and isinstance(row[0], int) else None


def _apply(db: Database, step: Migration) -> None:
    db.begin()
    if step.number == 1:
        db.change("CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)")
    db.script(step.script)
    db.change("INSERT INTO schema_version (version, name) VALUES (?, ?)", step.number, step.name)
    db.commit()
