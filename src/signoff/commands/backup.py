"""`signoff backup` copies the database while the bot runs; `signoff restore` puts such a copy in place.

Exit codes of both: 0 done, 1 not done, or done although the record was changed from outside. Each function imports what
it needs, because the help of every command loads this module.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from signoff.approvals.audit import Report
    from signoff.config.schema import Config
    from signoff.turns.restoring import Restored

_FILE = typer.Argument(..., metavar="FILE", help="the copy; its anchor is FILE.head beside it")
_DATABASE = typer.Option("", "--database", metavar="URL", help="the database (default: SIGNOFF_DATABASE_URL)")


def backup(file: Path = _FILE, database: str = _DATABASE) -> None:
    """Copy the database, also while the bot runs, and check the copy. Overwrites nothing."""
    from signoff.store.backup import back_up

    copy = back_up(_path(database), file)
    print(f"{copy.path}: {copy.size:,} bytes; the record has {copy.report.rows:,} rows")
    _end(copy.report)


def restore(
    file: Path = _FILE,
    database: str = _DATABASE,
    replace: bool = typer.Option(False, "--replace", help="move an existing database aside first"),
) -> None:
    """Put a copy in the place of the database. Stop the bot first. Work that was under way in the copy is ended."""
    import asyncio

    from signoff.config.schema import load_config
    from signoff.settings import load_settings
    from signoff.store.backup import check, replacing

    settings = load_settings()
    config = load_config(settings.config_path, required=settings.config_required)
    target = _path(database)
    report = check(file)
    suffix = f".replaced-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    existed, log_left = target.exists(), Path(f"{target.resolve()}-wal").exists()
    with replacing(target, file, suffix=suffix, replace=replace) as part:
        ended = asyncio.run(_end_open_work(part, config))
    if existed:
        print(f"The old database is {target}{suffix} now.")
    elif log_left:
        print(f"An older database had left its last changes; they are in {target}{suffix}-wal now.")
    counts = f"{ended.turns} turns, {ended.requests} requests, {ended.grants} grants"
    print(f"{target} is the copy {file} now. Ended, because they may be out of date: {counts}.")
    _end(report)


async def _end_open_work(database: Path, config: Config) -> Restored:
    from signoff.approvals.desk import Desk
    from signoff.clock import SteadyClock
    from signoff.core import build_mask
    from signoff.store import Store
    from signoff.store.policy_rows import revoke_all_grants
    from signoff.turns.restoring import end_open_work

    async with await Store.open(f"sqlite:///{database}") as store:
        clock = SteadyClock()
        desk = Desk(store, clock, mask=await build_mask(config, store))
        now = clock.now()
        return await store.run(lambda tx: end_open_work(tx, desk, now, revoke_all_grants(tx, now)))


def _end(report: Report) -> None:
    """Exit with 1 if the record was changed from outside. The copy shows the same as the original."""
    if report.finding:
        raise SystemExit(f"signoff: row {report.finding.seq} of the record {report.finding.what}")
    if report.anchor is None and report.rows:
        raise SystemExit("signoff: the record has no anchor, so rows that were cut off at its end are not noticed")


def _path(database: str) -> Path:
    from signoff.settings import load_settings
    from signoff.store.store import sqlite_path

    return sqlite_path(database or load_settings().database_url)
