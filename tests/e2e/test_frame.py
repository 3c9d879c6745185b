"""The bench's bots really have Signoff's frame: they send the same requests, wait for the disk and log as often."""

from __future__ import annotations

import asyncio
import re
import struct
from pathlib import Path

import pytest

from bench.approvals import reason
from bench.rows import LATE, note_round
from bench.stage import FRAME, LEAST, LIMIT, OWED, SIGNOFF, Stage, stage

HEADER, PAGE = 32, 24
"""Bytes before the first page of SQLite's log, and before each page in it."""


def commits(log: Path) -> int:
    """Count the commits in SQLite's log: the last page of each says how large the database is then."""
    data = log.read_bytes()
    size = PAGE + struct.unpack(">I", data[8:12])[0]
    ends = (struct.unpack(">I", data[at + 4 : at + 8])[0] for at in range(HEADER, len(data) - size + 1, size))
    return sum(end > 0 for end in ends)


def lines(bot: Stage) -> int:
    return len((bot.folder / "bot.log").read_text(encoding="utf-8").splitlines())


async def rounds_of(bot: Stage, database: str, **environment: str) -> tuple[list[str], int, int]:
    """Return the requests of a round, how often it waited for the disk, and how many lines it logged."""
    await bot.start(**environment)
    await asyncio.sleep(2)
    await bot.round()
    await asyncio.sleep(LATE)
    log, head = bot.folder / database, bot.server.sandbox.log.head
    waits, logged = commits(log), lines(bot)
    await bot.round()
    await asyncio.sleep(LATE)
    entries = bot.server.sandbox.log.after(head, lambda entry: entry.kind == "rest")
    requests = [re.sub(r"\d{5,}|[\w-]{64}", "…", entry.name) for entry in entries]
    return requests, commits(log) - waits, lines(bot) - logged


@pytest.mark.long
async def test_the_frame_sends_the_same_requests_and_commits_as_often(tmp_path: Path) -> None:
    async with (
        stage("Signoff", SIGNOFF, tmp_path / "signoff") as ours,
        stage("frame", LEAST, tmp_path / "frame") as frame,
        stage("owed", OWED, tmp_path / "owed") as owed,
        stage("limit", OWED, tmp_path / "limit") as limit,
    ):
        expected = await rounds_of(ours, "data/signoff.db-wal")
        environment = {"BENCH_PROMISES": " ".join(FRAME), "BENCH_ROUND": str(await note_round(tmp_path))}
        assert (await rounds_of(frame, "least.db-wal", **environment))[:2] == expected[:2]  # it logs nothing
        assert await rounds_of(owed, "owed.db-wal", **environment) == expected
        environment["BENCH_PROMISES"] = " ".join(LIMIT)
        assert await rounds_of(limit, "owed.db-wal", **environment) == expected
    requests, waits, logged = expected
    assert len(requests) == 5
    assert waits == 10
    assert logged == 5


def test_the_bench_says_why_a_bar_is_not_met() -> None:
    beyond = reason("mention to card", bar=6.0, ours=9.0, limit=6.5)
    assert "the bar is 6.0 ms" in beyond
    assert beyond.endswith("takes 6.5 ms. Even if the rest of Signoff took no time, it would miss the bar.")
    within = reason("mention to card", bar=6.6, ours=8.8, limit=6.3)
    assert "That leaves 0.3 ms for the rest of Signoff, which takes 2.5 ms" in within
