"""Measures the audit record: a row inside a commit, the anchor, a page by each filter, and a whole verification.

Commits with and without the anchor alternate, so that other load on the machine affects both.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from signoff.approvals.audit import Anchor
from signoff.store import Store
from signoff.store.anchor import write_anchor
from signoff.store.audit_file import open_audit_file
from signoff.store.store import Tx

FILTERS: dict[str, dict[str, str]] = {
    "server": {},
    "actor": {"actor": "u7"},
    "tool": {"tool": "t3"},
    "kind": {"kind": "expired"},
    "subject": {"subject": "q78"},
    "actor and tool": {"actor": "u7", "tool": "t3"},
    "nobody": {"actor": "nobody"},
}
KINDS = ("opened", "approved", "rejected", "approved", "expired")


def add(tx: Tx, n: int) -> None:
    names = (KINDS[n % 5], f"s{n % 4}", f"q{n}", f"u{n % 49}")
    tx.audit(*names, {"batch": f"b{n}", "note": ""}, float(n), tool=f"t{n % 9}", text=f'{{"path": "notes-{n}.txt"}}')


async def commits(store: Store, count: int) -> list[float]:
    taken: list[float] = []
    for n in range(count):
        started = time.perf_counter()
        await store.run(lambda tx, n=n: add(tx, n))
        taken.append(time.perf_counter() - started)
    return taken


async def measure_commits(folder: Path, runs: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    async with (
        await Store.open(f"sqlite:///{folder}/with.db") as with_anchor,
        await Store.open(f"sqlite:///{folder}/without.db") as without,
    ):
        without._writer._chore = None  # pyright: ignore[reportPrivateUsage]
        for _ in range(runs):
            for name, store in (("anchor", with_anchor), ("no anchor", without)):
                found.setdefault(f"commit of one row, {name}", []).extend(await commits(store, 100))
    found["one write of the anchor"] = repeat(lambda: write_anchor(folder / "a.head", Anchor(1, "0" * 64)), runs * 5)
    return found


def repeat(work: Callable[[], object], runs: int) -> list[float]:
    taken: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return taken


async def measure_record(folder: Path, rows: int, runs: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    path = folder / f"{rows}.db"

    def fill(tx: Tx) -> None:
        for n in range(rows):
            add(tx, n)

    async with await Store.open(f"sqlite:///{path}") as store:
        started = time.perf_counter()
        await store.run(fill)
        found["a row, of all in one commit"] = [(time.perf_counter() - started) / rows]
        for name, wanted in FILTERS.items():

            def page(tx: Tx, wanted: dict[str, str] = wanted) -> list[float]:
                return repeat(lambda: tx.audit_page("s2", before=rows // 2, limit=25, **wanted), runs * 5)

            found[f"page of 25 by {name}"] = await store.run(page)
        with open_audit_file(path) as file:
            found["verify"] = repeat(file.verify, runs)
    return found


def show(title: str, found: dict[str, list[float]]) -> None:
    print(f"{title}\n{'':36}{'median':>12}{'least':>12}{'most':>12}  ms")
    for name, taken in found.items():
        low, middle, high = (1000 * value for value in (min(taken), statistics.median(taken), max(taken)))
        print(f"{name:36}{middle:12.3f}{low:12.3f}{high:12.3f}")
    print()


async def main(runs: int, sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        show("commits, one after the other", await measure_commits(Path(folder), runs))
        for rows in sizes:
            show(f"a record of {rows:,} rows", await measure_record(Path(folder), rows, runs))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    given = parser.parse_args()
    asyncio.run(main(given.runs, given.rows))
