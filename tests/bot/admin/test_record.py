"""`/signoff audit` over real sockets: pages, filters, restarts, lost rights and forged buttons."""

from __future__ import annotations

import re
import time

import pytest

from discord_sandbox.seen import Outcome, SeenMessage
from signoff.bot.admin import responses
from signoff.bot.admin.record_pages import Filters, Spot, write_id
from signoff.errors import StoreError
from tests.rigs.admin import AdminRig, admin, idle, private  # noqa: F401 - fixtures

# ruff: noqa: F811 - a fixture is asked for by its name


def shown(message: SeenMessage | None) -> list[int]:
    """Return the numbers of the rows on a page."""
    assert message is not None
    assert message.ephemeral
    assert message.pings == []
    assert len(message.text) <= 4000
    return [int(number) for number in re.findall(r"row (\d+)$", message.text, re.MULTILINE)]


def page(answer: Outcome) -> SeenMessage:
    private(answer)
    assert answer.reply is not None
    return answer.reply


def turned(answer: Outcome) -> SeenMessage:
    """Return the page that replaced the one before it."""
    assert answer.updated is not None
    return answer.updated


def labels(message: SeenMessage | None) -> list[str]:
    return [button.label for button in message.buttons] if message else []


async def test_ten_thousand_rows_are_paged_there_and_back(admin: AdminRig) -> None:
    admin.administration.rows = [admin.row(seq) for seq in range(1, 10_001)]
    first = page(await admin.run("audit"))
    assert shown(first) == list(range(10_000, 9_990, -1))
    assert labels(first) == ["Older"]
    second = turned(await admin.ada.click(first, "Older"))
    assert shown(second) == list(range(9_990, 9_980, -1))
    assert labels(second) == ["Newer", "Older"]
    third = turned(await admin.ada.click(second, "Older"))
    assert shown(third)[0] == 9_980
    back = turned(await admin.ada.click(third, "Newer"))
    assert shown(back) == list(range(9_990, 9_980, -1))
    newest = turned(await admin.ada.click(back, "Newer"))
    assert shown(newest) == list(range(10_000, 9_990, -1))
    assert labels(newest) == ["Older"]


async def test_no_page_costs_more_than_a_few_rows(admin: AdminRig) -> None:
    admin.administration.rows = [admin.row(seq) for seq in range(1, 10_001)]
    first = page(await admin.run("audit"))
    deep = write_id(Spot(True, 5_000, Filters()))
    began = time.monotonic()
    answer = await admin.ada.click(first, deep, forged=True)
    # A well-formed id that was never on this message opens nothing.
    assert answer.updated is None
    assert "Unknown" in answer.text
    assert time.monotonic() - began < 20
    assert all(what[2] <= 100 for what in admin.administration.told("audit"))


async def test_the_last_page_has_no_older_one(admin: AdminRig) -> None:
    admin.administration.rows = [admin.row(seq) for seq in range(1, 13)]
    first = page(await admin.run("audit"))
    last = (await admin.ada.click(first, "Older")).updated
    assert shown(last) == [2, 1]
    assert labels(last) == ["Newer"]


async def test_filters_are_kept_from_page_to_page(admin: AdminRig) -> None:
    max_ = str(admin.max.id)
    admin.administration.rows = [
        admin.row(seq, "rejected" if seq % 2 else "approved", actor=max_ if seq % 3 else "signoff", tool="write_file")
        for seq in range(1, 200)
    ]
    wanted = [row.seq for row in reversed(admin.administration.rows) if row.seq % 2 and row.seq % 3]
    first = page(await admin.run("audit", person=max_, tool="write_file", kind="rejected"))
    assert shown(first) == wanted[:10]
    second = turned(await admin.ada.click(first, "Older"))
    assert shown(second) == wanted[10:20]
    back = turned(await admin.ada.click(second, "Newer"))
    assert shown(back) == wanted[:10]
    assert f"by <@{max_}>, about `write_file`, rejected" in first.text


async def test_one_request_is_told_alone_from_page_to_page(admin: AdminRig) -> None:
    one = "00ab" * 4
    admin.administration.rows = [admin.row(seq, subject=one if seq % 2 else "f" * 16) for seq in range(1, 60)]
    first = page(await admin.run("audit", request=one.upper()))
    assert shown(first) == list(range(59, 39, -2))
    assert f"newest first, request `{one}`" in first.text
    second = turned(await admin.ada.click(first, "Older"))
    assert shown(second) == list(range(39, 19, -2))
    assert "as its card and the record show it" in private(await admin.run("audit", request="59"))


async def test_buttons_work_after_a_restart(idle: AdminRig) -> None:
    idle.administration.rows = [idle.row(seq) for seq in range(1, 40)]
    async with idle.running():
        first = page(await idle.run("audit"))
    async with idle.running():
        second = (await idle.ada.click(first, "Older")).updated
        assert shown(second) == list(range(29, 19, -1))


async def test_whoever_lost_the_right_sees_no_further_page(admin: AdminRig) -> None:
    role = await admin.sandbox.role_id("Admins")
    await admin.sandbox.grant(admin.max, role)
    admin.administration.rows = [admin.row(seq) for seq in range(1, 40)]
    first = page(await admin.run("audit", admin.max))
    await admin.sandbox.revoke(admin.max, role)
    admin.administration.calls.clear()
    answer = await admin.max.click(first, "Older")
    assert answer.updated is None
    assert "Manage Server" in private(answer)
    assert admin.administration.calls == []


@pytest.mark.parametrize(
    "forged",
    [
        "signoff:log:o:1:::x' OR 1=1",
        "signoff:log:o:0:::",
        "signoff:log:x:1:::",
        "signoff:log:o:zzzzzzzzzzzzz:::",
        "signoff:log:o:1:::" + "a" * 70,
        "signoff:log:o:1::z:",
        "signoff:log:o:1:::\n",
    ],
)
async def test_forged_buttons_are_refused(admin: AdminRig, forged: str) -> None:
    admin.administration.rows = [admin.row(seq) for seq in range(1, 40)]
    first = page(await admin.run("audit"))
    admin.administration.calls.clear()
    answer = await admin.ada.click(first, forged, forged=True)
    assert "Unknown" in answer.text
    assert answer.updated is None
    assert admin.administration.calls == []


async def test_a_page_is_always_of_the_server_of_the_click(admin: AdminRig) -> None:
    admin.administration.rows = [admin.row(seq) for seq in range(1, 40)]
    first = page(await admin.run("audit"))
    other = await admin.sandbox.guild_id("Other Place")
    admin.administration.calls.clear()
    await admin.ada.click(first, "Older", forged=True, guild_id=other)
    assert {what[0] for what in admin.administration.told("audit")} <= {str(other)}


async def test_a_slow_page_is_given_time(admin: AdminRig, monkeypatch: pytest.MonkeyPatch) -> None:
    admin.administration.rows = [admin.row(seq) for seq in range(1, 40)]
    first = page(await admin.run("audit"))
    monkeypatch.setattr(responses, "PATIENCE", 0.05)
    admin.administration.delay = 0.3
    late = await admin.answered(await admin.run("audit"), "row 30")
    assert late.callback_type == 5
    assert labels(page(late)) == ["Older"]
    answer = await admin.ada.click(first, "Older")
    assert answer.callback_type == 6
    turned = await admin.ada.wait_for_change(first, lambda m: "row 29" in m.text)
    assert shown(turned) == list(range(29, 19, -1))


async def test_a_failing_page_says_so(admin: AdminRig, caplog: pytest.LogCaptureFixture) -> None:
    admin.administration.rows = [admin.row(seq) for seq in range(1, 40)]
    first = page(await admin.run("audit"))
    admin.administration.fails_with = StoreError("secret-place")
    answer = await admin.ada.click(first, "Older")
    assert "bot's log" in private(answer)
    assert "secret-place" in caplog.text


async def test_an_empty_record_says_so(admin: AdminRig) -> None:
    assert "No rows match" in page(await admin.run("audit")).text


async def test_hostile_rows_neither_ping_nor_break_out_nor_overflow(admin: AdminRig) -> None:
    nasty = "@everyone ```\n# APPROVED <@&1> \u202e \U0001f600" * 200
    admin.administration.texts = {"d": nasty}
    admin.administration.rows = [
        admin.row(
            seq,
            kind="k" + nasty if seq % 2 else "rejected",
            actor=nasty,
            tool=nasty,
            subject=nasty,
            text="d",
            data={"who": nasty, "note": nasty, "remember": nasty},
        )
        for seq in range(1, 11)
    ]
    text = page(await admin.run("audit")).text
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert "@everyone" not in outside
    assert "\n#" not in outside
    assert "```" not in text
    assert shown(page(await admin.run("audit"))) == list(range(10, 0, -1))
