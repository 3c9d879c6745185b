"""The features that a Discord client needs, shown with a small bot: components, modals, commands, files, edits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import discord
import pytest
import pytest_asyncio
from playwright.async_api import Browser, FilePayload, Locator, Page, Route, expect

from discord_sandbox import SandboxClient
from tests.rigs.page_bot import ANSWERED_WITHIN, FixtureBot, World
from tests.rigs.page_browser import act_as, opened, write

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def page(world: World, chromium: Browser) -> AsyncIterator[Page]:
    async with opened(chromium, world[0].page_url) as found:
        yield found


async def everything(page: Page, bot: FixtureBot) -> Locator:
    """Post a new message with every component and find it by its id: earlier tests left similar ones above it."""
    said = await bot.show_everything()
    box = page.locator(f'.message[data-id="{said.id}"] .box')
    await expect(box).to_be_visible()
    return box


async def test_a_box_with_every_kind_of_component(page: Page, bot: FixtureBot) -> None:
    box = await everything(page, bot)
    await expect(box.get_by_role("heading", name="A box")).to_be_visible()
    await expect(box.locator("strong", has_text="bold")).to_be_visible()
    await expect(box.get_by_role("separator")).to_have_count(1)
    await expect(box.get_by_role("button", name="Off")).to_be_disabled()
    assert await box.evaluate("box => getComputedStyle(box).borderLeftColor") == "rgb(36, 128, 70)"


async def test_picking_one_and_picking_several(page: Page, bot: FixtureBot) -> None:
    box = await everything(page, bot)
    await box.get_by_role("combobox", name="A colour").select_option("green")
    await expect(page.get_by_text("Picked green", exact=True)).to_be_visible()
    await box.get_by_text("Some colours").click()
    await box.get_by_label("red", exact=True).check()
    await box.get_by_label("greenish blue").check()
    await box.get_by_role("button", name="Choose").click()
    await expect(page.get_by_text("Picked red, greenish blue")).to_be_visible()


async def test_a_modal_is_opened_left_with_escape_and_submitted(page: Page, bot: FixtureBot) -> None:
    opener = (await everything(page, bot)).get_by_role("button", name="Open a form")
    await opener.click()
    form = page.get_by_role("dialog", name="Why not?")
    await expect(form.get_by_label("Reason")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(form).to_have_count(0)
    await expect(opener).to_be_focused()
    await opener.click()
    await form.get_by_label("Reason").fill("it is late")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Because: it is late")).to_be_visible()
    await expect(form).to_have_count(0)


async def test_a_form_with_each_kind_of_input(page: Page, bot: FixtureBot) -> None:
    await (await everything(page, bot)).get_by_role("button", name="All inputs").click()
    form = page.get_by_role("dialog", name="All inputs")
    await expect(form.locator("strong", has_text="this")).to_be_visible()
    await expect(form.get_by_role("radiogroup", name="What")).to_have_accessible_description("How much is covered")
    await expect(form.get_by_label("This call")).to_be_checked()
    await form.get_by_label("This tool").check()
    await form.get_by_role("button", name="Submit").click()
    await expect(form.get_by_role("alert")).to_contain_text("a choice is required")
    await form.get_by_label("content").check()
    await form.get_by_label("I am sure").check()
    notes = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"by hand")
    await form.get_by_label("Notes").set_input_files([notes])
    await form.get_by_role("button", name="Submit").click()
    await expect(page.get_by_text("Got tool ['content'] True ['by hand']")).to_be_visible()
    await expect(form).to_have_count(0)


async def test_a_slash_command_with_the_bots_own_suggestions(page: Page) -> None:
    box = page.locator("#text")
    await box.press_sequentially("/pa")
    await expect(page.get_by_role("option", name="/paint")).to_be_visible()
    await box.press("Enter")
    form = page.get_by_role("form", name="Command paint")
    await form.get_by_label("what").fill("the door")
    colour = form.get_by_label("colour")
    await colour.press_sequentially("greenish")
    await expect(form.locator("datalist option")).to_have_count(1)
    await expect(form.locator("datalist option")).to_have_attribute("value", "greenish blue")
    await colour.fill("greenish blue")
    await colour.press("Enter")
    await expect(page.get_by_text("painted the door GREENISH BLUE")).to_be_visible()
    await expect(page.get_by_text("Ada used a command")).to_be_visible()
    await expect(box).to_be_focused()


async def test_a_press_that_nobody_answers_fails_visibly(page: Page, bot: FixtureBot, sandbox: SandboxClient) -> None:
    await sandbox.settings(interaction_deadline=0.3)
    box = await everything(page, bot)
    await box.get_by_role("button", name="Silent").click()
    await expect(box.locator("xpath=..").get_by_text("This interaction failed")).to_be_visible()
    await sandbox.settings(interaction_deadline=ANSWERED_WITHIN)


async def test_a_whisper_is_seen_by_one_person_and_can_be_dismissed(page: Page, bot: FixtureBot) -> None:
    box = await everything(page, bot)
    await box.get_by_role("button", name="Whisper").click()
    whisper = page.locator(".message.private", has_text="psst")
    await expect(whisper).to_contain_text("Only you can see this")
    await act_as(page, "Max")
    await expect(box).to_be_visible()
    await expect(whisper).to_have_count(0)
    await act_as(page, "Ada")
    await whisper.get_by_role("button", name="Dismiss").click()
    await expect(whisper).to_have_count(0)


async def test_files_go_up_and_come_down(page: Page, tmp_path: Path) -> None:
    (tmp_path / "up.bin").write_bytes(bytes(range(256)))
    await page.locator("#picker").set_input_files(tmp_path / "up.bin")
    await expect(page.locator(".waiting-files")).to_contain_text("up.bin")
    await write(page, "here it is")
    link = page.get_by_role("link", name="Download up.bin")
    async with page.expect_download() as download:
        await link.click()
    await (await download.value).save_as(tmp_path / "down.bin")
    assert (tmp_path / "down.bin").read_bytes() == bytes(range(256))


async def test_messages_stream_edit_and_vanish_while_one_looks(page: Page, bot: FixtureBot) -> None:
    async with bot.channel().typing():
        await expect(page.locator("#typing")).to_contain_text("Bot is typing")
        said = await bot.channel().send("Thinking")
    message = page.locator(f'.message[data-id="{said.id}"]')
    await expect(message).to_contain_text("Thinking")
    await said.edit(content="Thinking, **done**")
    await expect(message.locator("strong", has_text="done")).to_be_visible()
    await expect(message).to_contain_text("(edited)")
    await said.add_reaction("👍")
    await message.get_by_role("button", name="👍, 1").click()
    await expect(message.get_by_role("button", name="👍, 2")).to_have_attribute("aria-pressed", "true")
    await said.delete()
    await expect(message).to_have_count(0)


async def test_mentions_have_names_and_hostile_text_stays_text(page: Page, bot: FixtureBot) -> None:
    ada = next(member for member in bot.channel().guild.members if member.bot)
    hostile = '<img src=x onerror="document.title=1"> [click](javascript:alert(1)) <script>document.title=2</script>'
    text = f"<@{ada.id}> <#{bot.channel('ops').id}> ||hidden|| {hostile}"
    said = await bot.channel().send(text, allowed_mentions=discord.AllowedMentions.none())
    message = page.locator(f'.message[data-id="{said.id}"]')
    await expect(message).to_contain_text("@Bot #ops")
    await expect(message.locator("img, script, a")).to_have_count(0)
    await expect(message).to_contain_text('onerror="document.title=1"')
    await message.get_by_role("button", name="Spoiler").press("Enter")
    await expect(message.locator(".spoiler.open")).to_have_text("hidden")
    await message.get_by_role("button", name="#ops").click()
    await expect(page.locator("#title")).to_contain_text("ops")


async def test_the_page_finds_its_way_back_after_a_lost_connection(world: World, chromium: Browser) -> None:
    server, sandbox, _ = world
    max_ = await sandbox.person("Max")
    async with opened(chromium, server.page_url, forgive="WebSocket|Failed to load resource") as page:
        netloc, server.guard.netloc = server.guard.netloc, "somewhere.else:1"
        await page.evaluate("import(document.querySelector('link[href$=\"/stream.js\"]').href).then(m => m.drop())")
        await expect(page.locator("#offline")).to_be_visible()
        server.guard.netloc = netloc
        said = await max_.say("general", "while you were away")
        await expect(page.locator(f'.message[data-id="{said.id}"]')).to_be_visible()
        await expect(page.locator("#offline")).to_be_hidden()


async def test_a_place_opened_while_the_person_changes_is_kept(page: Page) -> None:
    late = asyncio.Event()

    async def hold(route: Route) -> None:
        await late.wait()
        await route.continue_()

    await page.route("**/people/*/state", hold)
    await page.get_by_role("radio", name=re.compile("^Max")).click()
    await page.get_by_role("button", name="ops", exact=True).click()
    await expect(page.locator("#title")).to_contain_text("ops")
    late.set()
    await expect(page.get_by_role("radio", name=re.compile("^Max"))).to_be_checked()
    await expect(page.locator("#title")).to_contain_text("ops")
    assert "as=Max" in page.url


@pytest.mark.parametrize("system", ["light", "dark"])
async def test_colours_follow_the_system_until_others_are_chosen(world: World, chromium: Browser, system: str) -> None:
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(49, 51, 56)"}
    async with opened(chromium, world[0].page_url, color_scheme=system) as page:
        for chosen in ("", "light", "dark"):
            await page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", chosen)
            ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == grounds[chosen or system]


async def test_keys_alone_are_enough(page: Page, bot: FixtureBot) -> None:
    box = await everything(page, bot)
    await page.keyboard.press("Tab")
    await box.get_by_role("button", name="Whisper").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".message.private").last).to_contain_text("psst")
    unnamed = await page.evaluate(
        "[...document.querySelectorAll('button, a[href], input, select, textarea')]"
        ".filter(e => e.checkVisibility())"
        ".filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length))"
        ".map(e => e.outerHTML)"
    )
    assert unnamed == []
