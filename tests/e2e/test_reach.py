"""Approvers are told about cards and decide from where they are: pings, direct messages, copies, inbox, escalation."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing

import pytest
import pytest_asyncio

from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import PATIENCE, CrashingRig, Rig
from tests.rigs.office import asks, order, press, protect, staffed, submit

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = """
[approvals]
approvers = ["manage_server", "role:{approvers}"]
notify = "channel:{ops}"

[[rules]]
tool = "record"
when = { value = "ping*" }
verdict = "ask"
notify = "ping"

[[rules]]
tool = "record"
when = { value = "direct*" }
verdict = "ask"
approvers = ["user:{max}"]
notify = "dm"

[[rules]]
tool = "record"
when = { value = "late*" }
verdict = "ask"
notify = "none"
timeout = "10m"
escalate = { after = "1s", to = ["user:{max}"] }

[[rules]]
tool = "record"
when = { value = "remind*" }
verdict = "ask"
notify = "none"
timeout = "10m"
reminder = "599.5s"
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with staffed(tmp_path_factory.mktemp("reach"), CONFIG) as running:
        yield running


def call(value: str) -> str:
    return f'call record {{"value": "{value}"}}'


async def copy_of(live: Rig, thread: int, who: str = "Nina") -> SeenMessage:
    """Wait for the open copy in the approvals channel that links to this thread."""
    return await live.people[who].wait_for_message(
        "ops", lambda m: m.buttons and f"/{thread}/" in m.text, timeout=PATIENCE
    )


async def vanishes(live: Rig, message: SeenMessage) -> None:
    end = time.monotonic() + PATIENCE
    while await live.people["Ada"].see(message) is not None:
        assert time.monotonic() < end, "the message is still there"
        await asyncio.sleep(0.05)


async def test_an_approver_decides_in_the_approvals_channel_and_both_places_agree(live: Rig) -> None:
    asked, card = await asks(live, call("from elsewhere"))
    copy = await copy_of(live, asked.id)
    assert f"https://discord.com/channels/{await live.sandbox.guild_id()}/{asked.id}/{card.id}" in copy.text
    for words in ("Tool Approval Required", "record", "from elsewhere"):
        assert words in copy.text
    answer = await press(live, copy, "Accept", "Nina")
    assert answer.updated is not None
    approved = f"APPROVED by {live.people['Nina'].mention}"
    assert approved in answer.updated.text
    await live.closed(card, approved)
    await live.closed(copy, approved)
    await live.sees(asked.id, "record: done")
    assert live.trace.count("record from elsewhere") == 1


async def test_a_decision_in_the_conversation_settles_the_copy(live: Rig) -> None:
    asked, card = await asks(live, call("from here"))
    copy = await copy_of(live, asked.id)
    await press(live, card, "Reject", "Olga")
    await live.closed(copy, f"REJECTED by {live.people['Olga'].mention}")
    refused = await live.people["Nina"].click(copy, "Accept", forged=True)
    assert "REJECTED" in refused.text
    await live.sees(asked.id, "record: rejected")
    assert "record from here" not in live.trace


async def test_forms_and_panels_of_a_copy_work(live: Rig) -> None:
    asked, card = await asks(live, f"{call('first')}; {call('second')}")
    copy = await copy_of(live, asked.id)
    panel = await press(live, copy, "More…", "Nina")
    assert panel.reply is not None
    chosen = await press(live, panel.reply, "1. record", "Nina")
    assert chosen.updated is not None
    form = await press(live, chosen.updated, "Edit…", "Nina")
    await submit(live, form, "Nina", arguments_0="first, edited")
    edited = f"Edited by {live.people['Nina'].mention}"
    for shown in (card, copy):
        await live.people["Nina"].wait_for_change(shown, lambda m: edited in m.text, timeout=PATIENCE)
    current = await live.people["Nina"].see(copy)
    assert current is not None
    await press(live, current, "Accept all", "Nina")
    await live.closed(card, "APPROVED by")
    await live.closed(copy, "APPROVED by")
    await live.sees(asked.id, "record: done")
    assert {"record first, edited", "record second"} <= set(live.trace)
    assert "record first" not in live.trace


async def test_only_approvers_decide_on_a_copy(live: Rig) -> None:
    asked, card = await asks(live, call("not by max"))
    copy = await copy_of(live, asked.id)
    refused = await press(live, copy, "Accept", "Max")
    assert "You may not decide this" in refused.text
    await press(live, card, "Reject", "Nina")
    await live.closed(copy, "REJECTED by")


async def test_a_copy_survives_kill_9(live: CrashingRig) -> None:
    asked, card = await asks(live, call("killed between"))
    copy = await copy_of(live, asked.id)
    await live.kill()
    await live.start()
    await press(live, copy, "Accept", "Nina")
    approved = f"APPROVED by {live.people['Nina'].mention}"
    await live.closed(card, approved)
    await live.closed(copy, approved)
    await live.sees(asked.id, "record: done")
    assert live.trace.count("record killed between") == 1
    copies = [m for m in await live.people["Nina"].messages("ops") if f"/{asked.id}/" in m.text]
    assert len(copies) == 1


async def test_a_copy_that_was_not_noted_before_kill_9_is_closed_with_its_card(live: CrashingRig) -> None:
    ops = await live.sandbox.channel("ops")
    # The copy is there at once, but Discord's gateway loses each response, so the bot tries again for 25 seconds.
    await live.sandbox.fault("POST", f"/channels/{ops.id}/messages", status=504, after=True, times=5)
    asked, card = await asks(live, call("not noted"))
    copy = await copy_of(live, asked.id)
    live.arm("signoff.approvals.desk:Desk.decide:after")
    await live.people["Olga"].click(card, "Reject", wait=0)
    await live.dies()
    assert live.rows("SELECT 1 FROM card_copies WHERE message = ?", str(copy.id)) == []
    assert live.rows("SELECT settled, untold FROM batches WHERE card = ?", str(card.id)) == [(1, 1)]
    await live.sandbox.clear_faults()
    await live.start()
    rejected = f"REJECTED by {live.people['Olga'].mention}"
    await live.closed(card, rejected)
    await live.closed(copy, rejected)
    await live.sees(asked.id, "record: rejected")
    copies = [m for m in await live.people["Nina"].messages("ops") if f"/{asked.id}/" in m.text]
    assert len(copies) == 1


async def test_a_card_that_expires_while_the_bot_is_down_is_closed_in_both_places(live: CrashingRig) -> None:
    asked, card = await asks(live, call("expires"))
    copy = await copy_of(live, asked.id)
    noted = "SELECT 1 FROM card_copies WHERE message = ?"
    await live.until(lambda: live.rows(noted, str(copy.id)), "the note of the copy")
    await live.kill()
    let_it_expire(live, asked)
    await live.start()
    await live.closed(card, "TIMEOUT - Request expired")
    await live.closed(copy, "TIMEOUT - Request expired")
    await live.sees(asked.id, "record: timed out")


def let_it_expire(live: Rig, asked: SeenMessage) -> None:
    with closing(sqlite3.connect(live.database)) as database, database:
        sql = "UPDATE batches SET opened = opened - 3600, deadline = deadline - 3600 WHERE turn LIKE ?"
        database.execute(sql, (f"%-{asked.id}",))


async def test_a_deleted_copy_leaves_the_request_open_and_is_reported(live: Rig) -> None:
    asked, card = await asks(live, call("copy deleted"))
    copy = await copy_of(live, asked.id)
    await live.people["Ada"].delete(copy)
    await live.sees(asked.id, "The copy of this card in the approvals channel was deleted", "still open")
    await press(live, card, "Accept", "Nina")
    await live.closed(card, "APPROVED by")
    await live.sees(asked.id, "record: done")


async def test_a_deleted_card_cancels_its_request_and_the_copy_says_so(live: Rig) -> None:
    asked, card = await asks(live, call("card deleted"))
    copy = await copy_of(live, asked.id)
    await live.people["Ada"].delete(card)
    await live.closed(copy, "the card was deleted")
    await live.sees(asked.id, "record: cancelled")


async def test_a_ping_names_exactly_the_approvers_and_vanishes_with_the_decision(live: Rig) -> None:
    role = await live.sandbox.role_id("Approvers")
    await live.sandbox.change_role(role, mentionable=True)
    asked, card = await asks(live, call("ping them"))
    ping = await live.sees(asked.id, "Approval needed: record", f"<@&{role}>")
    assert [(one["roles"], one["everyone"]) for one in ping.pings] == [([str(role)], False)]
    assert "I know no role to ping for that" in ping.text
    await press(live, card, "Reject", "Olga")
    await vanishes(live, ping)
    await live.until(lambda: not live.rows("SELECT 1 FROM card_notices WHERE kind = 'ping'"), "the removal of its row")


async def test_a_direct_message_links_to_the_card_and_then_says_how_it_ended(live: Rig) -> None:
    asked, card = await asks(live, call("direct to max"), "Olga")
    max_ = live.people["Max"]
    direct = await max_.dm("Signoff")
    told = await max_.wait_for_message(direct, lambda m: f"/{asked.id}/{card.id}" in m.text, timeout=PATIENCE)
    assert "Approval needed: record" in told.text
    await press(live, card, "Accept", "Max")
    await max_.wait_for_change(
        told, lambda m: "No longer open: record" in m.text and "APPROVED by" in m.text, timeout=PATIENCE
    )
    await live.sees(asked.id, "record: done")


async def test_after_an_escalation_further_people_may_decide(live: Rig) -> None:
    asked, card = await asks(live, call("late one"), "Olga")
    max_ = live.people["Max"]
    message = await live.sees(asked.id, "Escalated, because nobody has decided: record", max_.mention)
    assert [one["users"] for one in message.pings] == [[str(max_.id)]]
    await live.people["Ada"].wait_for_change(card, lambda m: f"Escalated to {max_.mention}" in m.text, timeout=PATIENCE)
    await press(live, card, "Accept", "Max")
    await live.closed(card, f"APPROVED by {max_.mention}", "Escalated to")
    await live.sees(asked.id, "record: done")
    await vanishes(live, message)
    assert live.rows("SELECT COUNT(*) FROM audit WHERE kind = 'escalated'") == [(1,)]


async def test_a_reminder_vanishes_after_a_restart(live: CrashingRig) -> None:
    asked, card = await asks(live, call("remind"))
    reminder = await live.sees(asked.id, "Still open: record")
    await live.until(lambda: live.rows("SELECT 1 FROM card_notices WHERE kind = 'reminder'"), "the stored reminder")
    await live.kill()
    let_it_expire(live, asked)
    await live.start()
    await live.closed(card, "TIMEOUT - Request expired")
    await vanishes(live, reminder)
    await live.sees(asked.id, "record: timed out")


async def test_the_inbox_shows_what_a_person_may_decide_and_decides_it(live: Rig) -> None:
    asked, card = await asks(live, call("in the inbox"))
    mine = await order(live, "inbox", "Nina")
    assert mine.reply is not None
    for words in ("1 open card", "record", live.people["Max"].mention, f"/{asked.id}/{card.id}", "in the inbox"):
        assert words in mine.reply.text
    nobodys = await order(live, "inbox", "Max")
    assert nobodys.reply is not None
    assert "No open card waits for your decision" in nobodys.reply.text
    done = await press(live, mine.reply, "Accept", "Nina")
    assert done.updated is not None
    for words in (
        f"Done: APPROVED by {live.people['Nina'].mention} · `record`",
        "No open card waits for your decision",
    ):
        assert words in done.updated.text
    again = await press(live, done.updated, "Refresh", "Nina")
    assert again.updated is not None
    assert again.updated.text == "No open card waits for your decision."
    await live.closed(card, f"APPROVED by {live.people['Nina'].mention}")
    await live.sees(asked.id, "record: done")


async def test_a_card_opened_from_the_inbox_has_its_buttons(live: Rig) -> None:
    asked, card = await asks(live, f"{call('open 1')}; {call('open 2')}")
    listed = await order(live, "inbox", "Nina", where="ops")
    assert listed.reply is not None
    assert [button.label for button in listed.reply.buttons] == ["Accept all", "Reject all", "Open…", "Refresh"]
    opened = await press(live, listed.reply, "Open…", "Nina")
    assert opened.updated is not None
    assert "open 2" in opened.updated.text
    assert "Tool Approval Required" in opened.updated.text
    back = await press(live, opened.updated, "Inbox", "Nina")
    assert back.updated is not None
    assert "1 open card" in back.updated.text
    opened = await press(live, back.updated, "Open…", "Nina")
    assert opened.updated is not None
    panel = await press(live, opened.updated, "More…", "Nina")
    assert panel.updated is not None
    chosen = await press(live, panel.updated, "1. record", "Nina")
    assert chosen.updated is not None
    form = await press(live, chosen.updated, "Reject with a reason…", "Nina")
    await submit(live, form, "Nina", reason="Seen from afar.")
    changed = await live.people["Nina"].wait_for_change(card, lambda m: "Seen from afar." in m.text, timeout=PATIENCE)
    await press(live, changed, "Reject", "Nina")
    await live.sees(asked.id, "record: rejected")


async def test_a_card_is_not_opened_for_somebody_who_may_no_longer_decide_it(live: Rig) -> None:
    asked, card = await asks(live, f"{call('lost 1')}; {call('lost 2')}")
    listed = await order(live, "inbox", "Nina")
    assert listed.reply is not None
    await live.sandbox.revoke(live.people["Nina"], "Approvers")
    refused = await press(live, listed.reply, "Open…", "Nina")
    await live.sandbox.grant(live.people["Nina"], "Approvers")
    assert refused.updated is not None
    assert "You may not decide this" in refused.updated.text
    assert "No open card waits for your decision" in refused.updated.text
    await press(live, card, "Reject all", "Nina")
    await live.sees(asked.id, "record: rejected")


async def test_an_open_inbox_follows_decisions_that_are_made_elsewhere(live: Rig) -> None:
    first, card = await asks(live, call("followed"))
    second, other = await asks(live, call("also followed"))
    listed = await order(live, "inbox", "Nina")
    assert listed.reply is not None
    assert "2 open cards" in listed.reply.text
    await press(live, card, "Reject", "Olga")
    said = f"Just now: `record` was rejected by {live.people['Olga'].mention}"
    left = await live.people["Nina"].wait_for_change(listed.reply, lambda m: said in m.text, timeout=PATIENCE)
    assert "1 open card" in left.text
    assert "`also followed`" in left.text
    assert "`followed`" not in left.text
    done = await press(live, left, "Accept", "Nina")
    assert done.updated is not None
    assert "Done: APPROVED by" in done.updated.text
    await live.closed(other, "APPROVED by")
    await live.sees(first.id, "record: rejected")
    await live.sees(second.id, "record: done")


async def test_a_press_on_an_entry_that_is_no_longer_open_draws_the_inbox_anew(live: CrashingRig) -> None:
    asked, card = await asks(live, call("too late"))
    listed = await order(live, "inbox", "Nina")
    assert listed.reply is not None
    noted = "SELECT 1 FROM batches WHERE card = ?"
    await live.until(lambda: live.rows(noted, str(card.id)), "the note of the card")
    await live.kill()
    await live.start()  # the new process does not know this inbox, so only a press can draw it anew
    await press(live, card, "Reject", "Olga")
    late = await press(live, listed.reply, "Accept", "Nina")
    assert late.updated is not None
    assert f"Already decided: REJECTED by {live.people['Olga'].mention}" in late.updated.text
    assert "No open card waits for your decision" in late.updated.text
    assert [button.label for button in late.updated.buttons] == ["Refresh"]
    await live.sees(asked.id, "record: rejected")


async def test_six_cards_are_two_pages_and_each_can_be_decided_there(live: Rig) -> None:
    asked = [await live.ask(call(f"paged {n}")) for n in range(2)]
    asked += [await live.ask(call(f"paged {n}"), "Olga") for n in range(2, 4)]
    asked += [await live.ask(call(f"paged {n}"), "Ada") for n in range(4, 6)]
    for one in asked:
        await live.card(one.id)
    listed = await order(live, "inbox", "Nina")
    assert listed.reply is not None
    assert "6 open cards" in listed.reply.text
    assert [button.label for button in listed.reply.buttons].count("Accept") == 5
    turned = await press(live, listed.reply, "Next", "Nina")
    assert turned.updated is not None
    assert "page 2 of 2" in turned.updated.text
    done = await press(live, turned.updated, "Reject", "Nina")
    for _ in range(5):
        assert done.updated is not None
        assert "Done: REJECTED by" in done.updated.text
        done = await press(live, done.updated, "Reject", "Nina")
    assert done.updated is not None
    assert "No open card waits for your decision" in done.updated.text
    for one in asked:
        await live.sees(one.id, "record: rejected")


async def test_a_server_rule_can_name_the_approvals_channel(live: Rig) -> None:
    general = await live.sandbox.channel("general")
    await protect(live, tool="record", argument="value", pattern="by rule*", approvals_channel=general.id)
    asked, card = await asks(live, call("by rule"))
    copy = await live.people["Nina"].wait_for_message(
        "general", lambda m: m.buttons and f"/{asked.id}/" in m.text, timeout=PATIENCE
    )
    await press(live, copy, "Reject", "Nina")
    await live.closed(card, "REJECTED by")


async def test_a_channel_that_cannot_be_used_is_reported_and_the_card_goes_on(live: Rig) -> None:
    ops = await live.sandbox.channel("ops")
    await live.sandbox.fault("POST", f"/channels/{ops.id}/messages", status=403, code=50013, times=2)
    asked, card = await asks(live, call("no copy"))
    await live.sees(asked.id, "I could not show this card in the approvals channel", "I lack a permission there")
    assert "is not shown in the approvals channel" in live.output
    await press(live, card, "Accept", "Nina")
    await live.closed(card, "APPROVED by")
    await live.sees(asked.id, "record: done")
