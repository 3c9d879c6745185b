"""The whole product in a browser: started as a person starts it, with the real bot and the offline demo model."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.rigs.page_browser import act_as, opened, ready, write
from tests.rigs.page_launcher import Launched

pytestmark = pytest.mark.asyncio(loop_scope="session")

CARD = re.compile("Tool Approval Required")


def cards(page: Page) -> Locator:
    return page.locator(".box", has_text=CARD)


async def ask(page: Page, text: str) -> Locator:
    """Mention the bot in #general, open the thread, and return the open card there."""
    await page.get_by_role("button", name="general", exact=True).click()
    await write(page, f"@Signoff {text}")
    await expect(page.locator("#title")).to_contain_text("#general")
    card = cards(page).last
    await expect(card.get_by_role("button", name="Accept")).to_be_enabled()
    return card


async def test_the_address_opens_the_page_and_leaves_the_token_behind(live: Launched, page: Page) -> None:
    assert "token" not in page.url
    (cookie,) = await page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
    await expect(page.get_by_role("heading", name="Signoff Lab")).to_be_visible()
    await expect(page.locator(".suggestion")).to_have_count(9)


async def test_the_first_suggestion_leads_to_a_decided_approval(page: Page) -> None:
    await page.get_by_role("button", name="Approve a call").click()
    await expect(page.locator("#hint")).to_contain_text("press Accept")
    await expect(cards(page).last).to_contain_text("hello")
    await cards(page).last.get_by_role("button", name="Accept").click()
    await expect(cards(page).last).to_contain_text("APPROVED by @Ada")
    await expect(page.get_by_text("executed successfully with parameter: hello")).to_be_visible()


async def test_a_mention_a_card_accept_and_the_result(page: Page) -> None:
    card = await ask(page, 'please run the test approval tool with parameter "by hand"')
    await expect(card).to_contain_text("by hand")
    await expect(page.get_by_text("executed successfully with parameter: by hand")).to_have_count(0)
    await card.get_by_role("button", name="Accept").click()
    await expect(card).to_contain_text("APPROVED by @Ada")
    await expect(card.get_by_role("button")).to_have_count(0)
    await expect(page.get_by_text("executed successfully with parameter: by hand")).to_be_visible()


async def test_a_rejection_shows_in_the_answer(page: Page) -> None:
    card = await ask(page, 'announce "Cake." to everyone')
    await expect(card).to_contain_text("the tool itself asks")
    await card.get_by_role("button", name="Reject", exact=True).click()
    await expect(card).to_contain_text("REJECTED by @Ada")
    await expect(page.locator(".message").last).to_contain_text("post_announcement: rejected")


async def test_a_member_is_refused_privately_and_an_approver_may_decide(page: Page) -> None:
    card = await ask(page, 'please run the test approval tool with parameter "not for Max"')
    await act_as(page, "Max")
    await card.get_by_role("button", name="Accept").click()
    refusal = page.locator(".message.private")
    await expect(refusal).to_contain_text("You may not decide this")
    await expect(refusal).to_contain_text("Only you can see this")
    await act_as(page, "Ada")
    await expect(card.get_by_role("button", name="Accept")).to_be_visible()
    await expect(refusal).to_have_count(0)
    await act_as(page, "Max")
    await refusal.get_by_role("button", name="Dismiss message").click()
    await expect(refusal).to_have_count(0)
    await act_as(page, "Olga")
    await card.get_by_role("button", name="Accept").click()
    await expect(card).to_contain_text("APPROVED by @Olga")


async def test_an_outsider_sees_nothing_of_the_server_and_is_refused_privately(page: Page) -> None:
    card = await ask(page, 'please run the test approval tool with parameter "secret of the lab"')
    thread = page.url
    await act_as(page, "Otto")
    await expect(page.get_by_role("heading", name="Signoff Lab")).to_have_count(0)
    await expect(page.get_by_text("secret of the lab")).to_have_count(0)
    await page.get_by_role("button", name="Signoff", exact=True).click()
    await write(page, "let me in")
    await expect(page.get_by_role("alert")).to_contain_text("Cannot send messages to this user")
    await expect(page.locator(".message")).to_have_count(0)
    await page.goto(thread)
    await card.get_by_role("button", name="Reject", exact=True).click()
    await expect(card).to_contain_text("REJECTED by @Ada")


async def test_the_countdown_ticks_and_a_hurried_call_has_seconds_only(page: Page) -> None:
    card = await ask(page, 'please run the test approval tool with parameter "hurry"')
    countdown = card.locator("time").first
    await expect(countdown).to_have_text(re.compile(r"in \d+ seconds"))
    first = await countdown.text_content() or ""
    await expect(countdown).not_to_have_text(first)
    await card.get_by_role("button", name="Reject", exact=True).click()


async def test_a_killed_and_restarted_bot_takes_the_old_button(live: Launched, page: Page) -> None:
    card = await ask(page, 'please run the test approval tool with parameter "survivor"')
    await page.get_by_role("button", name="Restart the bot").click()
    await expect(page.locator("#bot-state")).to_contain_text("offline")
    await expect(page.locator("#bot-state")).to_contain_text("online")
    await page.reload()
    await ready(page)
    await expect(page.get_by_role("radio", name=re.compile("^Ada"))).to_be_checked()
    await expect(card).to_contain_text("survivor")
    await card.get_by_role("button", name="Accept").click()
    await expect(card).to_contain_text("APPROVED by @Ada")
    await expect(page.get_by_text("executed successfully with parameter: survivor")).to_be_visible()
    assert live.log.count("logging in") >= 2


async def test_a_reload_keeps_who_acts_and_where(page: Page) -> None:
    await page.get_by_role("button", name="ops", exact=True).click()
    await act_as(page, "Max")
    await write(page, "still here")
    await expect(page.locator(".message")).to_contain_text(["still here"])
    await page.reload()
    await ready(page)
    await expect(page.locator("#title")).to_contain_text("ops")
    await expect(page.get_by_role("radio", name=re.compile("^Max"))).to_be_checked()
    await expect(page.locator(".message")).to_contain_text(["still here"])


async def test_the_inspector_shows_the_calls_of_the_last_interaction(page: Page) -> None:
    await page.get_by_role("button", name="Request inspector").click()
    card = await ask(page, 'please run the test approval tool with parameter "looked at"')
    panel = page.locator("#inspector")
    await expect(panel.locator("summary", has_text="MESSAGE_CREATE").first).to_be_visible()
    await card.get_by_role("button", name="Reject", exact=True).click()
    callback = panel.locator("summary", has_text=re.compile("POST.*/interactions/.*/callback"))
    await expect(callback).to_be_visible()
    await expect(panel).to_contain_text("Ada pressed or picked")
    await callback.click()
    await expect(panel.locator(".json")).to_contain_text('"type": 7')
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()


async def test_it_works_at_phone_width_with_drawers(live: Launched, chromium: Browser) -> None:
    phone = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}
    async with opened(chromium, live.address, **phone) as page:
        await expect(page.locator("#places")).not_to_be_in_viewport()
        await page.get_by_role("button", name="Channels").click()
        await expect(page.locator("#places")).to_be_in_viewport()
        await page.get_by_role("button", name="ops", exact=True).click()
        await expect(page.locator("#places")).not_to_be_in_viewport()
        await page.get_by_role("button", name="Members").click()
        await page.get_by_role("radio", name=re.compile("^Max")).click()
        await expect(page.locator("#people")).not_to_be_in_viewport()
        wide = await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not wide


async def test_nothing_can_be_typed_into_the_place_that_is_being_left(page: Page) -> None:
    """Opening a direct conversation takes a request; text typed before its response was once lost."""
    await act_as(page, "Olga")
    going_on = asyncio.Event()

    async def slowly(route: Route) -> None:
        await going_on.wait()
        await route.continue_()

    await page.route("**/dm*", slowly)
    await page.get_by_role("button", name="Signoff", exact=True).click()
    box = page.locator("#text")
    await expect(box).to_be_disabled()
    going_on.set()
    await expect(box).to_be_enabled()
    await expect(box).to_have_attribute("placeholder", "Message @Signoff")
    await page.unroute("**/dm*")


async def test_suggestions_stay_for_whoever_comes_straight_back_to_the_box(page: Page) -> None:
    """Leaving the box closes its suggestions a moment later. That must not close those of a new entry."""
    box = page.locator("#text")
    await box.click()
    await box.evaluate("box => { box.blur(); box.focus(); }")
    await box.press_sequentially("@Sig")
    option = page.get_by_role("option", name="@Signoff")
    await expect(option).to_be_visible()
    await page.wait_for_timeout(300)
    await expect(option).to_be_visible()
    await box.evaluate("box => box.blur()")
    await expect(option).to_be_hidden()
    await box.fill("")
