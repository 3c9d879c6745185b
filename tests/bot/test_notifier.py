"""How approvers are reached in Discord: who is pinged, who gets a direct message, and where a card may be copied to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from discord_sandbox import Person
from discord_sandbox.permissions import Permission
from signoff.approvals.clicks import Click
from signoff.approvals.model import Batch, CardCopy, Choice, Outcome
from signoff.bot.notifier import MOST_DIRECT, DiscordNotifier
from signoff.bot.refusals import FEWEST
from signoff.errors import CardDelayed, CardFailed, CopiesRefused, NotDelivered, Undeliverable
from signoff.turns.model import Notice
from signoff.turns.notifying import NotAllTold
from tests.rigs.bot import Rig, show
from tests.rigs.bot_answers import drawn, private
from tests.rigs.bot_fakes import make_batch, make_request, settled


@pytest.fixture
def notifier(rig: Rig) -> DiscordNotifier:
    return DiscordNotifier(rig.client, rig.front_end)


async def posted(rig: Rig, *approvers: str, **fields: Any) -> Batch:
    request = make_request({"path": "a"}, tool="erase", approvers=approvers or ("manage_server",), **fields)
    batch, _ = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    return batch


async def said(rig: Rig, notice: Notice | None, who: str = "Max") -> Any:
    assert notice is not None
    person = await rig.sandbox.person(who)
    return await person.wait_for_message(notice.channel, lambda m: str(m.id) == notice.message)


async def test_a_ping_calls_only_those_who_may_decide(rig: Rig, notifier: DiscordNotifier, ada: Person) -> None:
    role = await rig.sandbox.create_role("Wardens")
    await rig.sandbox.change_role(role, mentionable=True)
    batch = await posted(rig, f"role:{role}", f"user:{ada.id}")
    message = await said(rig, await notifier.ping(batch, ()))
    (ping,) = message.pings
    assert (ping["roles"], ping["users"], ping["everyone"]) == ([str(role)], [str(ada.id)], False)
    assert "Approval needed: erase" in message.text
    assert "Manage Server" not in message.text


async def test_manage_server_is_said_and_pings_nobody(rig: Rig, notifier: DiscordNotifier) -> None:
    message = await said(rig, await notifier.ping(await posted(rig), ()))
    assert message.pings == []
    assert "Members with Manage Server may decide. I know no role to ping for that." in message.text


async def test_a_ping_repeats_nothing_and_says_what_went_wrong(rig: Rig, notifier: DiscordNotifier) -> None:
    batch = await posted(rig)
    first = await notifier.ping(batch, ["The **channel** is closed."])
    assert await notifier.ping(batch, ["The **channel** is closed."]) == first
    assert "The **channel** is closed." in (await said(rig, first)).text


async def test_a_ping_that_is_refused_is_no_notice(rig: Rig, notifier: DiscordNotifier) -> None:
    batch = await posted(rig)
    await rig.sandbox.fault("POST", "/messages", status=403, code=50013, times=1)
    assert await notifier.ping(batch, ()) is None


async def test_what_discord_may_accept_later_is_not_taken_for_a_refusal(
    rig: Rig, notifier: DiscordNotifier, ada: Person, max_: Person
) -> None:
    batch = await posted(rig, f"user:{max_.id}", f"user:{ada.id}")
    direct = str((await max_.dm(rig.sandbox.bot_id)).id)
    await rig.sandbox.fault("POST", f"/channels/{direct}/messages", status=503, times=5)
    with pytest.raises(NotAllTold) as delayed:
        await notifier.send_directly(batch, ())
    (told,) = delayed.value.sent
    assert told.channel != direct
    for _ in range(FEWEST + 1):
        rig.client.refusals.note(403)
    with pytest.raises(NotAllTold, match="I send less"):
        await notifier.ping(batch, ())
    with pytest.raises(NotAllTold, match="I send less"):
        await notifier.send_directly(batch, ())
    with pytest.raises(NotAllTold, match="I send less"):
        await notifier.report_escalation(batch, "escalation 1")
    assert await notifier.report_escalation(batch, "escalation 1", {batch.place.channel}) == []


async def test_a_direct_message_that_is_refused_for_another_reason_does_not_blame_the_approver(
    rig: Rig, notifier: DiscordNotifier, max_: Person
) -> None:
    batch = await posted(rig, f"user:{max_.id}")
    await rig.sandbox.fault("POST", "/messages", status=400, code=50109, times=1)
    sent, problem = await notifier.send_directly(batch, ())
    assert (list(sent), problem) == (
        [],
        "I could not send a direct message to everybody: Discord refused some of them.",
    )


async def test_people_get_a_direct_message_with_a_link(rig: Rig, notifier: DiscordNotifier, max_: Person) -> None:
    batch = await posted(rig, f"user:{max_.id}")
    (notice,), problem = await notifier.send_directly(batch, ())
    message = await said(rig, notice)
    assert problem == ""
    assert f"https://discord.com/channels/{rig.server}/{batch.place.channel}/{batch.card_message}" in message.text
    assert (await notifier.send_directly(batch, {notice.channel})) == ([], "")


async def test_a_person_who_takes_no_direct_messages_is_tried_once(
    rig: Rig, notifier: DiscordNotifier, ada: Person, max_: Person
) -> None:
    await rig.sandbox.add_person("Max", accepts_dms=False)
    batch = await posted(rig, f"user:{max_.id}", f"user:{ada.id}")
    sent, problem = await notifier.send_directly(batch, ())
    assert len(sent) == 1
    assert "some approvers accept no direct messages from me" in problem
    tried = [c for c in await rig.sandbox.rest_calls("POST", "/messages") if c["status"] == 403]
    assert len(tried) == 1


async def test_members_of_a_role_are_written_to_as_far_as_they_are_known(
    rig: Rig, notifier: DiscordNotifier, max_: Person
) -> None:
    role = await rig.sandbox.create_role("Wardens")
    await rig.sandbox.grant(max_, "Wardens")
    batch = await posted(rig, f"role:{role}")
    sent, problem = await notifier.send_directly(batch, ())
    assert (list(sent), "I know no member of some approver roles" in problem) == ([], True)
    guild = rig.client.get_guild(int(rig.server))
    assert guild is not None
    guild._add_member(await guild.fetch_member(max_.id))
    sent, problem = await notifier.send_directly(batch, ())
    assert (len(sent), problem) == (1, "")


async def test_at_most_ten_people_get_one(rig: Rig, notifier: DiscordNotifier) -> None:
    ids: list[str] = []
    for number in range(MOST_DIRECT + 2):
        person = await rig.sandbox.add_person(f"Approver {number}")
        await rig.sandbox.join(person)
        ids.append(f"user:{person.id}")
    batch = await posted(rig, *ids)
    sent, problem = await notifier.send_directly(batch, ())
    assert len(sent) == MOST_DIRECT
    assert "more than 10 people may decide" in problem


async def test_with_four_eyes_the_asker_gets_none(rig: Rig, notifier: DiscordNotifier, max_: Person) -> None:
    batch = await posted(rig, f"user:{max_.id}", four_eyes=True)
    assert (await notifier.send_directly(batch, ()))[0] == []


async def test_a_channel_of_another_server_is_refused(rig: Rig, notifier: DiscordNotifier) -> None:
    bot = await rig.sandbox.person("Signoff")
    await rig.sandbox.join(bot, "Other Place")
    lobby = await rig.sandbox.channel("lobby")
    with pytest.raises(CardFailed, match="it belongs to another server"):
        await notifier.post_copy(await posted(rig), str(lobby.id))


async def test_a_channel_that_is_missing_closed_or_failing_is_told_apart(rig: Rig, notifier: DiscordNotifier) -> None:
    batch = await posted(rig)
    ops = await rig.sandbox.channel("ops")
    with pytest.raises(CardFailed, match="no longer exists") as missing:
        await notifier.post_copy(batch, "999999999999999999")
    assert not isinstance(missing.value, CardDelayed)
    await rig.sandbox.overwrite(ops, "Signoff", deny=Permission.SEND_MESSAGES)
    with pytest.raises(CardFailed, match="I lack a permission there"):
        await notifier.post_copy(batch, str(ops.id))
    await rig.sandbox.fault("GET", f"/channels/{ops.id}", status=503, times=20)
    with pytest.raises(CardDelayed):
        await notifier.post_copy(batch, str(ops.id))


async def test_a_copy_links_to_the_conversation_and_its_buttons_work(
    rig: Rig, notifier: DiscordNotifier, ada: Person
) -> None:
    ops = str((await rig.sandbox.channel("ops")).id)
    batch = replace(await posted(rig), notify=(f"channel:{ops}",))
    message = await notifier.post_copy(batch, ops)
    assert await notifier.post_copy(batch, ops) == message
    copied = rig.desk.open(replace(batch, copies=(CardCopy(ops, message),)))
    copy = await ada.wait_for_message(ops, lambda m: str(m.id) == message)
    assert f"/{batch.place.channel}/{batch.card_message}" in copy.text
    assert copy.text.count(batch.place.channel) == 1, "the conversation is named once"
    max_ = await rig.sandbox.person("Max")
    assert "You may not decide this" in private(await max_.click(copy, "Accept"))
    closed = drawn(await ada.click(copy, "Accept"))
    assert f"APPROVED by <@{ada.id}>" in closed.text
    assert f"/{batch.place.channel}/{batch.card_message}" in closed.text
    card = await ada.wait_for_message(batch.place.channel, lambda m: str(m.id) == batch.card_message)
    card = await ada.wait_for_change(card, lambda m: not m.buttons)
    assert f"APPROVED by <@{ada.id}>" in card.text
    assert "From https://" not in card.text
    assert rig.desk.final == [copied.id]


async def test_a_card_is_final_only_when_all_its_messages_show_the_end(
    rig: Rig, notifier: DiscordNotifier, ada: Person
) -> None:
    ops = str((await rig.sandbox.channel("ops")).id)
    batch = replace(await posted(rig), notify=(f"channel:{ops}",))
    message = await notifier.post_copy(batch, ops)
    rig.desk.open(replace(batch, copies=(CardCopy(ops, message),)))
    await rig.sandbox.fault("PATCH", f"/channels/{ops}/messages", status=403, code=50013, times=1)
    card = await ada.wait_for_message(batch.place.channel, lambda m: str(m.id) == batch.card_message)
    await ada.click(card, "Reject")
    copy = await ada.wait_for_message(ops, lambda m: str(m.id) == message)
    assert copy.buttons
    assert rig.desk.final == []
    await rig.front_end.refresh_card(rig.desk.batches[batch.id])
    assert "REJECTED by" in (await ada.wait_for_change(copy, lambda m: not m.buttons)).text


async def test_a_click_does_not_make_a_card_final_whose_copy_it_did_not_draw(
    rig: Rig, ada: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker()))
    decide = rig.desk.decide

    async def then_copied(click: Click) -> Outcome:
        outcome = await decide(click)
        rig.desk.memory.add_copy(batch.id, CardCopy("9", "1"))
        return outcome

    monkeypatch.setattr(rig.desk, "decide", then_copied)
    assert "REJECTED by" in drawn(await ada.click(card, "Reject")).text
    assert rig.desk.batches[batch.id].copies
    assert rig.desk.final == []


async def test_a_copy_that_may_not_be_changed_does_not_count_as_the_cards_own_failure(
    rig: Rig, notifier: DiscordNotifier
) -> None:
    ops = str((await rig.sandbox.channel("ops")).id)
    batch = replace(await posted(rig), notify=(f"channel:{ops}",))
    copy = CardCopy(ops, await notifier.post_copy(batch, ops))
    batch = replace(batch, copies=(copy,))
    await rig.sandbox.fault("PATCH", f"/messages/{copy.message}", status=403, code=50001, times=3)
    with pytest.raises(CopiesRefused, match="I lack a permission there") as refused:
        await rig.front_end.refresh_card(batch)
    assert refused.value.copies == [(copy.channel, copy.message)]
    own = f"/messages/{batch.card_message}"
    await rig.sandbox.fault("PATCH", own, status=400, code=50109, times=1)
    with pytest.raises(NotDelivered) as passing:
        await rig.front_end.refresh_card(batch)
    assert type(passing.value) is NotDelivered
    await rig.sandbox.fault("PATCH", own, status=403, code=50001, times=1)
    with pytest.raises(Undeliverable):
        await rig.front_end.refresh_card(batch)


async def test_another_page_is_turned_only_where_it_was_pressed(
    rig: Rig, notifier: DiscordNotifier, ada: Person
) -> None:
    ops = str((await rig.sandbox.channel("ops")).id)
    requests = [make_request({"path": f"file {number}"}) for number in range(5)]
    batch = make_batch(await rig.place(), await rig.asker(), *requests, notify=(f"channel:{ops}",))
    batch, card = await show(rig, batch)
    message = await notifier.post_copy(batch, ops)
    rig.desk.open(replace(batch, copies=(CardCopy(ops, message),)))
    copy = await ada.wait_for_message(ops, lambda m: str(m.id) == message)
    assert "file 4" in drawn(await ada.click(copy, "▶")).text
    unturned = await ada.see(card)
    assert unturned is not None
    assert "file 4" not in unturned.text


async def test_turning_a_page_does_not_make_a_settled_card_final(
    rig: Rig, notifier: DiscordNotifier, ada: Person
) -> None:
    """The copy does not show the end yet, so the driver still has to draw it."""
    ops = str((await rig.sandbox.channel("ops")).id)
    requests = [make_request({"path": f"file {number}"}) for number in range(5)]
    batch = make_batch(await rig.place(), await rig.asker(), *requests, notify=(f"channel:{ops}",))
    batch, card = await show(rig, batch)
    copy = CardCopy(ops, await notifier.post_copy(batch, ops))
    rig.desk.open(replace(settled(batch, Choice.REJECT, await rig.asker("Ada")), copies=(copy,)))
    assert "file 4" in drawn(await ada.click(card, "▶")).text
    assert rig.desk.final == []


async def test_a_settled_cards_messages_are_deleted_or_become_one_line(
    rig: Rig, notifier: DiscordNotifier, ada: Person, max_: Person
) -> None:
    batch = await posted(rig, f"user:{max_.id}")
    ping, (direct,) = await notifier.ping(batch, ()), (await notifier.send_directly(batch, ()))[0]
    assert ping is not None
    seen, line = await said(rig, ping), await said(rig, direct)
    ended = settled(batch, Choice.REJECT, await rig.asker("Ada"))
    for notice in (ping, direct):
        await notifier.remove(notice, ended)
        await notifier.remove(ping, ended)  # it is gone already, and that is fine
    assert await max_.see(seen) is None
    changed = await max_.wait_for_change(line, lambda m: "No longer open: erase" in m.text)
    assert f"REJECTED by <@{ada.id}>" in changed.text


async def test_an_escalation_calls_the_new_approvers_below_the_card_and_its_copies(
    rig: Rig, notifier: DiscordNotifier, ada: Person, max_: Person
) -> None:
    ops = str((await rig.sandbox.channel("ops")).id)
    batch = await posted(rig, f"user:{ada.id}", escalate_to=(f"user:{max_.id}",))
    batch = replace(batch, notify=(f"channel:{ops}",))
    batch = replace(batch, copies=(CardCopy(ops, await notifier.post_copy(batch, ops)),))
    sent = await notifier.report_escalation(batch, "escalation 1")
    assert [notice.channel for notice in sent] == [batch.place.channel, ops]
    for notice in sent:
        message = await said(rig, notice)
        assert [ping["users"] for ping in message.pings] == [[str(max_.id)]]
        assert "Escalated, because nobody has decided: erase" in message.text


async def test_a_copy_that_was_not_noted_is_found_by_its_buttons(rig: Rig, notifier: DiscordNotifier) -> None:
    batch = make_batch(await rig.place(), await rig.asker(), card_message="5")
    ops = (await rig.place("ops")).channel
    assert await notifier.find_copy(batch, ops) is None
    copy = await notifier.post_copy(batch, ops)
    await notifier.post_copy(make_batch(await rig.place(), await rig.asker(), card_message="6"), ops)
    assert await notifier.find_copy(batch, ops) == copy
    await rig.sandbox.fault("GET", f"/channels/{ops}/messages", status=403, code=50001)
    assert await notifier.find_copy(batch, ops) is None
    await rig.sandbox.fault("GET", f"/channels/{ops}/messages", status=503, times=5)
    with pytest.raises(NotDelivered):
        await notifier.find_copy(batch, ops)
