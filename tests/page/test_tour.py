"""The guided tour of the sandbox: the incident by clicking alone, examples to click, direct messages, honest ticks."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.rigs.page_browser import act_as, choose, opened, write
from tests.rigs.page_launcher import PATIENCE, Launched, launched
from tests.rigs.quiescence import at_rest

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

PICTURES = os.environ.get("SIGNOFF_TEST_PICTURES")
"""A folder for screenshots of each step, if set."""
OWN = """
[tools]
enable = ["roll_dice", "test_discord_approval", "write_file"]
plugins = ["shop.py"]

[access]
roles = ["555000555000555000"]

[approvals]
approvers = ["role:123456123456123456", "user:777000777000777000"]

[[rules]]
tool = "refund"
verdict = "ask"
quorum = 2
"""
PLUGIN = '''
def refund(order: int, amount: float, note: str = "") -> str:
    """Pay money back."""
    return f"refunded {amount} for order {order}"

tools = [refund]
'''


async def picture(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"tour-{name}.png")


def chip(page: Page, name: str) -> Locator:
    return page.locator("#hint .chip", has_text=name)


def card(page: Page, tool: str) -> Locator:
    return page.locator(".message:not(.private) .box", has_text=tool).last


async def test_the_incident_is_told_by_clicking_and_ticked_at_its_end(page: Page, live: Launched) -> None:
    (log,) = live.folder.rglob("app.log")
    before = log.read_bytes()
    await page.get_by_role("button", name="An incident").click()
    await expect(page.get_by_role("radio", name=re.compile("^Max"))).to_be_checked()
    delete = card(page, "delete_file")
    await expect(delete.get_by_role("button", name="Accept")).to_be_enabled()
    await expect(delete).to_contain_text("No space left on device")
    await expect(chip(page, "Incident").locator(".icon")).to_have_count(0)
    await picture(page, "1-proposal")
    await page.get_by_role("button", name="Act as Olga").click()
    await choose(page, delete, "Reject with a reason…")
    form = page.get_by_role("dialog")
    await form.get_by_role("button", name=re.compile("^Keep the log")).click()
    await picture(page, "2-reason")
    await form.get_by_role("button", name="Submit").click()
    await expect(delete).to_contain_text("REJECTED by @Olga")
    better = card(page, "rotate_log")
    await expect(better).to_contain_text("we need it for the post-mortem")
    await expect(page.locator(".hint-done")).to_have_count(0)
    assert log.read_bytes() == before
    await better.get_by_role("button", name="Accept").click()
    await expect(better).to_contain_text("APPROVED by @Olga")
    await expect(page.get_by_text("Nothing is lost, and the disk has space again")).to_be_visible()
    await expect(page.locator(".hint-done")).to_contain_text("Done: An incident")
    await expect(chip(page, "Incident").locator(".icon")).to_have_count(1)
    await picture(page, "3-end")
    assert log.read_bytes() == b""
    assert gzip.decompress(log.with_name("app.log.1.gz").read_bytes()) == before


async def test_the_incident_begins_anew_and_an_accepted_deletion_is_no_dead_end(page: Page, live: Launched) -> None:
    (log,) = live.folder.rglob("app.log")
    assert log.read_bytes() == b"", "the last incident is over"
    await page.get_by_role("button", name="general", exact=True).click()
    await chip(page, "Incident").click()
    delete = card(page, "delete_file")
    await expect(delete.get_by_role("button", name="Accept")).to_be_enabled()
    await expect(page.locator(".hint-done")).to_have_count(0)
    await expect(page.locator("#hint")).to_contain_text("asks to delete it")
    await expect(chip(page, "Incident").locator(".icon")).to_have_count(1)
    await page.get_by_role("button", name="Act as Ada").click()
    await delete.get_by_role("button", name="Accept").click()
    reply = page.locator(".message").last
    await expect(reply).to_contain_text("The disk has space again, but nobody can look into the log any more")
    await expect(page.locator("#hint")).to_contain_text("the log is deleted for good. Press Incident to start again")
    await expect(page.locator(".hint-done")).to_have_count(0)
    await picture(page, "7-deleted")
    assert not log.exists()
    await reply.locator("code.example", has_text="incident").click()
    await page.get_by_role("button", name="Send").click()
    # The reply is in the thread of the last incident, and so is this one.
    again = page.locator(".message:not(.private) .box", has_text="delete_file").nth(1)
    await again.get_by_role("button", name="Reject", exact=True).click()
    await expect(page.locator("#hint")).to_contain_text("does not know what would be better")
    assert log.read_bytes()
    await page.locator("code.example", has_text="keep the log").click()
    await page.get_by_role("button", name="Send").click()
    await expect(card(page, "rotate_log").get_by_role("button", name="Accept")).to_be_enabled()
    await expect(page.locator("#hint")).to_contain_text("proposes something better: Accept it")
    await card(page, "rotate_log").get_by_role("button", name="Accept").click()
    await expect(page.get_by_text("rotate_log: done")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
async def test_every_button_says_what_it_does(live: Launched, chromium: Browser, width: int) -> None:
    async with opened(chromium, live.address, viewport={"width": width, "height": 844}) as page:
        await expect(page.locator("#bot-state")).to_contain_text("online")
        await expect(page.get_by_role("button", name="Restart the bot")).to_be_visible()
        # What is painted, not what is in the document: a narrow page hides a part of it.
        assert await page.locator("#restart").evaluate("button => button.innerText.startsWith('Restart')")
        await page.get_by_role("button", name="Request inspector").click()
        for button in await page.get_by_role("button").all():
            shown = await button.evaluate("button => (button.getAttribute('aria-label') || button.innerText).trim()")
            assert shown, await button.evaluate("button => button.outerHTML")


async def test_a_step_that_went_otherwise_gets_no_tick(page: Page) -> None:
    await page.get_by_role("button", name="general", exact=True).click()
    await act_as(page, "Ada")
    await chip(page, "Approve a call").click()
    call = card(page, "hello")
    await call.get_by_role("button", name="Reject", exact=True).click()
    await expect(page.locator(".message").last).to_contain_text("rejected")
    await expect(page.locator("#hint")).to_contain_text("It was rejected, so the tool did not run.")
    await expect(chip(page, "Approve a call").locator(".icon")).to_have_count(0)
    await page.reload()
    await expect(chip(page, "Incident").locator(".icon")).to_have_count(1)
    await expect(chip(page, "Approve a call").locator(".icon")).to_have_count(0)


async def test_a_button_stays_the_same_while_messages_arrive(page: Page) -> None:
    """If a button is replaced between the press and the release of the mouse, the browser sends no click."""
    await page.get_by_role("button", name="general", exact=True).click()
    await write(page, "one message")
    await expect(page.get_by_text("one message", exact=True)).to_be_visible()
    button = await chip(page, "Approve a call").element_handle()
    await write(page, "and another")
    await expect(page.get_by_text("and another", exact=True)).to_be_visible()
    assert button is not None
    assert await button.evaluate("button => button.isConnected")


async def test_what_the_model_does_not_understand_gets_examples_to_click(page: Page) -> None:
    await page.get_by_role("button", name="ops", exact=True).click()
    await write(page, "@Signoff please write me a poem about logs")
    await expect(page.get_by_text("I do not know what to do with this one")).to_be_visible()
    await page.locator("code.example", has_text="help").click()
    await expect(page.locator("#text")).to_have_value("@Signoff help")
    await page.get_by_role("button", name="Send").click()
    await page.locator("code.example", has_text="roll 2 dice").click()
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_text("roll_dice: done")).to_be_visible()
    await picture(page, "4-examples")


async def test_a_direct_message_is_a_step_of_its_own(page: Page) -> None:
    await page.get_by_role("button", name="general", exact=True).click()
    await act_as(page, "Max")
    await chip(page, "Direct message").click()
    await expect(page.get_by_role("radio", name=re.compile("^Ada"))).to_be_checked()
    await expect(page.locator("#title")).to_contain_text("Signoff")
    call = card(page, "just between us")
    await call.get_by_role("button", name="Accept").click()
    await expect(call).to_contain_text("APPROVED by @Ada")
    await expect(page.locator(".hint-done")).to_contain_text("Ask in a direct message")
    await picture(page, "5-direct")


async def test_a_message_that_is_too_long_stays_in_the_box_with_discords_words(page: Page) -> None:
    await page.get_by_role("button", name="general", exact=True).click()
    box = page.locator("#text")
    await box.fill("x" * 1990)
    await expect(page.locator(".counter")).to_have_text("10")
    await box.fill("x" * 2001)
    await expect(page.locator(".counter")).to_have_text("-1")
    await box.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("Your message is too long")
    await expect(box).to_have_value("x" * 2001)
    await box.fill("y" * 2000)
    await box.press("Enter")
    await expect(page.get_by_text("y" * 2000)).to_be_visible()


async def test_ones_own_configuration_brings_its_tools_and_its_people(tmp_path: Path, chromium: Browser) -> None:
    (tmp_path / "signoff.toml").write_text(OWN, encoding="utf-8")
    (tmp_path / "shop.py").write_text(PLUGIN, encoding="utf-8")
    async with launched(tmp_path) as live:
        await live.says("Ctrl-C")
        async with opened(chromium, live.address) as page:
            await expect(page.locator("#bot-state")).to_contain_text("online")
            names = ["refund", "write_file", "test_discord_approval", "roll_dice", "everything"]
            await expect(page.locator(".suggestion-title")).to_contain_text(names)
            sent = ['call refund {"order": 1, "amount": 1}', "write notes.txt with three lines"]
            sent += ['please run the test approval tool with parameter "hello"', "roll 2 dice", "help"]
            await expect(page.locator(".suggestion-text")).to_have_text([f"@Signoff {text}" for text in sent])
            await picture(page, "6-own")
            await page.get_by_role("button", name="Call refund").click()
            call = card(page, "refund")
            await expect(call.get_by_role("button", name="Accept")).to_be_enabled()
            for name in ("Olga", "user-777000777000777000"):
                await act_as(page, name)
                await call.get_by_role("button", name="Accept").click()
            await expect(call).to_contain_text("APPROVED by @Olga and @user-777000777000777000")
            await expect(page.locator(".hint-done")).to_contain_text("Done: Call refund")
        await at_rest(live.database, PATIENCE)
    async with launched(tmp_path) as again:  # what the file names is there already
        await again.says("Ctrl-C")
