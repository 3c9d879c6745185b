"""The record from outside: read in Discord and by commands, masked everywhere, and the rows that the modes write."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from signoff.store import Store
from signoff.store.store import Tx
from tests.rigs.live_bot import PATIENCE, PLUGIN, CrashingRig, Rig
from tests.rigs.office import PEOPLE, asks, commands_known, further, order, press, shows, staffed, submit
from tests.rigs.preloaded import Ended, Launcher, launcher

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 10_000
CONFIG = f"""{PEOPLE}
[[rules]]
tool = "brief"
verdict = "ask"
timeout = "300ms"

[audit]
log_channels = ["{{ops}}"]

[secrets]
patterns = ['EMP-([0-9]{{{{6}}}})']
""".replace("{{6}}", "{6}")
KEYS = '''"""A tool that takes secrets, and notes what it really got; and somebody who hears of every decision."""

import json
import os
from pathlib import Path

from pydantic_ai import Tool


def sign_in(api_key: str, notes: str = "") -> str:
    """Sign in somewhere."""
    with Path(os.environ["SIGNOFF_TEST_TRACE"]).open("a", encoding="utf-8") as file:
        file.write(f"sign_in {api_key} {notes[-60:]}\\n")
    return "signed in"


def on_tool_approval(event: dict[str, object]) -> None:
    with Path(os.environ["SIGNOFF_TEST_TRACE"]).with_name("events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\\n")


tools = [Tool(sign_in, requires_approval=True)]
'''
NAMED = "hunter2-and-some-more"
SHAPED = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
OWN = "771234"
"""NAMED has a telling name, SHAPED a known shape, and OWN matches only the operator's own pattern."""


def add_row(tx: Tx, n: int, server: str, ada: str) -> None:
    kinds = ("asked", "approved", "rejected", "expired")
    who = ada if n % 5 == 0 else str(10**17 + n % 40)
    data = {"batch": f"b{n}", "who": "Somebody", "note": ""}
    text = json.dumps({"path": f"notes-{n}.txt", "content": "x" * (n % 300)})
    tx.audit(kinds[n % 4], server, f"q{n}", who, data, 1_700_000_000.0 + n, tool=f"old_{n % 9}", text=text)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with staffed(tmp_path_factory.mktemp("record"), CONFIG, start=False) as running:
        (running.folder / "keys.py").write_text(KEYS, encoding="utf-8")
        config = running.folder / "signoff.toml"
        found = config.read_text(encoding="utf-8").replace(f'["{PLUGIN}"]', f'["{PLUGIN}", "keys.py"]')
        config.write_text(found, encoding="utf-8")
        server, ada = str(await running.sandbox.guild_id()), str(running.people["Ada"].id)
        async with await Store.open(f"sqlite:///{running.database}") as store:
            await store.run(lambda tx: [add_row(tx, n, server, ada) for n in range(ROWS)])
        await running.start(SIGNOFF_LOG_LEVEL="DEBUG")
        await commands_known(running)
        yield running


@dataclass(frozen=True)
class Program:
    """Runs `python main.py audit WORDS` on the bot's database while the bot runs, each time in a new process."""

    live: Rig
    started: Launcher

    async def __call__(self, *words: str) -> Ended:
        folder = self.live.folder / "program"
        folder.mkdir(exist_ok=True)
        environment = self.live.environment | {"SIGNOFF_DATABASE_URL": f"sqlite:///{self.live.database}"}
        return await self.started.run(folder, "audit", *words, environment=environment)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def audit(live: CrashingRig) -> AsyncIterator[Program]:
    async with launcher() as started:
        yield Program(live, started)


async def texts_of(live: Rig, message: SeenMessage) -> str:
    """Return everything that a message shows, its files included."""
    files = [(await live.sandbox.fetch(file["url"])).decode() for file in message.files]
    return "\n".join([message.text, *files])


# Ten thousand rows


async def test_ten_thousand_rows_are_answered_in_time_filtered_and_paged(live: Rig) -> None:
    await live.sandbox.settings(interaction_deadline=3.0)
    try:
        newest = await order(live, "audit")
        ada = live.people["Ada"]
        narrowed: tuple[dict[str, Any], ...] = (
            {"person": ada.id},
            {"tool": "old_3"},
            {"kind": "expired"},
            {"tool": "none_such"},
            {"request": "0" * 16},
        )
        for options in narrowed:
            assert not (await order(live, "audit", **options)).failed
    finally:
        await live.sandbox.settings(interaction_deadline=PATIENCE)
    page = newest.reply
    assert page is not None
    assert f"row {ROWS}" in page.text
    seen = [page.text]
    for _ in range(3):
        older = await press(live, page, "Older")
        assert older.updated is not None
        page = older.updated
        seen.append(page.text)
    assert len(set(seen)) == 4
    newer = await press(live, page, "Newer")
    assert newer.updated is not None
    assert newer.updated.text == seen[2]
    last = await order(live, "audit", person=ada.id, tool="old_0", kind="asked")
    page, pages = last.reply, 1
    assert page is not None
    while "Older" in [button.label for button in page.buttons]:
        older = await press(live, page, "Older")
        assert older.updated is not None
        page, pages = older.updated, pages + 1
    wanted = [n for n in range(ROWS) if n % 180 == 0]
    assert pages == -(-len(wanted) // 10)
    assert "row 1" in page.text.split("·")[-1]


async def test_the_story_of_a_call_is_told_in_order(live: Rig) -> None:
    asked, card = await asks(live, 'call record {"value": "a story"}')
    opened = await further(live, card, "Edit…", "Olga")
    await submit(live, opened, "Olga", arguments_0="a better story")
    await press(live, await shows(live, card, "Edited by"), "Accept", "Nina")
    await live.sees(asked.id, "recorded a better story")
    await live.ended(asked)
    # The card itself shows the id to search the record for.
    request = re.search(r"Request ([0-9a-f]{16}) ", card.text)
    assert request
    told = (await order(live, "audit", request=request[1])).text
    olga, nina, max_ = (live.people[name].mention for name in ("Olga", "Nina", "Max"))
    story = [
        f"Asked** for {max_}",
        f"Arguments edited** by {olga}",
        f"Approved** by {nina}",
        "Call started",
        "Call completed",
    ]
    places = [told.index(words) for words in reversed(story)]
    assert places == sorted(places), "newest first"
    assert told.count("· row ") == len(story), "and nothing of any other request"


async def test_people_timeouts_restarts_and_stops_are_told_apart(live: CrashingRig) -> None:
    asked = await live.ask('call brief {"value": "nobody came"}')
    await live.sees(asked.id, "timed out")
    assert "Timed out" in (await order(live, "audit", tool="brief")).text
    asked, _ = await asks(live, 'call held {"value": "stopped"}')
    await order(live, "stop", where=asked.id)
    told = (await order(live, "audit", tool="held")).text
    assert "Cancelled" in told
    assert "stopped by Ada" in told
    asked, card = await asks(live, 'call held {"value": "cut off"}')
    await press(live, card, "Accept", "Olga")
    await live.wait_for_trace("held start cut off")
    await live.kill()
    await live.start()
    again = await live.with_button(asked.id, "Skip")
    assert "may have run" in again.text
    await press(live, again, "Skip", "Nina")
    await live.ended(asked)
    told = (await order(live, "audit", tool="held")).text
    assert f"Approved** by {live.people['Olga'].mention}" in told
    assert "Asked again after a restart" in told
    assert f"Skipped** by {live.people['Nina'].mention}" in told
    assert live.trace.count("held start cut off") == 1


# Verified and exported


async def test_the_record_is_verified_and_exported_beside_the_running_bot(audit: Program) -> None:
    verified = await audit("verify")
    assert (verified.code, verified.output.split(":")[0]) == (0, "intact")
    exported = await audit("export")
    rows = [json.loads(line) for line in exported.output.splitlines()]
    assert (exported.code, [row["seq"] for row in rows]) == (0, list(range(1, len(rows) + 1)))
    table = await audit("export", "--format", "csv")
    assert table.code == 0
    assert len(list(csv.reader(io.StringIO(table.output)))) == len(rows) + 1


# Secrets and the log channel


async def test_secrets_are_masked_wherever_people_look_and_the_tool_gets_them(live: Rig, audit: Program) -> None:
    notes = "😀" * 1600 + f" token {SHAPED} of EMP-{OWN}"
    call = json.dumps({"api_key": NAMED, "notes": notes}, ensure_ascii=False)
    asked, card = await asks(live, f"call sign_in {call}")
    assert card.files, "long enough to be attached"
    shown = await texts_of(live, card)
    offered = [button.label for button in (await more(live, card, "Ada")).buttons]
    assert "Edit…" not in offered, "nobody may write a mask into the arguments"
    await press(live, card, "Accept")
    await live.sees(asked.id, "signed in")
    await live.ended(asked)
    assert live.trace[-1] == f"sign_in {NAMED} {notes[-60:]}"
    # Before that, the bot may still attach its files again.
    final = "SELECT 1 FROM batches WHERE card = ? AND card_final"
    await live.until(lambda: live.rows(final, str(card.id)), "the card shows its end")
    closed = await live.closed(card, "APPROVED by")
    logged = await live.people["Ada"].wait_for_message("ops", lambda m: "sign_in" in m.text, timeout=PATIENCE)
    audited = await order(live, "audit", tool="sign_in")
    exported = (await audit("export")).output
    assert "sign_in" in exported
    looked = {
        "the card": shown,
        "the decided card": await texts_of(live, closed),
        "the log channel": logged.text,
        "/signoff audit": audited.text,
        "audit export": exported,
        "the bot's log": live.output,
    }
    assert "sign_in" in live.output, "at this level the log holds what Discord sends"
    for where, text in looked.items():
        for secret in (NAMED, SHAPED):
            assert secret not in text, f"{secret} is in {where}"
        # A digest may contain these six digits by chance, so look for them only apart from other hex digits.
        assert not re.search(rf"(?<![0-9a-f]){OWN}(?![0-9a-f])", text), f"{OWN} is in {where}"
    with closing(sqlite3.connect(f"file:{live.database}?mode=ro", uri=True)) as database:
        kept = "\n".join(text for (text,) in database.execute("SELECT text FROM audit_texts"))
    assert not [secret for secret in (NAMED, SHAPED, OWN) if secret in kept]


async def test_every_decision_is_a_line_in_the_log_channel(live: Rig) -> None:
    asked, card = await asks(live, 'call record {"value": "log 1"}; call record {"value": "log 2"}')
    accepted = await press(live, card, "Accept", "Olga")
    assert accepted.updated is not None
    opened = await press(live, (await more(live, accepted.updated, "Nina")), "Reject with a reason…", "Nina")
    await submit(live, opened, "Nina", reason="too late")
    await live.ended(asked)
    expired = await live.ask('call brief {"value": "log 3"}')
    await live.ended(expired)
    ops = live.people["Ada"]
    for words in (
        ("APPROVED", "`record`", live.people["Olga"].mention, "log 1"),
        ("REJECTED", "`record`", live.people["Nina"].mention, "log 2", "too late"),
        ("EXPIRED", "`brief`", "nobody", "log 3"),
    ):
        line = await ops.wait_for_message(
            "ops", lambda m, words=words: all(w in m.text for w in words), timeout=PATIENCE
        )
        assert line.pings == []


async def test_every_decision_is_an_event_for_plugins(live: Rig) -> None:
    asked, card = await asks(live, 'call record {"value": "an event"}')
    await press(live, card, "Accept", "Olga")
    await live.ended(asked)

    def told() -> list[dict[str, Any]]:
        lines = (live.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
        return [one for one in map(json.loads, lines) if one["arguments"] == {"value": "an event"}]

    # A plugin gets the event in its own thread, so it may not be done yet.
    await live.until(told, "the plugin was told")
    (event,) = told()
    lines = (live.folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert (event["event"], event["tool"], event["approved"]) == ("tool_approval", "record", True)
    assert (event["by"], event["how"]) == (str(live.people["Olga"].id), "ui")
    assert not [secret for secret in (NAMED, SHAPED, OWN) if secret in "\n".join(lines)]


async def more(live: Rig, card: SeenMessage, who: str) -> SeenMessage:
    panel = await press(live, card, "More…", who)
    assert panel.reply is not None
    return panel.reply


# Modes, one bot after the other


async def test_modes_answer_without_people_and_say_so(live: CrashingRig, audit: Program) -> None:
    config = live.folder / "signoff.toml"
    usual = config.read_text(encoding="utf-8")

    async def restart(old: str = "", new: str = "", rules: str = "") -> None:
        config.write_text(usual.replace(old, new) + rules, encoding="utf-8")
        await live.kill()
        await live.start()

    remember = 'remember = "always"'
    await restart(remember, f'{remember}\nmode = "auto_deny"')
    asked = await live.ask('call record {"value": "auto_deny"}; call free {"value": "auto_deny"}')
    # No question of the response was approved, so the call that needs no approval does not run either.
    await live.sees(asked.id, "record: rejected", "mode auto_deny", "you may call it again")
    await live.ended(asked)

    nobody = '\n[[rules]]\ntool = "record"\nverdict = "ask"\napprovers = ["role:1"]\n'
    denied = '\n[[rules]]\ntool = "free"\nverdict = "deny"\nreason = "never"\n'
    await restart(remember, f'{remember}\nmode = "auto_approve"', denied)
    asked = await live.ask('call record {"value": "auto_approve"}; then call free {"value": "auto_approve"}')
    await live.sees(asked.id, "recorded auto_approve", "free: not allowed", "never")
    await live.ended(asked)

    await restart(rules=nobody)
    asked = await live.ask('call record {"value": "no approver"}')
    await live.sees(asked.id, "record: rejected", "nobody may decide")
    await live.sees(asked.id, "For the admins", "role 1")
    await live.ended(asked)

    await restart(remember, f'{remember}\non_no_approver = "approve"', nobody)
    asked = await live.ask('call record {"value": "approved without"}')
    await live.sees(asked.id, "recorded approved without")
    await live.ended(asked)
    assert "nobody may decide record: approved automatically" in live.output

    assert [line for line in live.trace if "auto" in line or "appr" in line] == [
        *("record auto_approve", "record approved without"),
    ]
    rejected = (await order(live, "audit", tool="record", kind="rejected")).text
    assert "Rejected by the operator's mode** `auto_deny`" in rejected
    assert "Rejected automatically**: `nobody may decide this request`" in rejected
    approved = (await order(live, "audit", tool="record", kind="approved")).text
    assert "Approved by the operator's mode** `auto_approve`" in approved
    assert "Approved automatically**: `nobody may decide this request`" in approved
    assert (await audit("verify")).code == 0
