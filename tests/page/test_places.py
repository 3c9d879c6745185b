"""Finding one's way on the page: all commands, links that stay in the page, unread messages and mentions."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from discord_sandbox import SandboxClient
from tests.rigs.page_bot import TOOLS, FixtureBot, World
from tests.rigs.page_browser import act_as, opened, write

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def page(world: World, chromium: Browser) -> AsyncIterator[Page]:
    async with opened(chromium, world[0].page_url) as found:
        yield found


async def test_the_menu_has_all_commands_and_narrows_as_one_types(page: Page) -> None:
    box = page.locator("#text")
    await box.press_sequentially("/")
    options = page.locator("#completion").get_by_role("option")
    await expect(options).to_have_count(1 + len(TOOLS))
    await expect(options.first).to_contain_text("/paint")
    await expect(options.first.locator(".completion-option")).to_have_text(["what", "colour"])
    await box.press("ArrowUp")
    await expect(options.last).to_be_in_viewport()
    await expect(options.last).to_have_attribute("aria-selected", "true")
    await box.press_sequentially("tools c-")
    await expect(options).to_have_count(1)
    await box.press("Enter")
    await page.get_by_role("form", name="Command tools c-tool").get_by_role("button", name="Run").click()
    await expect(page.get_by_text("used", exact=True)).to_be_visible()


async def test_a_link_to_a_message_leads_to_it_in_the_page(page: Page, bot: FixtureBot, sandbox: SandboxClient) -> None:
    far = await bot.channel("ops").send("the place to be")
    for number in range(30):
        await bot.channel("ops").send(f"filler {number}\n" * 3)
    near = await bot.channel().send(f"look at {far.jump_url}")
    link = page.locator(f'.message[data-id="{near.id}"]').get_by_role("link")
    await expect(link).to_have_text("#ops › message")
    await link.click()
    await expect(page.locator("#title")).to_contain_text("ops")
    await expect(page.locator(f'.message[data-id="{far.id}"]')).to_be_in_viewport()
    assert len(page.context.pages) == 1


async def test_a_link_to_a_deleted_message_says_so(page: Page, bot: FixtureBot) -> None:
    far = await bot.channel("ops").send("soon deleted")
    near = await bot.channel().send(f"look at {far.jump_url}")
    await far.delete()
    await page.locator(f'.message[data-id="{near.id}"]').get_by_role("link").click()
    await expect(page.get_by_role("alert")).to_contain_text("was deleted")


async def test_other_links_still_leave_the_page(page: Page, bot: FixtureBot) -> None:
    near = await bot.channel().send("see https://discord.com.example/channels/1/2/3")
    link = page.locator(f'.message[data-id="{near.id}"]').get_by_role("link")
    await expect(link).to_have_attribute("target", "_blank")


async def test_a_mention_elsewhere_is_counted_until_it_is_read(
    page: Page, bot: FixtureBot, sandbox: SandboxClient
) -> None:
    ada = await sandbox.person("Ada")
    await page.get_by_role("button", name="general", exact=True).click()
    first = await bot.channel("ops").send(f"<@{ada.id}> please look")
    await bot.channel("ops").send(f"<@{ada.id}> and again")
    ops = page.locator("#places").get_by_role("button", name=re.compile("^#? ?ops"))
    await expect(ops.get_by_label("2 mentions")).to_be_visible()
    await expect(page).to_have_title(re.compile(r"^\(2\) "))
    await first.delete()
    await expect(ops.get_by_label("1 mention", exact=True)).to_be_visible()
    await ops.click()
    await expect(ops.locator(".badge")).to_have_count(0)
    await expect(page).to_have_title(re.compile("^ops"))


async def test_each_person_finds_their_own_mentions(page: Page, bot: FixtureBot, sandbox: SandboxClient) -> None:
    max_ = await sandbox.person("Max")
    await page.get_by_role("button", name="general", exact=True).click()
    await bot.channel("ops").send(f"<@{max_.id}> this is for you")
    ops = page.locator("#places").locator("button.place", has_text="ops")
    await expect(ops).to_have_class(re.compile("unread"))
    await expect(ops.locator(".badge")).to_have_count(0)
    await act_as(page, "Max")
    await expect(ops.get_by_label("1 mention", exact=True)).to_be_visible()
    await ops.click()
    await act_as(page, "Olga")
    await act_as(page, "Max")
    await expect(ops.locator(".badge")).to_have_count(0)


async def test_an_edit_or_a_reaction_elsewhere_is_nothing_new(
    page: Page, bot: FixtureBot, sandbox: SandboxClient
) -> None:
    await page.get_by_role("button", name="ops", exact=True).click()
    old = await bot.channel("ops").send("a status")
    await expect(page.locator(f'.message[data-id="{old.id}"]')).to_be_visible()
    await page.get_by_role("button", name="general", exact=True).click()
    await old.edit(content="another status")
    await old.add_reaction("👍")
    await bot.channel().send("after it")
    await expect(page.get_by_text("after it", exact=True)).to_be_visible()
    await expect(page.locator("#places").locator("button.place", has_text="ops")).not_to_have_class(
        re.compile("unread")
    )


async def test_a_status_message_is_edited_and_deleted_in_the_open_channel(page: Page, bot: FixtureBot) -> None:
    await page.get_by_role("button", name="general", exact=True).click()
    status = await bot.channel().send("working: step 1")
    shown = page.locator(f'.message[data-id="{status.id}"]')
    await expect(shown).to_contain_text("step 1")
    await status.edit(content="working: step 2")
    await expect(shown).to_contain_text("step 2")
    await status.delete()
    await expect(shown).to_have_count(0)


async def test_a_deleted_channel_is_left(page: Page, sandbox: SandboxClient) -> None:
    await sandbox.create_channel("short-lived")
    await page.get_by_role("button", name="short-lived").click()
    await expect(page.locator("#title")).to_contain_text("short-lived")
    await sandbox.delete_channel("short-lived")
    await expect(page.locator("#title")).to_contain_text("general")
    await expect(page.get_by_role("alert")).to_contain_text("was deleted")


async def test_a_reply_leads_to_its_original(page: Page, bot: FixtureBot) -> None:
    await page.get_by_role("button", name="general", exact=True).click()
    original = await bot.channel().send("the original")
    await page.locator(f'.message[data-id="{original.id}"]').hover()
    await page.locator(f'.message[data-id="{original.id}"]').get_by_role("button", name="Reply").click()
    await write(page, "a reply")
    reply = page.locator(".message", has_text="a reply").last
    await reply.get_by_role("button", name=re.compile("Show the message")).click()
    await expect(page.locator(f'.message[data-id="{original.id}"]')).to_be_focused()
