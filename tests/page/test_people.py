"""Acceptance in the page: two approvers, neither asker nor editor, a diff, a vote, an edit, and the audit record."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.rigs.page_browser import act_as, choose, opened, write
from tests.rigs.page_launcher import PATIENCE, Launched, put_into_the_lab
from tests.rigs.preloaded import Launcher
from tests.rigs.quiescence import at_rest, rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

PICTURES = os.environ.get("SIGNOFF_TEST_PICTURES")
"""A folder for screenshots of each step, if set."""


@pytest.fixture(scope="module")
def folder(folder: Path) -> Path:
    """A folder with a world in which the asker has the approver role, so that only four eyes prevents a decision."""
    put_into_the_lab(folder, "Max", "Approvers", also="Otto")
    return folder


async def verify(live: Launched) -> tuple[int, str]:
    """Run `python main.py audit verify` on the sandbox's database."""
    environment = os.environ | {"SIGNOFF_DATABASE_URL": f"sqlite:///{live.database}"}
    ended = await Launcher().run(live.folder, "audit", "verify", environment=environment)
    return ended.code, ended.output


async def command(page: Page, name: str, says: str, **options: str) -> Locator:
    """Run a slash command as a person does, and wait for its private response."""
    box, form = page.locator("#text"), page.get_by_role("form", name=f"Command signoff {name}")
    await box.click()
    await box.press_sequentially(f"/signoff {name}")
    # Enter comes at once, as from somebody who types fast: the list may still be that of an earlier text.
    await box.press("Enter")
    await expect(form).to_be_visible()
    for option, value in options.items():
        field = form.get_by_label(re.compile(rf"^{option}( \*)?$"))
        if await field.evaluate("field => field.tagName") == "SELECT":
            await field.select_option(label=value)
        else:
            await field.fill(value)
    await picture(page, f"command-{name}")
    await form.get_by_role("button", name="Run").click()
    answer = page.locator(".message.private", has_text=says)
    await expect(answer).to_contain_text("Only you can see this")
    return answer


async def picture(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png")


async def test_two_approvers_decide_a_write_that_one_of_them_edits(live: Launched, chromium: Browser) -> None:
    async with opened(chromium, live.address, viewport={"width": 1200, "height": 1100}) as page:
        await expect(page.locator("#bot-state")).to_contain_text("online")
        await page.get_by_role("button", name="ops", exact=True).click()

        # An admin makes a rule that asks about such writes.
        rule = await command(
            page,
            "protect",
            "Starting with the next call",
            tool="write_file",
            argument="path",
            pattern="*.env",
            role="@Approvers",
            quorum="2",
            four_eyes="true",
        )
        await expect(rule).to_contain_text("2 people must accept, the asker may not decide")

        # A member asks for one, sees the diff, and may not accept it.
        await page.get_by_role("button", name="general", exact=True).click()
        await act_as(page, "Max")
        await write(page, '@Signoff write "PORT=8080" to config/app.env')
        card = page.locator(".box", has_text="Tool Approval Required")
        await expect(card.get_by_role("button", name="Accept")).to_be_enabled()
        await expect(card).to_contain_text("+PORT=8080")
        await expect(card).to_contain_text("@Approvers, not by the asker; 2 people have to accept")
        await picture(page, "1-card-with-diff")
        await card.get_by_role("button", name="Accept").click()
        refusal = page.locator(".message.private")
        await expect(refusal).to_contain_text("the asker may not decide (four eyes)")
        await expect(refusal).to_contain_text("Only you can see this")
        await picture(page, "2-asker-refused")

        # The first of two approvers accepts.
        await act_as(page, "Olga")
        await expect(refusal).to_have_count(0)
        await card.get_by_role("button", name="Accept").click()
        await expect(card).to_contain_text("Accepted by 1 of 2: @Olga")
        await picture(page, "3-one-of-two")

        # The second approver edits instead. The first vote was for other arguments, so it is void.
        await act_as(page, "Nina")
        await choose(page, card, "Edit…")
        form = page.get_by_role("dialog", name="Edit write_file")
        await expect(form.get_by_label("content")).to_have_value("PORT=8080")
        await form.get_by_label("content").fill("PORT=9090")
        await picture(page, "4-the-form")
        await form.get_by_role("button", name="Submit").click()
        await expect(card).to_contain_text("Edited by @Nina")
        await expect(card).to_contain_text("Votes that this edit made void: @Olga")
        await expect(card).to_contain_text("Accepted by 0 of 2")
        await expect(card).to_contain_text("PORT=8080")
        await expect(card).to_contain_text("+PORT=9090")
        await picture(page, "5-after-the-edit")
        assert list(live.folder.rglob("app.env")) == []

        # The editor may not accept the edit. Two others do, and the call runs once.
        await card.get_by_role("button", name="Accept").click()
        await expect(refusal.last).to_contain_text("you edited this call, so somebody else has to accept it")
        await act_as(page, "Olga")
        await card.get_by_role("button", name="Accept").click()
        await expect(card).to_contain_text("Accepted by 1 of 2: @Olga")
        await act_as(page, "Otto")
        await card.get_by_role("button", name="Accept").click()
        await expect(card).to_contain_text("APPROVED by @Olga and @Otto")
        await expect(card.get_by_role("button")).to_have_count(0)
        await expect(page.locator(".message").last).to_contain_text("write_file: done")
        await picture(page, "6-approved")
        await at_rest(live.database, PATIENCE)
        (file,) = live.folder.rglob("app.env")
        assert file.read_text(encoding="utf-8") == "PORT=9090"
        assert rows(live.database, "SELECT COUNT(*) FROM audit WHERE kind = 'started'") == [(1,)]

        # The record has all of it, newest first.
        await act_as(page, "Ada")
        await page.get_by_role("button", name="ops", exact=True).click()
        # `inner_text` would not work: it is empty for a message that the browser has not painted yet
        # (content-visibility).
        told = await (await command(page, "audit", "Record of this server")).text_content() or ""
        story = [
            r"Rule added by @Ada",
            r"Asked for @Max",
            r"Arguments edited by @Nina.*1 earlier vote void",
            r"Approved by @Otto",
            r"Call started",
            r"Call completed",
        ]
        places = [[found.start() for found in re.finditer(words, told)] for words in story]
        assert all(len(found) == 1 for found in places), told
        assert len(re.findall(r"Voted to accept by @Olga", told)) == 2, told
        assert sorted(places, reverse=True) == places
        await picture(page, "7-the-record")
    assert "ERROR" not in live.log

    # The record is intact while the bot runs. After one byte is changed in the file, verify names its row.
    code, said = await verify(live)
    assert (code, said.partition(":")[0]) == (0, "intact")
    assert await live.interrupt() == 0
    ((seq, data),) = rows(live.database, "SELECT seq, data FROM audit WHERE kind = 'approved'")
    with closing(sqlite3.connect(live.database)) as database, database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute("UPDATE audit SET data = ? WHERE seq = ?", (data.replace("Otto", "Ottp"), seq))
    code, said = await verify(live)
    assert code == 1
    assert said.startswith(f"row {seq} (approved, "), said
