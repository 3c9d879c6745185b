"""Fixtures for browser tests: one Chromium for all tests of a worker, a profile for each test, a started sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from discord_sandbox import SandboxClient
from tests.rigs.page_bot import FixtureBot, World, fixture_world
from tests.rigs.page_browser import FLAGS, find_browser, leave_out, opened
from tests.rigs.page_launcher import PATIENCE, Launched, launched
from tests.rigs.quiescence import at_rest


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    program = find_browser()
    if program is None:
        leave_out()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS, headless=True)
        yield browser
        await browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the sandbox starts. A file that needs its own world overrides this and puts one there."""
    return tmp_path_factory.mktemp("page")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def live(folder: Path, chromium: Browser) -> AsyncIterator[Launched]:
    async with launched(folder) as running:
        await running.says("Ctrl-C")
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def page(live: Launched, chromium: Browser) -> AsyncIterator[Page]:
    async with opened(chromium, live.address) as found:
        await expect(found.locator("#bot-state")).to_contain_text("online")
        yield found
    await at_rest(live.database, PATIENCE)


# A world with a bot of the tests' own, for the parts of the page


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(chromium: Browser) -> AsyncIterator[World]:
    async with fixture_world() as parts:
        yield parts


@pytest.fixture
def bot(world: World) -> FixtureBot:
    return world[2]


@pytest.fixture
def sandbox(world: World) -> SandboxClient:
    return world[1]
