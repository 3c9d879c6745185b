"""People and roles as they are now, reminders for exactly these people, and cards posted again."""

from __future__ import annotations

from dataclasses import replace

import discord
import pytest

from discord_sandbox import Person
from signoff.approvals.model import RequestState
from signoff.bot.directory import DiscordDirectory
from signoff.bot.people import pings
from tests.rigs.bot import Rig, show
from tests.rigs.bot_answers import drawn, private
from tests.rigs.bot_fakes import make_batch, make_request


async def test_a_person_is_seen_with_the_roles_and_rights_of_now(rig: Rig, ada: Person) -> None:
    directory = DiscordDirectory(rig.client)
    olga, role = await rig.sandbox.person("Olga"), await rig.sandbox.role_id("Approvers")
    seen = await directory.person(rig.server, str(olga.id))
    assert seen is not None
    assert (seen.id, seen.name, seen.server) == (str(olga.id), "Olga", rig.server)
    assert (seen.roles, seen.manages_server, seen.is_bot) == (frozenset({str(role)}), False, False)
    await rig.sandbox.revoke(olga, role)
    await rig.sandbox.grant(olga, "Admins")
    again = await directory.person(rig.server, str(olga.id))
    assert again is not None
    assert again.manages_server
    assert str(role) not in again.roles
    owner = await directory.person(rig.server, str(ada.id))
    assert owner is not None
    assert owner.manages_server


async def test_who_left_is_nobody_and_a_failure_is_a_failure(rig: Rig) -> None:
    directory = DiscordDirectory(rig.client)
    olga = await rig.sandbox.person("Olga")
    await rig.sandbox.leave(olga)
    assert await directory.person(rig.server, str(olga.id)) is None
    assert await directory.person(rig.server, "not a number") is None
    await rig.sandbox.fault("GET", "/members/", status=403, code=50001, times=1)
    with pytest.raises(discord.Forbidden):
        await directory.person(rig.server, str((await rig.sandbox.person("Ada")).id))


async def test_roles_and_people_that_are_gone_are_found(rig: Rig, ada: Person) -> None:
    """Attack 20."""
    directory = DiscordDirectory(rig.client)
    olga = await rig.sandbox.person("Olga")
    kept, gone = await rig.sandbox.role_id("Approvers"), await rig.sandbox.create_role("Old")
    specs = [
        *("manage_server", "asker", f"role:{kept}", f"user:{ada.id}"),
        *(f"role:{gone}", f"user:{olga.id}", f"role:{rig.server}", "role:x", "nonsense"),
    ]
    await rig.sandbox.delete_role(gone)
    await rig.sandbox.leave(olga)
    await rig.sandbox.wait_for("GUILD_ROLE_DELETE")
    found = await directory.missing(rig.server, specs)
    assert list(found) == specs[4:]


async def test_roles_are_fetched_where_the_gateway_has_not_told_them(idle: Rig) -> None:
    async with idle.running():
        kept = await idle.sandbox.role_id("Approvers")
        idle.client._connection._guilds.clear()  # pyright: ignore[reportPrivateUsage]
        directory = DiscordDirectory(idle.client)
        assert list(await directory.missing(idle.server, [f"role:{kept}", "role:1"])) == ["role:1"]
        olga = await directory.person(idle.server, str((await idle.sandbox.person("Olga")).id))
        assert olga is not None
        assert olga.roles == {str(kept)}


async def test_a_reminder_pings_exactly_those_who_may_decide(rig: Rig, max_: Person) -> None:
    role, olga = await rig.sandbox.create_role("Duty"), await rig.sandbox.person("Olga")
    nina = await rig.sandbox.person("Nina")
    await rig.sandbox.change_role(role, mentionable=True)
    await rig.sandbox.grant(nina, role)
    requests = [
        make_request({"n": "1"}, approvers=(f"role:{role}&manage_server", "manage_server")),
        make_request({"n": "2"}, approvers=(f"user:{olga.id}", "asker"), four_eyes=True, tool="@everyone"),
        make_request({"n": "3"}, approvers=(f"user:{rig.sandbox.bot_id}",), state=RequestState.REJECTED),
    ]
    batch, card = await show(rig, make_batch(await rig.place(), await rig.asker(), *requests, ping=True))
    await rig.front_end.remind(batch)
    await rig.front_end.remind(batch)
    said = [m for m in await max_.messages("general") if "Still open" in m.text]
    assert len(said) == 1, "once"
    assert f"<t:{int(batch.deadline)}:R>" in said[0].text
    assert said[0].raw["message_reference"]["message_id"] == str(card.id)
    (ping,) = said[0].pings
    assert sorted(ping["users"]) == sorted([str(olga.id), str(nina.id)]), "nina by her role"
    assert (ping["roles"], ping["everyone"]) == ([str(role)], False)


async def test_a_reminder_pings_nobody_unless_the_rule_says_so(rig: Rig, max_: Person) -> None:
    role = await rig.sandbox.role_id("Approvers")
    await rig.sandbox.change_role(role, mentionable=True)
    request = make_request({"n": "1"}, approvers=(f"role:{role}", "asker"))
    batch, _ = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    await rig.front_end.remind(batch)
    said = await max_.wait_for_message("general", lambda m: "Still open" in m.text)
    assert said.pings == []
    assert await rig.sandbox.pings() == []


async def test_those_who_are_gone_are_not_called(rig: Rig) -> None:
    request = make_request({"n": "1"}, approvers=("role:7", "user:8", "role:x"), missing=("role:7",))
    batch = make_batch(await rig.place(), await rig.asker(), request)
    assert [one.id for one in pings(batch)] == ["8"]


async def test_a_card_is_posted_once_more_and_the_old_one_is_empty(rig: Rig, ada: Person) -> None:
    request = make_request({"script": "x\n" * 9000})
    batch, old = await show(rig, make_batch(await rig.place(), await rig.asker(), request))
    posted = await rig.front_end.repost_card(batch)
    assert posted == await rig.front_end.repost_card(batch), "a repetition after a crash posts nothing new"
    before = await ada.see(old)
    assert before is not None
    assert before.buttons, "should it end here, the old one still counts"
    rig.desk.open(replace(batch, card_message=posted))
    await rig.front_end.retire_card(batch)
    left = await ada.see(old)
    assert left is not None
    assert left.text == "This card was posted again below."
    assert (left.buttons, left.files) == ([], [])
    late = await ada.click(old, f"signoff:accept:{batch.id}:0:0", forged=True)
    assert private(late).startswith("Unknown request")
    fresh = await ada.wait_for_message("general", lambda m: str(m.id) == posted)
    assert fresh.files
    assert "APPROVED" in drawn(await ada.click(fresh, "Accept")).text
