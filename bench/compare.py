"""Compares this version of Signoff with another checkout: `python -m bench.compare ../other`.

There are several processes of each version and of the in-memory bot, and all take turns. The same version may be a
quarter faster in one process than in another, so that one process of each tells little. All of them use the packages
and the bench of this checkout.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from bench.approvals import COPIES, FIGURES, PROCESSOR, another, table, take_turns
from bench.stage import BARE, HERE, Stage

OURS, OTHER, BASE = "this version", "the other one", "in-memory bot"


async def main(other: Path, copies: int, blocks: int) -> None:
    if not (other / "main.py").exists() or not (other / "src" / "signoff").exists():
        raise SystemExit(f"{other} is not a checkout of Signoff: it has no main.py, or no src/signoff.")
    async with AsyncExitStack() as stack:
        folder, bots = Path(stack.enter_context(tempfile.TemporaryDirectory())), list[Stage]()
        for number in range(copies):
            for name, root in ((OTHER, other), (OURS, HERE.parent)):
                command = (sys.executable, str(root / "main.py"), "discord")
                modules = os.pathsep.join(map(str, (root / "src", HERE)))
                bots.append(
                    await stack.enter_async_context(another(name, command, folder / str(number), PYTHONPATH=modules))
                )
            bots.append(await stack.enter_async_context(another(BASE, BARE, folder / str(number))))
        levels = await take_turns(bots, blocks)
    rows: list[list[str]] = []
    for figure in (*FIGURES, PROCESSOR):
        before, now, base = (levels[name].median(figure) for name in (OTHER, OURS, BASE))
        taken = [f"{time:.1f} ms ({time / base:.2f})" for time in (before, now)]
        rows.append([figure, *taken, f"{base:.1f} ms", f"{now / before:.2f}"])
    table("median, and ratio to the in-memory bot", OTHER, OURS, BASE, "this version to the other one", rows=rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="the folder of the other checkout")
    parser.add_argument("--copies", type=int, default=COPIES, help="processes of each version")
    parser.add_argument("--blocks", type=int, default=4, help="blocks of 10 rounds for each process")
    given = parser.parse_args()
    asyncio.run(main(given.other.resolve(), given.copies, given.blocks))
