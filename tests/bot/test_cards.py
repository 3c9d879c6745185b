"""Cards in Discord: posted once, kept within limits, refreshed, deleted."""

from __future__ import annotations

import pytest

from discord_sandbox import Person
from discord_sandbox.permissions import Permission
from signoff.approvals.model import Place, RequestState
from signoff.bot import front_end
from signoff.errors import CardFailed
from tests.rigs.bot import Rig, show, until
from tests.rigs.bot_fakes import make_batch, make_request, settled


async def test_a_card_says_who_asked_who_may_decide_and_until_when(rig: Rig) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    assert "Tool Approval Required" in seen.text
    assert f"<@{batch.asker.id}>" in seen.text
    assert "may decide: Manage Server" in seen.text
    assert f"<t:{int(batch.deadline)}:R>" in seen.text
    assert "d1d1d1d1d1d1" in seen.text
    assert [button.label for button in seen.buttons] == ["Accept", "Reject", "More…"]


async def test_no_mention_in_arguments_ever_pings(rig: Rig, ada: Person) -> None:
    """Attack 3: when the card is sent, when the click edits it, and on a plain edit."""
    role = await rig.sandbox.role_id("Approvers")
    hostile = {"text": f"@everyone @here <@{ada.id}> <@&{role}>", f"<@{ada.id}>": "@everyone"}
    request = make_request(hostile, metadata={"summary": "@everyone look"})
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker(), request, model_text=f"<@{ada.id}>"))
    await rig.front_end.refresh_card(batch)
    await ada.click(seen, "Accept")
    await rig.front_end.refresh_card(rig.desk.batches[batch.id])
    assert await rig.sandbox.pings() == []
    for call in await rig.sandbox.rest_calls("", r"/messages|/callback"):
        body = call["body"].get("data", call["body"])
        assert body["allowed_mentions"].get("parse") == [], call


async def test_twenty_thousand_characters_are_attached_whole(rig: Rig, ada: Person) -> None:
    """Attacks 7 and 8."""
    text = "harmless\n" * 2000 + "rm -rf / # the tail"
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker(), make_request({"script": text})))
    (file,) = seen.files
    assert b"the tail" in await rig.sandbox.fetch(file["url"])
    assert [button.label for button in seen.buttons] == ["Accept", "Reject", "More…"]
    answer = await ada.click(seen, "Accept")
    assert answer.updated is not None
    (kept,) = answer.updated.files
    assert b"the tail" in await rig.sandbox.fetch(kept["url"])
    await rig.front_end.refresh_card(rig.desk.batches[batch.id])
    now = await ada.see(seen)
    assert now is not None
    (again,) = now.files
    assert b"the tail" in await rig.sandbox.fetch(again["url"])


async def test_without_permission_to_attach_accept_is_not_offered(rig: Rig) -> None:
    await rig.sandbox.overwrite("general", "Signoff", deny=int(Permission.ATTACH_FILES))
    request = make_request({"script": "x\n" * 9000})
    _, seen = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    assert seen.files == []
    assert [button.label for button in seen.buttons] == ["Reject", "More…"]


async def test_posting_a_card_twice_shows_it_once(rig: Rig, max_: Person) -> None:
    batch = make_batch(await rig.place(), await rig.asker())
    first, second = await rig.front_end.post_card(batch), await rig.front_end.post_card(batch)
    assert first == second
    assert len([m for m in await max_.messages("general") if m.buttons]) == 1


async def test_a_card_that_cannot_be_posted_says_why(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_end, "CARD_DELAYS", (0.01, 0.01, 0.01))
    asker = await rig.asker()
    await rig.sandbox.overwrite("ops", "Signoff", deny=int(Permission.SEND_MESSAGES))
    with pytest.raises(CardFailed, match="lack a permission"):
        await rig.front_end.post_card(make_batch(await rig.place("ops"), asker))
    gone = Place(rig.server, "123456789012345678", "123456789012345678")
    with pytest.raises(CardFailed, match="no longer exists"):
        await rig.front_end.post_card(make_batch(gone, asker))
    await rig.sandbox.fault("POST", "/messages", status=503, times=5)
    with pytest.raises(CardFailed, match="503"):
        await rig.front_end.post_card(make_batch(await rig.place(), asker))


async def test_the_timeout_is_shown_by_a_plain_edit(rig: Rig, max_: Person) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    await rig.front_end.refresh_card(settled(batch, None, None))
    changed = await max_.see(seen)
    assert changed is not None
    assert "TIMEOUT - Request expired" in changed.text
    assert changed.buttons == []


async def test_a_card_in_an_archived_thread_is_still_settled(rig: Rig, max_: Person) -> None:
    thread = await max_.open_thread("general", "work", await max_.say("general", "hi"))
    place = Place(rig.server, str(thread.id), str(thread.id))
    batch, seen = await show(rig, make_batch(place, await rig.asker()))
    await rig.sandbox.archive(thread)
    await rig.front_end.refresh_card(settled(batch, None, None))
    changed = await max_.see(seen)
    assert changed is not None
    assert "TIMEOUT" in changed.text


async def test_refreshing_a_deleted_card_does_nothing(rig: Rig, ada: Person) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    await rig.sandbox.change_role("Admins", permissions=0xFFFFFFFF)
    await ada.delete(seen)
    await rig.front_end.refresh_card(settled(batch, None, None))


async def test_a_deleted_card_is_cancelled_and_that_is_said(rig: Rig, ada: Person) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    await ada.delete(seen)
    said = await ada.wait_for_message("general", lambda m: "cancelled" in m.text)
    assert said.text == "The approval card was deleted, so its open requests were cancelled."
    assert rig.desk.batches[batch.id].settled
    assert (str(seen.id), "the card was deleted") in rig.desk.lost


async def test_a_call_accepted_before_the_card_was_deleted_is_said_to_go_on(rig: Rig, ada: Person) -> None:
    first, second = make_request({"path": "a.txt"}), make_request({"path": "b.txt"})
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker(), first, second))
    await ada.click(seen, f"signoff:accept:{first.id}:0:0")
    await ada.delete(seen)
    said = await ada.wait_for_message("general", lambda m: "cancelled" in m.text)
    assert [r.state for r in rig.desk.batches[batch.id].requests] == [RequestState.APPROVED, RequestState.CANCELLED]
    assert said.text.endswith("its open requests were cancelled. Calls that were already accepted still run.")


async def test_cards_deleted_in_bulk_are_cancelled(rig: Rig) -> None:
    batch, seen = await show(rig, make_batch(await rig.place(), await rig.asker()))
    data = {"ids": [str(seen.id), "1"], "channel_id": batch.place.channel, "guild_id": rig.server}
    await rig.sandbox.inject("MESSAGE_DELETE_BULK", data, int(rig.server))
    await until(lambda: rig.desk.batches[batch.id].settled)


async def test_a_deleted_thread_takes_its_card_with_it(rig: Rig, max_: Person) -> None:
    said = await max_.say("general", "hi")
    thread = await max_.open_thread("general", "work", said)
    parent = (await rig.place()).channel
    place = Place(rig.server, str(thread.id), str(thread.id))
    batch, _ = await show(rig, make_batch(place, await rig.asker(), turn=f"{parent}-{said.id}"))
    data = {"id": str(thread.id), "guild_id": rig.server, "parent_id": parent, "type": 11}
    await rig.sandbox.inject("THREAD_DELETE", data, int(rig.server))
    told = await max_.wait_for_message("general", lambda m: "cancelled" in m.text)
    assert "thread" in told.text
    assert rig.desk.batches[batch.id].settled


async def test_a_deleted_channel_is_told_to_the_asker(rig: Rig, max_: Person) -> None:
    batch, _ = await show(rig, make_batch(await rig.place("ops"), await rig.asker()))
    data = {"id": batch.place.channel, "guild_id": rig.server, "type": 0, "name": "ops", "position": 1}
    await rig.sandbox.inject("CHANNEL_DELETE", data, int(rig.server))
    direct = await max_.dm(rig.sandbox.bot_id)
    told = await max_.wait_for_message(direct, lambda m: "cancelled" in m.text)
    assert "channel" in told.text
    assert rig.desk.batches[batch.id].settled
