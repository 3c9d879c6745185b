"""Waits until a bot that several tests share has come to rest, by reading its database while it runs.

A test that has seen its card closed has not seen the end of its turn. The next mention of the same person would then be
queued behind that turn. So each test waits until nothing changes by itself any more.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signoff.turns.driver import QueueLimits

MOVING = """
SELECT t.message, t.state, t.text FROM turns t LEFT JOIN batches b ON b.id = t.batch
WHERE t.state = 'running'
   OR t.state = 'waiting' AND (b.settled OR b.card IS NULL)
   OR t.state IN ('done', 'failed', 'stopped') AND t.reply IS NOT NULL AND NOT t.reply_posted
   OR t.state = 'queued'
      AND NOT EXISTS (SELECT 1 FROM turns o WHERE o.conversation = t.conversation AND o.state = 'waiting')
      AND (SELECT COUNT(*) FROM turns o WHERE o.asker = t.asker AND o.state = 'waiting') < ?
"""
"""Turns that will change by themselves. A turn that waits for people will not, nor will turns queued behind it."""

OPEN = "SELECT id, channel, card FROM batches WHERE NOT settled AND card IS NOT NULL"


@dataclass(frozen=True)
class OpenCard:
    batch: str
    channel: int
    message: int


def rows(database: Path, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Read without changing anything; a database that does not exist yet has no rows."""
    if not database.exists():
        return []
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as opened:
        return opened.execute(sql, parameters).fetchall()


def open_cards(database: Path) -> set[OpenCard]:
    return {OpenCard(batch, int(channel), int(card)) for batch, channel, card in rows(database, OPEN)}


async def at_rest(database: Path, patience: float) -> None:
    end = time.monotonic() + patience
    while moving := rows(database, MOVING, QueueLimits().per_person):
        assert time.monotonic() < end, f"after {patience} s these turns are still under way: {moving}"
        await asyncio.sleep(0.02)
