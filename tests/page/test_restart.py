"""A tab that is left open while the sandbox is stopped and started again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from discord_sandbox import SandboxClient, SandboxServer
from tests.rigs.page_browser import opened, write

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOWN = "WebSocket|Failed to load resource"


async def test_an_open_tab_recovers_and_shows_the_present_state(tmp_path: Path, chromium: Browser) -> None:
    state = tmp_path / "world.json"
    async with SandboxServer(state=state) as first:
        port = first.port
        async with opened(chromium, first.page_url, forgive=DOWN) as page:
            await page.get_by_role("button", name="ops", exact=True).click()
            await write(page, "before")
            await expect(page.get_by_text("before", exact=True)).to_be_visible()
            await first.stop()
            await expect(page.locator("#offline")).to_contain_text("does not respond")
            # The notice disappears after some seconds, which may pass while the messages below are written.
            told = asyncio.ensure_future(expect(page.locator("#offline")).to_contain_text("The sandbox was restarted"))
            async with SandboxServer(state=state, port=port) as second:
                async with SandboxClient(second.control_url, second.key) as sandbox:
                    # The new run's log is longer than the old one's: the number alone does not tell them apart.
                    ada = await sandbox.person("Ada")
                    for number in range(20):
                        await ada.say("general", f"filler {number}")
                    await (await sandbox.person("Max")).say("ops", "after")
                await told
                await expect(page.get_by_text("after", exact=True)).to_be_visible()
                await expect(page.get_by_text("before", exact=True)).to_have_count(1)
                await expect(page.locator("#title")).to_contain_text("ops")
                await write(page, "and I can write")
                await expect(page.get_by_text("and I can write", exact=True)).to_be_visible()
                await expect(page.locator("#offline")).to_be_hidden()


async def test_a_tab_of_a_sandbox_that_was_started_anew_is_told_what_to_do(tmp_path: Path, chromium: Browser) -> None:
    async with SandboxServer(state=tmp_path / "world.json") as first:
        port = first.port
        async with opened(chromium, first.page_url, forgive=DOWN) as page:
            await first.stop()
            (tmp_path / "page-sessions").unlink()
            async with SandboxServer(state=tmp_path / "world.json", port=port):
                await expect(page.locator("#offline")).to_contain_text("the address that it printed")


async def test_the_file_of_sessions_opens_nothing(tmp_path: Path, chromium: Browser) -> None:
    """The file has digests only, and only its owner reads it."""
    file = tmp_path / "page-sessions"
    async with SandboxServer(state=tmp_path / "world.json") as server, opened(chromium, server.page_url) as page:
        (cookie,) = await page.context.cookies()
        assert str(cookie.get("value")) not in file.read_text(encoding="utf-8")
        assert file.stat().st_mode & 0o777 == 0o600
        await page.context.add_cookies([{**cookie, "value": file.read_text(encoding="utf-8")}])  # type: ignore[list-item]
        answer = await page.request.get(f"{server.url}/page/people/Ada/state")
        assert answer.status == 401
