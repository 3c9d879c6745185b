"""One Chromium for all tests of a worker; each test has a profile of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from page_browser import FLAGS, find_browser, leave_out
from playwright.async_api import Browser, async_playwright


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    program = find_browser()
    if program is None:
        leave_out()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS, headless=True)
        yield browser
        await browser.close()
