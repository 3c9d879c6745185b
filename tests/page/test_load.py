"""A busy thread: 200 messages and 50 open cards appear, scroll, and respond to a click. `make bench` measures speed."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.rigs.page_bot import fixture_world
from tests.rigs.page_browser import opened
from tests.rigs.page_crowd import CARDS, CLICK_LAST_CARD, MESSAGES, PAINTED, SCROLL_TO_TOP, fill_thread

pytestmark = pytest.mark.asyncio(loop_scope="session")

HANGS = 10_000.0
"""Milliseconds that only a hanging page would take; the page takes a few hundred."""


async def test_two_hundred_messages_and_fifty_open_cards(chromium: Browser) -> None:
    async with fixture_world() as (server, sandbox, bot):
        thread = await fill_thread(sandbox, bot, "busy", MESSAGES, CARDS)
        async with opened(chromium, server.page_url) as page:
            await page.goto(f"{server.url}/#as=Ada&at={thread}")
            await page.reload()
            await expect(page.locator(".message")).to_have_count(MESSAGES + CARDS + 1)
            await expect(page.locator(".box button.success")).to_have_count(CARDS)
            assert await page.evaluate(PAINTED) < HANGS

            last = page.locator(".box").last
            await expect(last).to_contain_text(f"tool_{CARDS - 1}")
            assert await page.evaluate(CLICK_LAST_CARD) < HANGS
            await expect(last).to_contain_text("APPROVED")
            await expect(page.locator(".box", has_text="APPROVED")).to_have_count(1)

            await expect(page.locator(".message").first).not_to_be_in_viewport()
            assert await page.evaluate(SCROLL_TO_TOP) < HANGS
            await expect(page.locator(".message").first).to_be_in_viewport()
