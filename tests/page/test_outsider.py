"""A server member without the roles that the bot's rules name: the bot refuses their clicks and mentions."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.rigs.page_browser import act_as, write
from tests.rigs.page_launcher import Launched, put_into_the_lab
from tests.rigs.quiescence import rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

RULES = """
[access]
roles = ["{admins}", "{approvers}"]

[approvals]
approvers = ["manage_server", "role:{approvers}"]
"""


@pytest.fixture(scope="module")
def folder(folder: Path) -> Path:
    """A folder with a world in which Otto is a member of the lab, without the roles that the bot's rules name."""
    roles = put_into_the_lab(folder, "Otto")
    (folder / "signoff.toml").write_text(RULES.format(**roles), encoding="utf-8")
    return folder


async def test_an_outsiders_click_is_refused_privately_by_the_bot(page: Page, live: Launched) -> None:
    await page.get_by_role("button", name="general", exact=True).click()
    await write(page, '@Signoff please run the test approval tool with parameter "not for Otto"')
    card = page.locator(".box", has_text="not for Otto")
    await expect(card.get_by_role("button", name="Accept")).to_be_enabled()
    await act_as(page, "Otto")
    await card.get_by_role("button", name="Accept").click()
    refusal = page.locator(".message.private")
    await expect(refusal).to_contain_text("You may not decide this")
    await expect(refusal).to_contain_text("Only you can see this")
    for other in ("Ada", "Max"):
        await act_as(page, other)
        await expect(card.get_by_role("button", name="Accept")).to_be_visible()
        await expect(refusal).to_have_count(0)
    await act_as(page, "Otto")
    await expect(refusal).to_have_count(1)
    await act_as(page, "Ada")
    await card.get_by_role("button", name="Accept").click()
    await expect(card).to_contain_text("APPROVED by @Ada")


async def test_an_outsiders_request_is_refused_by_the_bot_and_starts_nothing(page: Page, live: Launched) -> None:
    before = rows(live.database, "SELECT COUNT(*) FROM turns")
    await act_as(page, "Otto")
    await page.get_by_role("button", name="ops", exact=True).click()
    await write(page, "@Signoff roll a die")
    await expect(page.locator(".message").last).to_contain_text("only from members with certain roles")
    await page.get_by_role("button", name="Signoff", exact=True).click()
    await write(page, "let me in")
    await expect(page.locator(".message").last).to_contain_text("I don't take requests from you in direct messages")
    await act_as(page, "Ada")
    await expect(page.get_by_role("heading", name="Signoff Lab")).to_be_visible()
    await expect(page.get_by_text("I don't take requests from you")).to_have_count(0)
    assert rows(live.database, "SELECT COUNT(*) FROM turns") == before
