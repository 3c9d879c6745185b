"""The installed Chromium and a page of the sandbox open in it; every browser test starts from this."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60_000.0
"""Milliseconds to wait for things that normally take a fraction of a second: these machines are noisy."""

expect.set_options(timeout=PATIENCE)


class BrowserMissing(pytest.PytestWarning):
    """A warning that pytest shows in its summary, where everybody sees it."""


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def leave_out() -> None:
    """Handle a missing browser: fail if CI is set, else warn loudly and skip."""
    words = "THE BROWSER TESTS WERE LEFT OUT: no Chromium or Chrome is installed (Debian: apt-get install chromium)"
    if os.environ.get("CI"):
        pytest.fail(words)
    warnings.warn(BrowserMissing(words), stacklevel=2)
    pytest.skip(words)


@asynccontextmanager
async def opened(browser: Browser, url: str, *, forgive: str = "$^", **options: Any) -> AsyncGenerator[Page]:
    """Open a page in a fresh profile. Any warning or error in its console fails the test, unless `forgive` matches."""
    errors: list[str] = []
    profile: dict[str, Any] = {"viewport": {"width": 1200, "height": 800}} | options
    context = await browser.new_context(**profile)
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        await page.goto(url)
        await ready(page)
        yield page
        assert [error for error in errors if not re.search(forgive, error)] == []
    finally:
        await context.close()


async def ready(page: Page) -> None:
    await page.wait_for_selector("html[data-ready]", state="attached")


async def act_as(page: Page, name: str) -> None:
    await page.get_by_role("radio", name=re.compile(f"^{name}")).click()
    await expect(page.get_by_role("radio", name=re.compile(f"^{name}"))).to_be_checked()


async def choose(page: Page, card: Locator, label: str) -> None:
    """Press a button of a card, or the button of that name behind the card's More…."""
    button = card.get_by_role("button", name=label)
    if not await button.count():
        await card.get_by_role("button", name="More…").click()
        button = page.locator(".message.private").get_by_role("button", name=label)
    await button.click()


async def write(page: Page, text: str) -> None:
    """Type as a person does, with the completion of the mention, and send."""
    box = page.locator("#text")
    await box.click()
    if text.startswith("@Signoff "):
        await box.press_sequentially("@Sig")
        await expect(page.get_by_role("option", name="@Signoff")).to_be_visible()
        await box.press("Enter")
        text = text.removeprefix("@Signoff ")
    await box.press_sequentially(text) if len(text) < 20 else await box.evaluate(
        "(box, text) => { box.value += text; box.dispatchEvent(new Event('input')); }", text
    )
    await box.press("Enter")
