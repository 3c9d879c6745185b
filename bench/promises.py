"""Prints what each of Signoff's promises costs at the very least, added to the bot that stores nothing.

`python -m bench.promises`. All bots take turns in one run. `least.py` says what each promise adds, and
`owed.py` what the last two bots before Signoff do.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from bench.approvals import FIGURES, PROCESSOR, both, owing, promising, table, take_turns
from bench.rows import note_round
from bench.stage import FRAME, PROMISES

ADDED = (
    (),
    ("hooks",),
    ("stream",),
    ("hooks", "commits"),
    ("card",),
    ("hooks", "kept"),
    ("hooks", "ahead"),
    PROMISES,
    FRAME,
)


async def main(blocks: int) -> None:
    figures = (*FIGURES, PROCESSOR)
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            ours, bare = await stack.enter_async_context(both(Path(name)))
            others = [await stack.enter_async_context(promising(Path(name), promises)) for promises in ADDED]
            noted = await note_round(Path(name))
            others += [await stack.enter_async_context(owing(Path(name), noted, bot)) for bot in ("owed", "limit")]
            levels = await take_turns([bare, *others, ours], blocks)
    base = levels[bare.name]
    rows = [
        [bot, *(f"{level.median(f):.1f} ms ({level.median(f) / base.median(f):.2f})" for f in figures)]
        for bot, level in levels.items()
    ]
    table("median, and ratio to the in-memory bot", *figures, rows=rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=5, help="blocks of 10 rounds for each bot")
    asyncio.run(main(parser.parse_args().blocks))
