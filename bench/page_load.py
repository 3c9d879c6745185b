"""Measures how fast the sandbox's page shows a busy thread, compared with a nearly empty one in the same run.

The busy thread has two hundred messages and fifty open cards, the other one message and one card. The measures are the
time until everything is painted, the time from a press on the last card until it has changed, and the longest frame
while scrolling to the top. The two threads alternate, so that other load on the machine affects both.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Browser, async_playwright, expect

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "page"))

from discord_sandbox import SandboxClient, SandboxServer
from tests.rigs.page_bot import FixtureBot, fixture_world
from tests.rigs.page_browser import FLAGS, find_browser, opened
from tests.rigs.page_crowd import CARDS, CLICK_LAST_CARD, MESSAGES, PAINTED, SCROLL_TO_TOP, Card, fill_thread

SIZES = {"busy": (MESSAGES, CARDS), "empty": (1, 1)}
MEASURES = ("painted", "click", "longest frame")


async def look(browser: Browser, server: SandboxServer, thread: int, messages: int) -> dict[str, float]:
    """Load the page once in a fresh profile; return measure -> milliseconds."""
    async with opened(browser, server.page_url) as page:
        await page.goto(f"{server.url}/#as=Ada&at={thread}")
        await page.reload()
        await expect(page.locator(".message")).to_have_count(messages)
        found = [await page.evaluate(script) for script in (PAINTED, CLICK_LAST_CARD, SCROLL_TO_TOP)]
        return dict(zip(MEASURES, found, strict=True))


async def measure(browser: Browser, runs: int) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in SIZES}
    async with fixture_world() as (server, sandbox, bot):
        threads = {name: await fill_thread(sandbox, bot, name, *size) for name, size in SIZES.items()}
        for number in range(runs + 1):
            for name, (messages, cards) in SIZES.items():
                taken = await look(browser, server, threads[name], messages + cards + 1)
                await reopen(sandbox, bot, threads[name])
                if number:  # the first round warms up
                    found[name].append(taken)
    return found


async def reopen(sandbox: SandboxClient, bot: FixtureBot, thread: int) -> None:
    """Restore the last card to its state before the press, so that every round starts from the same thread."""
    seen = (await (await sandbox.person("Ada")).messages(thread, limit=400))[-1]
    number = int(seen.text.partition("tool_")[2].partition("`")[0])
    place = bot.get_partial_messageable(thread, guild_id=await sandbox.guild_id())
    await place.get_partial_message(seen.id).edit(view=Card(number))


def spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):6.0f} ({min(values):.0f}-{max(values):.0f})"


def report(found: dict[str, list[dict[str, float]]]) -> None:
    runs = len(found["busy"])
    print(f"The page, median of {runs} loads in ms (least-most); busy: {MESSAGES} messages and {CARDS} open cards\n")
    print(f"{'':16}{'busy':>20}{'empty':>20}{'ratio':>10}")
    for name in MEASURES:
        busy, empty = ([taken[name] for taken in found[thread]] for thread in ("busy", "empty"))
        ratio = statistics.median(busy) / max(statistics.median(empty), 0.1)
        print(f"{name:16}{spread(busy):>20}{spread(empty):>20}{ratio:>10.1f}")


async def run(program: str, runs: int) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS, headless=True)
        try:
            report(await measure(browser, runs))
        finally:
            await browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    program = find_browser()
    if program is None:
        print("page_load: left out, no Chromium or Chrome is installed (Debian: apt-get install chromium)")
        return
    asyncio.run(run(program, options.runs))


if __name__ == "__main__":
    main()
