"""Who decides what, and how: votes, edits, reasons, grants, roles and rules, with the real bot over sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from discord_sandbox.modals import inputs
from discord_sandbox.seen import SeenMessage
from tests.rigs.live_bot import PATIENCE, CrashingRig, Rig
from tests.rigs.office import asks, commands_known, further, order, press, protect, shows, staffed, submit

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with staffed(tmp_path_factory.mktemp("people")) as running:
        yield running


def calls(*values: str) -> str:
    return "; ".join(f'call record {{"value": "{value}"}}' for value in values)


async def plan(live: Rig, card: SeenMessage, who: str = "Ada", **chosen: str | list[str]) -> SeenMessage:
    """Fill in the form behind "Remember…", and return the panel that says what would be covered."""
    form = await further(live, card, "Remember…", who)
    assert form.modal is not None
    values = {"decision": "accept", "what": "exact", "span": "here"} | chosen
    known = {name: value for name, value in values.items() if name in inputs(form.modal)}
    answer = await live.people[who].submit(form, known)
    assert answer.updated is not None, answer.raw
    return answer.updated


# Decisions


async def test_a_reason_for_a_reject_reaches_the_model_and_the_card(live: Rig) -> None:
    asked, card = await asks(live, calls("with a reason"))
    opened = await further(live, card, "Reject with a reason…", "Olga")
    answer = await submit(live, opened, "Olga", reason="Not before the weekend.")
    assert not answer.failed
    await live.sees(asked.id, "record: rejected", "Rejected by user Olga", "Not before the weekend.")
    await live.closed(card, f"REJECTED by {live.people['Olga'].mention}", "Reason given", "Not before the weekend.")
    assert "record with a reason" not in live.trace


async def test_each_call_of_a_batch_is_decided_by_itself(live: Rig) -> None:
    asked, card = await asks(live, calls("own 1", "own 2", "own 3"))
    assert [b.label for b in card.buttons] == [*["Accept", "Reject"] * 3, "Accept all", "Reject all", "More…"]
    first = await press(live, card, "Accept", number=0)
    assert first.updated is not None
    assert f"APPROVED by {live.people['Ada'].mention}" in first.updated.text
    assert "record own 1" not in live.trace, "a batch goes on when all of it is decided"
    second = await press(live, first.updated, "Reject", "Olga", number=0)
    assert second.updated is not None
    panel = await press(live, second.updated, "More…", "Nina")
    assert panel.reply is not None
    assert panel.reply.ephemeral
    opened = await press(live, panel.reply, "Edit…", "Nina")
    await submit(live, opened, "Nina", arguments_0="own three")
    edited = await shows(live, card, f"Edited by {live.people['Nina'].mention}", "own 3", "own three")
    await press(live, edited, "Accept", "Nina")
    await live.closed(card, "DECIDED", "APPROVED by", "REJECTED by", "own 1", "own 2", "own three")
    reply = await live.sees(asked.id, "The offline demo model reports")
    assert reply.text.count("record: done") == 2
    assert reply.text.count("record: rejected") == 1
    assert "Nina changed the arguments of this call" in reply.text
    assert sorted(line for line in live.trace if "own" in line) == ["record own 1", "record own three"]


async def test_a_held_call_is_looked_at_and_rejected_privately(live: Rig) -> None:
    asked, card = await asks(live, 'call free {"value": "mixed 1"}; call record {"value": "mixed 2"}')
    panel = await further(live, card, "1. free")
    assert panel.updated is not None
    assert panel.updated.ephemeral
    assert "mixed 1" in panel.updated.text
    assert [b.label for b in panel.updated.buttons] == ["Reject"]
    await press(live, panel.updated, "Reject")
    changed = await shows(live, card, f"Rejected by {live.people['Ada'].mention}, needing no approval: free")
    await press(live, changed, "Accept")
    await live.sees(asked.id, "recorded mixed 2")
    assert [line for line in live.trace if "mixed" in line] == ["record mixed 2"]


async def test_held_calls_end_with_the_question_that_was_rejected(live: Rig) -> None:
    asked, card = await asks(live, 'call free {"value": "apart 1"}; call record {"value": "apart 2"}')
    await press(live, card, "Reject")
    await live.sees(asked.id, "The offline demo model reports")
    await live.closed(card, "REJECTED by", "Not run, because nothing was approved: free")
    assert not [line for line in live.trace if "apart" in line]


async def test_accept_all_and_reject_all_decide_the_whole_card(live: Rig) -> None:
    asked, card = await asks(live, calls("all 1", "all 2"))
    await press(live, card, "Accept all")
    await live.sees(asked.id, "recorded all 1", "recorded all 2")
    asked, card = await asks(live, calls("none 1", "none 2"))
    await press(live, card, "Reject all")
    reply = await live.sees(asked.id, "The offline demo model reports")
    assert reply.text.count("record: rejected") == 2
    assert sorted(line for line in live.trace if " all " in line or " none " in line) == [
        "record all 1",
        "record all 2",
    ]


async def test_ten_calls_are_paged_and_every_one_is_decided(live: Rig) -> None:
    asked, page = await asks(live, calls(*(f"page {n}" for n in range(10))))
    assert "Calls 1 to 4 of 10" in page.text
    for number, accepted in enumerate((4, 4)):
        taken = await press(live, page, f"Accept these {accepted}")
        assert taken.updated is not None
        turned = await press(live, taken.updated, "▶")
        assert turned.updated is not None
        page = turned.updated
        assert f"Calls {number * 4 + 5} to" in page.text
    assert "page 8" in page.text
    assert "page 9" in page.text
    assert not [line for line in live.trace if "page" in line]
    rejected = await press(live, page, "Reject", number=0)
    assert rejected.updated is not None
    await press(live, rejected.updated, "Accept", number=0)
    reply = await live.sees(asked.id, "The offline demo model reports")
    assert reply.text.count("record: done") == 9
    assert reply.text.count("record: rejected") == 1
    assert sorted(line for line in live.trace if "page" in line) == [f"record page {n}" for n in (*range(8), 9)]


async def test_an_edit_is_validated_and_put_to_the_policy_again(live: Rig) -> None:
    rule = await protect(live, tool="record", verdict="deny", argument="value", pattern="*forbidden*", message="no")
    asked, card = await asks(live, 'call slow {"value": "edited", "seconds": 0}')
    opened = await further(live, card, "Edit…", "Olga")
    wrong = await submit(live, opened, "Olga", arguments_0="soon", arguments_1="edited")
    assert "must be a number" in wrong.text
    assert "soon" in wrong.text, "what was typed is given back"
    await press(live, card, "Reject")
    await live.sees(asked.id, "rejected")
    asked, card = await asks(live, calls("allowed"))
    opened = await further(live, card, "Edit…", "Olga")
    denied = await submit(live, opened, "Olga", arguments_0="forbidden")
    assert "not allowed" in denied.text
    await press(live, card, "Accept")
    await live.sees(asked.id, "recorded allowed")
    assert "record forbidden" not in live.trace
    await order(live, "unprotect", rule=rule)


# Grants


async def test_what_is_remembered_here_is_not_asked_again_until_it_is_revoked(live: Rig) -> None:
    asked, card = await asks(live, calls("remembered"))
    panel = await plan(live, card, "Olga")
    assert "without asking if they have exactly these arguments" in panel.text
    rule = '[[rules]]\ntool = "record"\nwhen = { value = "remembered" }\nverdict = "allow"'
    assert rule in panel.text
    await press(live, panel, "Accept and save", "Olga")
    await live.closed(card, "APPROVED by", "remembered in this conversation")
    olga = live.people["Olga"].mention
    covered = "later calls are accepted if they have exactly these arguments, in this conversation, until <t:"
    settled = await live.closed(card, f"Remembered by {olga}: {covered}", "· grant ")
    assert settled.text.count("Remembered by") == 1
    await live.sees(asked.id, "recorded remembered")
    thread = str(asked.id)
    again = await live.ask(calls("remembered"), where=thread)
    await live.until(lambda: live.trace.count("record remembered") == 2, "the second call, without a card")
    await live.ended(again)
    await live.sees(asked.id, f"-# By a remembered decision of {olga}: `record` ran.")
    other, asked_elsewhere = await asks(live, calls("remembered"))
    await press(live, asked_elsewhere, "Reject")
    await live.ended(other)
    listed = await order(live, "grants")
    assert f"accepts `record` in <#{thread}>" in listed.text
    assert rule in listed.text, "the list says the same as the form"
    assert "49 uses left" in listed.text
    ((grant,),) = live.rows("SELECT id FROM grants WHERE conversation = ?", thread)
    assert grant in listed.text
    offered = await live.people["Ada"].suggest("general", "signoff revoke", "grant", grant="")
    assert grant in [choice["value"] for choice in offered.choices]
    await order(live, "revoke", grant=grant)
    assert "No decision is remembered" in (await order(live, "grants")).text
    last, card = await asks(live, calls("remembered"), where=thread)
    await press(live, card, "Reject")
    await live.ended(last)
    assert live.trace.count("record remembered") == 2


async def test_always_takes_manage_server_and_then_covers_every_conversation(live: Rig) -> None:
    asked, card = await asks(live, calls("always"))
    form = await further(live, card, "Remember…", "Olga")
    assert form.modal is not None
    assert list(inputs(form.modal)) == ["decision"], "Olga does not manage the server"
    panel = await plan(live, card, span="always")
    assert "In every conversation of this server" in panel.text
    await press(live, panel, "Accept and save")
    await live.sees(asked.id, "recorded always")
    elsewhere = await live.ask(calls("always"), who="Nina", where="ops")
    await live.until(lambda: live.trace.count("record always") == 2, "the call in another conversation")
    await live.ended(elsewhere)
    ((grant,),) = live.rows("SELECT id FROM grants WHERE args LIKE '%always%'")
    await order(live, "revoke", grant=grant)


async def test_a_tool_with_free_arguments_is_remembered_for_an_hour(live: Rig) -> None:
    asked, card = await asks(live, 'call slow {"value": "free 1", "seconds": 0}')
    panel = await plan(live, card, what="some", same=["0"], span="hour")
    assert "if they have the same seconds; all other arguments (value) are free" in panel.text
    await press(live, panel, "Accept and save")
    await live.ended(asked)
    await live.closed(
        card, "later calls are accepted if they have the same seconds; all", "free, in this server, until"
    )
    again = await live.ask('call slow {"value": "free 2", "seconds": 0}', where="ops")
    await live.ended(again)
    assert len([line for line in live.trace if "free" in line]) >= 2
    listed = await order(live, "grants")
    assert "if they have the same seconds; all other arguments are free" in listed.text
    ((grant,),) = live.rows("SELECT id FROM grants WHERE tool = 'slow'")
    await order(live, "revoke", grant=grant)


# Who decides


async def test_whoever_asked_may_not_decide_with_four_eyes(live: Rig) -> None:
    role = await live.sandbox.role_id("Approvers")
    await protect(live, tool="record", argument="value", pattern="four eyes*", role=role, four_eyes=True)
    asked, card = await asks(live, calls("four eyes"), who="Olga")
    assert "not by the asker" in card.text
    for button in ("Accept", "Reject", "More…"):
        refused = await press(live, card, button, "Olga")
        assert "four eyes" in refused.text
        assert refused.reply is not None
        assert refused.reply.ephemeral
    stranger = await press(live, card, "Accept", "Max")
    assert "You may not decide this" in stranger.text
    await press(live, card, "Accept", "Nina")
    await live.sees(asked.id, "recorded four eyes")


async def test_a_vote_of_somebody_who_lost_the_role_is_void(live: Rig) -> None:
    role = await live.sandbox.create_role("Jury")
    for name in ("Olga", "Nina", "Ada"):
        await live.sandbox.grant(live.people[name], "Jury")
    await protect(live, tool="record", argument="value", pattern="jury*", role=role, quorum=2)
    asked, card = await asks(live, calls("jury"))
    assert "2 people have to accept" in card.text
    voted = await press(live, card, "Accept", "Olga")
    assert voted.updated is not None
    assert f"Accepted by 1 of 2: {live.people['Olga'].mention}" in voted.updated.text
    again = await press(live, voted.updated, "Accept", "Olga")
    assert "Your accept is counted: 1 of 2" in again.text
    await live.sandbox.revoke(live.people["Olga"], "Jury")
    second = await press(live, voted.updated, "Accept", "Nina")
    assert second.updated is not None
    assert f"Accepted by 1 of 2: {live.people['Nina'].mention}" in second.updated.text
    assert f"The vote of {live.people['Olga'].mention} no longer counts" in second.updated.text
    assert "record jury" not in live.trace
    await press(live, second.updated, "Accept", "Ada")
    done = await live.closed(card, "APPROVED by", live.people["Nina"].mention, live.people["Ada"].mention)
    assert live.people["Olga"].mention not in done.text
    await live.sees(asked.id, "recorded jury")
    assert live.trace.count("record jury") == 1
    assert live.rows("SELECT COUNT(*) FROM audit WHERE kind = 'vote_void'") == [(1,)]


async def test_the_first_reject_settles_whatever_the_votes(live: Rig) -> None:
    role = await live.sandbox.role_id("Approvers")
    await protect(live, tool="record", argument="value", pattern="two of*", role=role, quorum=2)
    asked, card = await asks(live, calls("two of them"))
    voted = await press(live, card, "Accept", "Olga")
    assert voted.updated is not None
    await press(live, voted.updated, "Reject", "Nina")
    await live.closed(card, f"REJECTED by {live.people['Nina'].mention}")
    await live.sees(asked.id, "rejected")
    assert "record two of them" not in live.trace


async def test_a_role_that_is_gone_means_nobody_and_the_admins_are_told(live: Rig) -> None:
    role = await live.sandbox.create_role("Doomed")
    await live.sandbox.grant(live.people["Olga"], "Doomed")
    await protect(live, tool="record", argument="value", pattern="doomed*", role=role)
    await live.sandbox.delete_role(role)
    asked = await live.ask(calls("doomed"))
    await live.sees(asked.id, "For the admins", str(role), "no longer exists", "nobody can decide")
    await live.sees(asked.id, "record: rejected", "nobody may decide this request")
    assert "record doomed" not in live.trace
    assert "nobody may decide record" in live.output


async def test_a_role_that_goes_while_its_card_is_open_means_nobody_and_the_admins_are_told(live: Rig) -> None:
    role = await live.sandbox.create_role("Fleeting")
    await protect(live, tool="record", argument="value", pattern="fleeting*", role=role)
    asked, card = await asks(live, calls("fleeting"))
    assert f"<@&{role}>" in card.text
    await live.sandbox.delete_role(role)
    await live.sees(asked.id, "For the admins", f"role {role}", "no longer exists", "nobody can decide")
    await live.closed(card, "REJECTED automatically: nobody may decide", f"The approver role no longer exists: {role}")
    await live.sees(asked.id, "record: rejected", "nobody may decide this request")
    await live.ended(asked)
    assert "record fleeting" not in live.trace
    assert live.rows("SELECT COUNT(*) FROM audit WHERE kind = 'approver_gone'") == [(1,)]


async def test_a_role_that_went_while_the_bot_was_down_is_noticed_when_it_is_back(live: CrashingRig) -> None:
    role = await live.sandbox.create_role("Passing")
    await protect(live, tool="record", argument="value", pattern="passing*", role=role)
    asked, card = await asks(live, calls("passing"))
    await live.kill()
    await live.sandbox.delete_role(role)
    await live.start()
    await live.sees(asked.id, "For the admins", f"role {role}", "no longer exists", "nobody can decide")
    await live.closed(card, "REJECTED automatically: nobody may decide")
    await live.sees(asked.id, "record: rejected", "nobody may decide this request")
    assert "record passing" not in live.trace


async def test_a_reminder_pings_exactly_the_role(live: Rig) -> None:
    role = await live.sandbox.create_role("Wardens")
    await live.sandbox.change_role(role, mentionable=True)
    await live.sandbox.grant(live.people["Nina"], "Wardens")
    options = {"timeout": "600s", "reminder": "599.5s", "ping": True}
    await protect(live, tool="record", argument="value", pattern="remind*", role=role, **options)
    asked, card = await asks(live, calls("remind me"))
    reminder = await live.sees(asked.id, "Still open: record")
    assert [(ping["roles"], ping["everyone"]) for ping in reminder.pings] == [([str(role)], False)]
    assert f"<@&{role}>" in reminder.text
    told = [m for m in await live.people["Ada"].messages(asked.id) if "Still open" in m.text]
    assert len(told) == 1
    await press(live, card, "Reject", "Nina")
    await live.sees(asked.id, "rejected")


async def test_the_card_says_why_and_marks_the_models_words(live: Rig) -> None:
    rule = await protect(live, tool="free", argument="value", pattern="why*", message="Look at the port.")
    asked, card = await asks(live, 'say it is late; call free {"value": "why not"}')
    assert f"Why: this server's rule {rule}" in card.text
    assert "Note: Look at the port." in card.text
    before, _, words = card.text.partition("Model's words")
    assert "it is late" in words
    assert "it is late" not in before
    await press(live, card, "Accept")
    await live.sees(asked.id, "free why not")
    await order(live, "unprotect", rule=rule)


# Policy


async def test_rules_count_from_the_next_call_on(live: Rig) -> None:
    asked = await live.ask('call free {"value": "policy 0"}')
    await live.sees(asked.id, "free policy 0")
    rule = await protect(live, tool="free", argument="value", pattern="policy*")
    asked, card = await asks(live, 'call free {"value": "policy 1"}')
    tried = await order(live, "test", tool="free", arguments='{"value": "policy 2"}')
    assert "**asks**" in tried.text
    assert rule in (await order(live, "policy")).text
    await order(live, "unprotect", rule=rule)
    assert "runs without asking" in (await order(live, "test", tool="free", arguments='{"value": "policy 2"}')).text
    await press(live, card, "Reject")  # the request was made before, and stays
    await live.sees(asked.id, "rejected")
    asked = await live.ask('call free {"value": "policy 2"}')
    await live.sees(asked.id, "free policy 2")
    rule = await protect(live, tool="free", verdict="deny", argument="value", pattern="policy*", message="not today")
    asked = await live.ask('call free {"value": "policy 3"}')
    await live.sees(asked.id, "free: not allowed", "not today")
    await order(live, "unprotect", rule=rule)
    assert [line for line in live.trace if "policy" in line] == ["free policy 0", "free policy 2"]
    kinds = [kind for (kind,) in live.rows("SELECT kind FROM audit WHERE subject = ? ORDER BY seq", rule)]
    assert kinds == ["rule_added", "rule_removed"]


async def test_a_rule_made_while_a_card_waits_holds_for_the_next_call_of_that_run(live: Rig) -> None:
    asked, card = await asks(live, calls("first round") + '; then call free {"value": "second round"}')
    rule = await protect(live, tool="free", argument="value", pattern="second*")
    await press(live, card, "Accept")
    later = await live.card(asked.id, after=card.id)
    assert rule in later.text
    assert "free second round" not in live.trace
    await press(live, later, "Accept")
    await live.sees(asked.id, "free second round")
    await order(live, "unprotect", rule=rule)


async def test_a_server_cannot_loosen_what_the_operator_did_not_mark(live: Rig) -> None:
    answer = await order(live, "protect", tool="record", verdict="allow", argument="value", pattern="loose*")
    assert "nothing changes" in answer.text
    asked, card = await asks(live, calls("loose"))
    await press(live, card, "Reject")
    await live.sees(asked.id, "rejected")
    assert "record loose" not in live.trace


async def test_orders_of_others_are_refused_and_change_nothing(live: Rig) -> None:
    offered = [command["name"] for command in await live.people["Max"].commands("general")]
    assert offered == ["signoff"], "everybody sees the group, because of its inbox"
    before = live.rows("SELECT COUNT(*) FROM server_rules")
    stopped = await live.people["Max"].run("general", "signoff stop", forged=True, everywhere=True)
    assert "Nothing of yours was running" in stopped.text, "everybody may stop their own runs, and no others"
    for line in ("pause", "policy", "audit"):
        answer = await live.people["Max"].run("general", f"signoff {line}", forged=True)
        assert "need the Manage Server permission" in answer.text
    answer = await live.people["Olga"].run("general", "signoff protect", forged=True, tool="*", verdict="allow")
    assert "need the Manage Server permission" in answer.text
    assert live.rows("SELECT COUNT(*) FROM server_rules") == before
    assert live.rows("SELECT COUNT(*) FROM pauses") == [(0,)]


async def test_pending_posts_the_open_cards_again(live: Rig) -> None:
    asked, card = await asks(live, calls("posted again"))
    # The card is in the channel a moment before the bot has recorded it.
    noted = "SELECT 1 FROM batches WHERE card = ?"
    await live.until(lambda: live.rows(noted, str(card.id)), "the card is noted")
    listed = await order(live, "pending")
    assert "1 open card" in listed.text
    assert "posted again" in listed.text
    again = await live.card(asked.id, after=card.id)
    old = await live.people["Ada"].see(card)
    assert old is not None
    assert not old.buttons
    await press(live, again, "Accept")
    await live.sees(asked.id, "recorded posted again")


async def test_a_file_that_changed_since_the_card_is_asked_about_again(live: Rig) -> None:
    server = await live.sandbox.guild_id()
    file = live.folder / "data/workspace" / str(server) / "notes.txt"
    asked, card = await asks(live, 'write "mine" to notes.txt')
    assert "+mine" in card.text
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("theirs\n", encoding="utf-8")
    await press(live, card, "Accept")
    again = await live.card(asked.id, after=card.id)
    assert "-theirs" in again.text
    assert file.read_text(encoding="utf-8") == "theirs\n"
    await press(live, again, "Accept")
    await live.sees(asked.id, "write_file: done")
    assert file.read_text(encoding="utf-8") == "mine"


# State that survives a crash


async def test_forms_and_votes_outlive_kill_9(live: CrashingRig) -> None:
    role = await live.sandbox.role_id("Approvers")
    await protect(live, tool="record", argument="value", pattern="vote*", role=role, quorum=2)
    edited, card_to_edit = await asks(live, calls("edit late"))
    rejected, card_to_reject = await asks(live, calls("reason late"))
    voted, card_to_vote = await asks(live, calls("vote late"))
    edit = await further(live, card_to_edit, "Edit…", "Olga")
    reason = await further(live, card_to_reject, "Reject with a reason…", "Nina")
    panel = await plan(live, card_to_edit, "Nina")
    await press(live, card_to_vote, "Accept", "Olga")

    await live.kill()
    await live.start()

    await submit(live, reason, "Nina", reason="The bot was away.")
    await live.sees(rejected.id, "Rejected by user Nina", "The bot was away.")
    await submit(live, edit, "Olga", arguments_0="edited late")
    changed = await shows(live, card_to_edit, "Edited by", "edit late", "edited late")
    outdated = await press(live, panel, "Accept and save", "Nina")
    assert "edited after" in outdated.text
    await press(live, changed, "Accept", "Nina")
    await live.sees(edited.id, "recorded edited late")
    second = await press(live, card_to_vote, "Accept", "Nina")
    assert second.updated is not None
    await live.sees(voted.id, "recorded vote late")
    mentions = [live.people[name].mention for name in ("Olga", "Nina")]
    await live.closed(card_to_vote, f"APPROVED by {' and '.join(mentions)}")
    assert sorted(line for line in live.trace if "late" in line) == ["record edited late", "record vote late"]


async def test_the_direct_conversation_of_a_listed_person_is_theirs_to_decide(live: CrashingRig) -> None:
    config = live.folder / "signoff.toml"
    before = config.read_text(encoding="utf-8")
    config.write_text(f'{before}[access]\ndm_users = ["{live.people["Max"].id}"]\n', encoding="utf-8")
    await live.kill()
    await live.start()
    max_ = live.people["Max"]
    direct = await max_.dm(live.sandbox.bot_id)
    await max_.say(direct, calls("private"))
    card = await max_.wait_for_message(direct, lambda m: m.buttons, timeout=PATIENCE)
    await press(live, await plan(live, card, "Max"), "Accept and save", "Max")
    await max_.wait_for_message(direct, lambda m: "recorded private" in m.text, timeout=PATIENCE)
    await commands_known(live)
    ((grant,),) = live.rows("SELECT id FROM grants WHERE server = 'dm'")
    assert grant in (await order(live, "grants", "Max", direct.id)).text
    assert grant not in (await order(live, "grants")).text
    assert "Revoked" in (await order(live, "revoke", "Max", direct.id, grant=grant)).text
    asked = await max_.say(direct, calls("private"))
    again = await max_.wait_for_message(direct, lambda m: m.id > asked.id and m.buttons, timeout=PATIENCE)
    await press(live, again, "Reject", "Max")


async def test_a_role_that_the_operator_removed_no_longer_decides_cards_that_were_open(live: CrashingRig) -> None:
    config = live.folder / "signoff.toml"
    before = config.read_text(encoding="utf-8")
    role = await live.sandbox.role_id("Approvers")
    rule = '\n[[rules]]\ntool = "record"\nwhen = { value = "narrow*" }\nverdict = "ask"\napprovers = %s\n'
    max_ = live.people["Max"]
    listed = f'[access]\ndm_users = ["{max_.id}"]\n' if "dm_users" not in before else ""
    try:
        await live.kill()
        config.write_text(before + listed + rule % f'["role:{role}", "manage_server"]', encoding="utf-8")
        await live.start()
        asked, card = await asks(live, calls("narrowed"))
        direct = await max_.dm(live.sandbox.bot_id)
        said = await max_.say(direct, calls("private no more"))
        private = await max_.wait_for_message(direct, lambda m: m.id > said.id and m.buttons, timeout=PATIENCE)
        await live.kill()
        without = before.replace(f'[access]\ndm_users = ["{max_.id}"]\n', "")
        config.write_text(without + rule % '["manage_server"]', encoding="utf-8")
        await live.start()
        assert "may not decide" in (await press(live, card, "Accept", "Olga")).text
        assert "does not list you" in (await press(live, private, "Accept", "Max")).text
        await press(live, card, "Accept", "Ada")
        await live.sees(asked.id, "recorded narrowed")
        assert live.trace.count("record private no more") == 0
    finally:
        await live.kill()
        config.write_text(before + listed, encoding="utf-8")
        await live.start()
    await press(live, private, "Reject", "Max")
