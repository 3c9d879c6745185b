"""A tool asks people something: the card and the form for the answer in a browser, with the real bot."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.rigs.page_browser import act_as, write
from tests.rigs.page_launcher import Launched

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLUGIN = '''
from pydantic_ai import CallDeferred, Tool

SHIP = {
    "properties": {
        "port": {"type": "string", "enum": ["Bergen", "Oslo"], "description": "Where the ship leaves"},
        "cargo": {"type": "array", "items": {"enum": ["tea", "salt", "wool"]}, "minItems": 1},
        "crew": {"type": "integer", "minimum": 2, "title": "Size of the crew"},
        "night": {"type": "boolean", "title": "Sail at night?"},
        "flag": {"type": "string", "enum": [f"flag {n}" for n in range(12)]},
        "note": {"type": "string", "title": "Anything else"},
    },
    "required": ["port", "cargo", "crew", "night", "flag"],
}


def ask_ship(name: str) -> dict[str, object]:
    """Ask how a ship sails."""
    raise CallDeferred(metadata={"question": f"How does the {name} sail?", "schema": SHIP})


tools = [Tool(ask_ship)]
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("answers")
    (place / "ships.py").write_text(PLUGIN, encoding="utf-8")
    (place / "signoff.toml").write_text('[tools]\nplugins = ["ships.py"]\n', encoding="utf-8")
    return place


async def ask(page: Page) -> Locator:
    """Let the agent ask, and return the card."""
    await page.get_by_role("button", name="general", exact=True).click()
    await write(page, '@Signoff call ask_ship {"name": "Aurora"}')
    card = page.locator(".box", has_text=re.compile("Answer Needed")).last
    await expect(card.get_by_role("button", name="Answer…")).to_be_enabled()
    return card


async def fill_in(page: Page) -> Locator:
    """Fill in the first part of the form, and return the panel that says what is kept."""
    form = page.get_by_role("dialog")
    await expect(form).to_contain_text("Part 1 of 2: ask_ship")
    await form.get_by_role("radiogroup", name="port").get_by_text("Oslo").click()
    await form.get_by_text("salt").click()
    await form.get_by_text("wool").click()
    await form.get_by_label("Size of the crew").fill("12")
    await form.get_by_role("radiogroup", name="Sail at night?").get_by_text("No").click()
    await form.get_by_label("flag").select_option("flag 11")
    await form.get_by_role("button", name="Submit").click()
    panel = page.locator(".message.private").last
    await expect(panel).to_contain_text("Part 1 of 2 is kept. Nothing was sent yet.")
    return panel


async def test_a_form_of_two_parts_answers_the_agent(live: Launched, page: Page) -> None:
    card = await ask(page)
    await expect(card).to_contain_text("How does the Aurora sail?")
    await expect(card).to_contain_text("The agent asks this and reads your answer")
    await card.get_by_role("button", name="Answer…").click()
    panel = await fill_in(page)
    await expect(panel).to_contain_text("5 of 6 fields are filled in.")
    await panel.get_by_role("button", name="Next part…").click()
    form = page.get_by_role("dialog")
    await form.get_by_label("Anything else").fill("**no** @everyone")
    await form.get_by_role("button", name="Submit").click()
    await expect(card).to_contain_text("ANSWERED by @Ada")
    await expect(card).to_contain_text("Answer to flag: flag 11")
    await expect(card).to_contain_text("**no** @everyone")
    await expect(card.get_by_role("button")).to_have_count(0)
    reply = page.locator(".message").last
    await expect(reply).to_contain_text('"cargo":["salt","wool"]')
    await expect(reply).to_contain_text('"crew":12')


async def test_what_is_kept_can_be_sent_without_the_last_part(page: Page) -> None:
    card = await ask(page)
    await card.get_by_role("button", name="Answer…").click()
    panel = await fill_in(page)
    await panel.get_by_role("button", name="Send").click()
    await expect(card).to_contain_text("ANSWERED by @Ada")
    await expect(card).to_contain_text("Answer to port: Oslo")


async def test_a_wrong_number_is_told_and_the_rest_of_the_form_is_kept(page: Page) -> None:
    card = await ask(page)
    await card.get_by_role("button", name="Answer…").click()
    form = page.get_by_role("dialog")
    await form.get_by_role("radiogroup", name="port").get_by_text("Oslo").click()
    await form.get_by_text("salt").click()
    await form.get_by_label("Size of the crew").fill("1")
    await form.get_by_role("radiogroup", name="Sail at night?").get_by_text("Yes").click()
    await form.get_by_label("flag").select_option("flag 3")
    await form.get_by_role("button", name="Submit").click()
    said = page.locator(".message.private").last
    await expect(said).to_contain_text("Size of the crew: must be at least 2. Nothing was sent.")
    await card.get_by_role("button", name="Answer…").click()
    await expect(form.get_by_label("flag")).to_have_value("#3")
    await expect(form.get_by_role("radiogroup", name="port").get_by_label("Oslo")).to_be_checked()
    await form.get_by_role("button", name="Cancel").click()
    await card.get_by_role("button", name="Decline").click()
    await expect(card).to_contain_text("DECLINED by @Ada")


async def test_another_member_cannot_answer_but_the_asker_can_decline(page: Page) -> None:
    card = await ask(page)
    await act_as(page, "Max")
    await card.get_by_role("button", name="Answer…").click()
    await expect(page.locator(".message.private").last).to_contain_text("You may not answer this")
    await act_as(page, "Ada")
    await card.get_by_role("button", name="Decline").click()
    await expect(card).to_contain_text("DECLINED by @Ada")
    await expect(page.locator(".message").last).to_contain_text("Ada declined to answer")
