"""Five people at once: a card in a thread reaches an approver who is looking elsewhere, and both places agree.

The asker sees that the call is running, that it is done, and the reply.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.rigs.page_browser import act_as, opened, write
from tests.rigs.page_launcher import PATIENCE, Launched, put_approvals_channel
from tests.rigs.quiescence import at_rest

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

PICTURES = os.environ.get("SIGNOFF_TEST_PICTURES")
"""A folder for screenshots of each step, if set."""
NAMES = ("Ada", "Max", "Olga", "Nina", "Otto")

RULES = """
[tools]
plugins = ["jobs.py"]

[approvals]
approvers = ["manage_server", "role:{approvers}"]
notify = "channel:{channel}"

[[rules]]
tool = "long_job"
verdict = "ask"
"""
JOBS = """
import time
from pathlib import Path

RELEASE = Path(__file__).with_name("release")


def long_job(text: str) -> str:
    while not RELEASE.exists():
        time.sleep(0.02)
    return f"job finished: {text}"


tools = [long_job]
"""
"""A tool that runs until the test lets it end, so that the test can see it running."""

People = dict[str, Page]
"""The name of each person -> their own browser window."""


@pytest.fixture(scope="module")
def folder(folder: Path) -> Path:
    ids = put_approvals_channel(folder)
    (folder / "signoff.toml").write_text(RULES.format(**ids), encoding="utf-8")
    (folder / "jobs.py").write_text(JOBS, encoding="utf-8")
    return folder


@pytest_asyncio.fixture(loop_scope="session")
async def people(live: Launched, chromium: Browser) -> AsyncIterator[People]:
    async with AsyncExitStack() as stack:
        windows: People = {}
        for name in NAMES:
            page = await stack.enter_async_context(opened(chromium, live.address))
            await expect(page.locator("#bot-state")).to_contain_text("online")
            await act_as(page, name)
            windows[name] = page
        yield windows
    await at_rest(live.database, PATIENCE)


def place(page: Page, name: str) -> Locator:
    return page.locator("#places button.place", has_text=re.compile(rf"^#?{name}"))


def card(page: Page) -> Locator:
    return page.locator(".message:not(.private) .box", has_text="for all to see").last


async def picture(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"reach-{name}.png")


async def test_an_approver_elsewhere_is_reached_and_decides_in_the_approvals_channel(
    people: People, folder: Path
) -> None:
    ada, max_, olga, nina, otto = (people[name] for name in NAMES)
    await place(olga, "ops").click()
    await place(nina, "approvals").click()
    await expect(olga.locator("#title")).to_contain_text("ops")
    await expect(place(max_, "approvals")).to_have_count(0)

    await write(max_, '@Signoff call long_job {"text": "for all to see"}')
    await expect(card(max_).get_by_role("button", name="Accept")).to_be_enabled()

    # Olga looks at another channel and sees that something waits.
    await expect(place(olga, "approvals")).to_have_class(re.compile("unread"))
    await picture(olga, "1-something-waits")
    await place(olga, "approvals").click()
    await expect(place(olga, "approvals")).not_to_have_class(re.compile("unread"))
    await expect(card(olga).get_by_role("button", name="Accept")).to_be_enabled()
    await expect(card(nina).get_by_role("button", name="Accept")).to_be_enabled()
    await picture(olga, "2-the-copy")

    # The link of the copy leads to the conversation, in the same page.
    await nina.locator(".message", has_text="for all to see").last.get_by_role("link", name="message").click()
    await expect(nina.locator("#title")).to_contain_text("#general")
    await expect(card(nina)).to_be_in_viewport()
    assert len(nina.context.pages) == 1

    # She decides there. Every place agrees, and the asker sees that the call is running.
    await card(olga).get_by_role("button", name="Accept").click()
    for page in (max_, olga, nina):
        await expect(card(page)).to_contain_text("APPROVED by @Olga · running")
        await expect(card(page)).to_contain_text("Running, started")
        await expect(card(page).get_by_role("button")).to_have_count(0)
    status = max_.locator(".message", has_text="Working. Running long_job, started")
    await expect(status).to_be_visible()
    await expect(status.get_by_role("button", name="Stop")).to_be_enabled()
    await expect(max_.locator(".message", has_text="long_job: done")).to_have_count(0)
    await picture(max_, "3-the-asker-sees-running")

    # The tool ends. Every place says so, and the status message becomes the reply.
    (folder / "release").touch()
    for page in (max_, olga, nina):
        await expect(card(page)).to_contain_text("APPROVED by @Olga · done")
        await expect(card(page)).to_contain_text(re.compile(r"Done in .* s: job finished: for all to see"))
    await expect(max_.locator(".message", has_text="long_job: done").last).to_be_visible()
    await expect(max_.locator(".message", has_text="long_job: done").last).to_contain_text("job finished")
    await expect(status).to_have_count(0)
    await picture(max_, "4-the-asker-sees-done-and-the-reply")
    await picture(olga, "5-the-copy-agrees")

    # An admin who was elsewhere finds both places settled. An outsider has seen nothing.
    await place(ada, "approvals").click()
    await expect(card(ada)).to_contain_text("APPROVED by @Olga")
    await expect(otto.get_by_text("for all to see")).to_have_count(0)
    await expect(place(otto, "approvals")).to_have_count(0)
