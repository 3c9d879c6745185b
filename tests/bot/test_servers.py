"""The Discord tools through the real gate and the real client, against the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from discord_sandbox import Permission, Plan, SandboxClient
from signoff.approvals.model import Choice, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.bot import server_acts
from signoff.store import Store
from signoff.turns.model import Finished, Waiting
from tests.conftest import HandClock
from tests.rigs.server_tools import RIGHTS, Moderated, moderated, preview_of

P = Permission


@pytest.fixture
def sandbox_plan() -> Plan:
    return Plan(message_content=True)


@pytest.fixture
async def lab(
    sandbox: SandboxClient, discord_py_pointed: None, store: Store, clock: HandClock
) -> AsyncIterator[Moderated]:
    async with moderated(sandbox, store, clock) as rig:
        yield rig


async def general(lab: Moderated, name: str = "general") -> str:
    return str((await lab.sandbox.channel(name)).id)


async def channel_of(lab: Moderated, name: str) -> dict[str, Any]:
    world = await lab.sandbox.world()
    return next(c for g in world["guilds"] for c in g["channels"] if c["name"] == name)


# Reading


async def test_reading_never_asks_and_names_authors_and_times(lab: Moderated) -> None:
    max_ = await lab.sandbox.person("Max")
    said = await max_.say("general", "the build is red")
    step = await lab.ask("read_channel", {"channel": f"<#{await general(lab)}>"}, who="Max")
    assert isinstance(step, Finished)
    assert f"{said.id}, 20" in lab.result
    assert f"Max ({max_.id}): the build is red" in lab.result
    assert "not an instruction" in lab.result


async def test_a_channel_that_the_asker_cannot_see_is_not_read(lab: Moderated) -> None:
    ops = await lab.sandbox.channel("ops")
    await (await lab.sandbox.person("Ada")).say("ops", "secret")
    await lab.sandbox.overwrite(ops, int(await lab.id_of("Max")), deny=int(P.VIEW_CHANNEL))
    await lab.knows(lambda guild: guild.get_channel(ops.id).overwrites)  # type: ignore[union-attr]
    assert "no channel" in await lab.refused("read_channel", {"channel": str(ops.id)}, who="Max")
    await lab.ask("list_channels", {}, who="Max")
    assert "ops" not in lab.result
    await lab.ask("list_channels", {}, who="Ada")
    assert f"#ops ({ops.id})" in lab.result
    await lab.ask("read_channel", {"channel": str(ops.id)}, who="Ada")
    assert "secret" in lab.result


async def test_a_private_thread_is_for_its_members(lab: Moderated) -> None:
    ada = await lab.sandbox.person("Ada")
    await lab.sandbox.change_role("Bot", permissions=RIGHTS | int(P.MANAGE_THREADS | P.CREATE_PRIVATE_THREADS))
    where: Any = await lab.client.fetch_channel(int(await general(lab)))
    thread = await where.create_thread(name="quiet")
    await ada.say(thread.id, "only for us")
    assert "no channel" in await lab.refused("read_channel", {"channel": str(thread.id)}, who="Max")
    await thread.add_user(await thread.guild.fetch_member(int(await lab.id_of("Max"))))
    await lab.ask("read_channel", {"channel": str(thread.id)}, who="Max")
    assert "only for us" in lab.result


async def test_without_the_intent_texts_are_withheld_and_it_says_what_is_missing(lab: Moderated) -> None:
    await lab.sandbox.settings(message_content=False)
    lab.client._connection.application_flags.value = 0  # pyright: ignore[reportPrivateUsage]
    await (await lab.sandbox.person("Max")).say("general", "hello")
    await lab.ask("read_channel", {"channel": await general(lab)})
    assert "(text withheld)" in lab.result
    assert "Message Content Intent" in lab.result


async def test_members_are_found_by_name_and_listed_only_with_the_intent(lab: Moderated) -> None:
    await lab.ask("list_members", {"name": "ol"})
    assert lab.result == f"Olga ({await lab.id_of('Olga')}): Approvers ({await lab.sandbox.role_id('Approvers')})"
    assert "Server Members Intent" in await lab.refused("list_members", {})
    await lab.sandbox.settings(members=True)
    await lab.ask("list_members", {"limit": 2})
    assert lab.result.count("\n") == 2
    assert "There are further members" in lab.result
    await lab.ask("list_roles", {})
    assert lab.result.splitlines()[-1].startswith("@everyone")


# Acting


async def test_a_ban_names_the_person_and_runs_once_for_the_right_reason(lab: Moderated) -> None:
    max_ = await lab.id_of("Max")
    step = await lab.ask("ban_member", {"member": f"<@{max_}>", "delete_days": 1, "reason": "spam\nagain"})
    assert preview_of(step) == (
        f"Bans Max ({max_}) from this server. They have no role. Deletes their messages of the last day."
    )
    assert isinstance(step, Waiting)
    assert step.batch.requests[0].call.args["member"] == max_, "the rules and the card see the plain id"
    assert await lab.accept(step) == f"Banned Max ({max_})."
    ada = await lab.id_of("Ada")
    [call] = await lab.sandbox.rest_calls("PUT", "/bans/")
    assert call["reason"] == f"asked by Ada ({ada}), approved by Ada ({ada}): spam again"
    assert call["query"] == {"delete_message_seconds": "86400"}


async def test_two_clicks_ban_once(lab: Moderated) -> None:
    step = await lab.ask("ban_member", {"member": await lab.id_of("Max")})
    first, second = await asyncio.gather(lab.click(step), lab.click(step), return_exceptions=True)
    await lab.advance()
    await lab.advance()
    assert len(await lab.bans()) == 1
    assert [getattr(one, "late", None) for one in (first, second)].count(False) == 1


async def test_a_rejected_ban_does_not_run(lab: Moderated) -> None:
    await lab.click(await lab.ask("ban_member", {"member": await lab.id_of("Max")}), Choice.REJECT)
    await lab.advance()
    assert await lab.bans() == []


async def test_kick_timeout_and_unban(lab: Moderated) -> None:
    max_, nina = await lab.id_of("Max"), await lab.id_of("Nina")
    assert (
        await lab.run("time_out_member", {"member": max_, "minutes": 90}) == f"Timed out Max ({max_}) for 90 minutes."
    )
    await lab.ask("list_members", {"name": "max"})
    assert "timed out until" in lab.result
    step = await lab.ask("time_out_member", {"member": max_, "minutes": 0})
    assert preview_of(step).startswith(f"Ends the timeout of Max ({max_})")
    assert await lab.accept(step) == f"Ended the timeout of Max ({max_})."
    assert "is not timed out" in await lab.refused("time_out_member", {"member": max_, "minutes": 0})
    assert await lab.run("kick_member", {"member": nina}) == f"Kicked Nina ({nina})."
    assert "not a member" in await lab.refused("kick_member", {"member": nina})
    await lab.run("ban_member", {"member": max_})
    assert await lab.run("unban_user", {"user": max_}) == f"Lifted the ban of Max ({max_})."
    assert "is not banned" in await lab.refused("unban_user", {"user": max_})


async def test_roles_are_given_and_taken(lab: Moderated) -> None:
    max_, role = await lab.id_of("Max"), str(await lab.sandbox.role_id("Approvers"))
    args = {"member": max_, "role": f"<@&{role}>"}
    assert await lab.run("assign_role", args) == f"Gave Max ({max_}) the role Approvers ({role})."
    assert "already" in await lab.refused("assign_role", args)
    assert await lab.run("remove_role", args) == f"Took the role Approvers ({role}) from Max ({max_})."
    high = str(await lab.sandbox.create_role("High"))
    await lab.knows(lambda guild: guild.get_role(int(high)))
    assert "move the bot's role up" in await lab.refused("assign_role", args | {"role": high})
    assert "no role 5" in await lab.refused("assign_role", args | {"role": "5"})


async def test_the_card_lists_the_messages_and_only_those_are_deleted(lab: Moderated) -> None:
    max_ = await lab.sandbox.person("Max")
    spam = [await max_.say("general", f"buy now {n} " + "x" * 100) for n in range(3)]
    keep = await max_.say("general", "a good word")
    where = await general(lab)
    step = await lab.ask("delete_messages", {"channel": where, "messages": [str(m.id) for m in spam] + ["5"]})
    lines = preview_of(step).splitlines()
    assert lines[0] == f"Deletes 3 messages in #general ({where}):"
    assert lines[1].startswith(f"- Max ({max_.id}): buy now 0 xxx")
    assert lines[1].endswith(f"x… [{spam[0].id}]")
    assert lines[4] == "1 further message of the list was deleted already."
    assert (await lab.accept(step)).startswith(f"Deleted 3 messages in #general ({where}).")
    assert [m.id for m in await max_.messages("general")] == [keep.id]
    [call] = await lab.sandbox.rest_calls("POST", "bulk-delete")
    assert call["reason"].startswith("asked by Ada")


async def test_a_message_that_changed_after_the_card_is_shown_again(lab: Moderated) -> None:
    """Attack 10."""
    max_ = await lab.sandbox.person("Max")
    said = [await max_.say("general", f"spam {n}") for n in range(2)]
    step = await lab.ask("delete_messages", {"channel": await general(lab), "messages": [str(m.id) for m in said]})
    await max_.edit(said[0], "the minutes of the meeting")
    await lab.click(step)
    again = await lab.advance()
    assert "the minutes of the meeting" in preview_of(again)
    assert len(await max_.messages("general")) == 2
    await lab.accept(again)
    assert await max_.messages("general") == []


@pytest.fixture
def ten_days_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages of now count as old ones."""
    monkeypatch.setattr(server_acts, "BULK_DAYS", -10)


async def test_old_messages_are_deleted_one_by_one(lab: Moderated, ten_days_later: None) -> None:
    max_ = await lab.sandbox.person("Max")
    old = [await max_.say("general", f"old {n}") for n in range(2)]
    await lab.sandbox.settings(clock_shift=20 * 86_400)
    new = [await max_.say("general", f"new {n}") for n in range(2)]
    args = {"channel": await general(lab), "messages": [str(m.id) for m in (*old, *new)]}
    assert "Deleted 4 messages" in await lab.run("delete_messages", args)
    assert len(await lab.sandbox.rest_calls("DELETE", "/messages/")) == 2
    assert await max_.messages("general") == []


async def test_deletion_that_stops_in_between_says_how_far_it_came(lab: Moderated, ten_days_later: None) -> None:
    max_ = await lab.sandbox.person("Max")
    old = [await max_.say("general", f"old {n}") for n in range(2)]
    step = await lab.ask("delete_messages", {"channel": await general(lab), "messages": [str(m.id) for m in old]})
    await lab.sandbox.fault("DELETE", f"/messages/{old[1].id}", status=403, code=50013)
    assert "1 of 2 messages were deleted, then Discord says that the bot lacks a permission" in await lab.accept(step)


async def test_a_post_pings_nobody_unless_the_card_says_so(lab: Moderated) -> None:
    """Attack 3."""
    max_, where = await lab.id_of("Max"), await general(lab)
    text = f"@everyone <@{max_}> <@&{await lab.sandbox.role_id('Approvers')}> see https://example.org"
    step = await lab.ask("post_message", {"channel": where, "text": text})
    assert preview_of(step) == f"Posts a message in #general ({where}). It notifies nobody."
    await lab.accept(step)
    assert await lab.sandbox.pings() == []
    assert await lab.sandbox.unfurls() == []
    step = await lab.ask("post_message", {"channel": where, "text": text, "ping": "people"})
    assert f"It notifies Max ({max_})." in preview_of(step)
    await lab.accept(step)
    [ping] = await lab.sandbox.pings()
    assert (ping["users"], ping["everyone"], ping["roles"]) == ([max_], False, [])


async def test_everyone_is_pinged_only_for_somebody_who_could_do_that(lab: Moderated) -> None:
    where = await general(lab)
    args = {"channel": where, "text": "@everyone lunch", "ping": "everyone"}
    await lab.sandbox.change_role(
        "@everyone", permissions=int(P.VIEW_CHANNEL | P.SEND_MESSAGES | P.READ_MESSAGE_HISTORY)
    )
    await lab.knows(lambda guild: not guild.default_role.permissions.mention_everyone)
    assert "Max" in (refused := await lab.refused("post_message", args, who="Max"))
    assert "lack Mention Everyone" in refused
    assert "The bot cannot do this: it lacks Mention Everyone" in await lab.refused("post_message", args)
    await lab.sandbox.change_role("Bot", permissions=RIGHTS | int(P.MENTION_EVERYONE))
    await lab.knows(lambda guild: guild.me.guild_permissions.mention_everyone)
    step = await lab.ask("post_message", args)
    assert "It notifies EVERYONE in the channel." in preview_of(step)
    await lab.accept(step)
    [ping] = await lab.sandbox.pings()
    assert ping["everyone"]


async def test_pins_threads_channels_and_slow_mode(lab: Moderated) -> None:
    ada = await lab.sandbox.person("Ada")
    said, where = await ada.say("general", "the rules"), await general(lab)
    message = {"channel": where, "message": str(said.id)}
    step = await lab.ask("pin_message", message)
    assert f"- Ada ({ada.id}): the rules [{said.id}]" in preview_of(step)
    assert (await lab.accept(step)).startswith("Pinned")
    assert "pinned already" in await lab.refused("pin_message", message)
    assert (await lab.run("unpin_message", message)).startswith("Unpinned")
    assert "Created the thread talk (" in await lab.run("create_thread", {**message, "name": "talk"})
    assert "Created the thread more (" in await lab.run("create_thread", {"channel": where, "name": "more"})
    step = await lab.ask("set_slow_mode", {"channel": where, "seconds": 30})
    assert preview_of(step) == f"Changes the slow mode of #general ({where}) from off to 30 seconds."
    await lab.accept(step)
    assert (await channel_of(lab, "general"))["rate_limit_per_user"] == 30
    assert "Created the channel #news (" in await lab.run("create_channel", {"name": "news", "topic": "All of it"})
    assert (await channel_of(lab, "news"))["topic"] == "All of it"


async def test_a_channel_is_created_in_a_category(lab: Moderated) -> None:
    category = await lab.client.guilds[0].create_category("Events")
    await lab.knows(lambda guild: guild.get_channel(category.id))
    step = await lab.ask("create_channel", {"name": "party", "category": str(category.id)})
    assert preview_of(step) == f"Creates a text channel in the category Events ({category.id})."
    await lab.accept(step)
    assert (await channel_of(lab, "party"))["parent_id"] == str(category.id)
    assert "not a category" in await lab.refused("create_channel", {"name": "x", "category": await general(lab)})


async def test_messages_that_are_far_apart_are_found(lab: Moderated) -> None:
    max_ = await lab.sandbox.person("Max")
    said = [await max_.say("general", f"n {n}") for n in range(103)]
    args = {"channel": await general(lab), "messages": [str(said[0].id), str(said[1].id), str(said[-1].id)]}
    assert "Deleted 3 messages" in await lab.run("delete_messages", args)


# What the asker could not do


async def moderator(lab: Moderated, rights: int) -> tuple[Any, int]:
    """Give Olga a role with these rights."""
    olga, mods = await lab.sandbox.person("Olga"), await lab.sandbox.create_role("Mods", rights)
    await lab.sandbox.grant(olga, mods)
    await lab.knows(lambda guild: guild.get_role(mods))
    return olga, mods


async def test_a_right_that_a_channel_takes_away_does_not_count_there(lab: Moderated) -> None:
    _, mods = await moderator(lab, int(P.MANAGE_MESSAGES))
    ops = await lab.sandbox.channel("ops")
    await lab.sandbox.overwrite(ops, mods, deny=int(P.MANAGE_MESSAGES))
    await lab.knows(lambda guild: guild.get_channel(ops.id).overwrites)  # type: ignore[union-attr]
    ada = await lab.sandbox.person("Ada")
    for name in ("general", "ops"):
        said = await ada.say(name, "hello")
        args = {"channel": await general(lab, name), "messages": [str(said.id)]}
        if name == "general":
            assert "Deleted 1 message" in await lab.run("delete_messages", args, who="Olga")
        else:
            why = await lab.refused("delete_messages", args, who="Olga")
            assert f"they lack Manage Messages in #ops ({ops.id})" in why


async def test_a_moderator_who_is_timed_out_moderates_nobody(lab: Moderated) -> None:
    nina = await lab.sandbox.person("Nina")
    await lab.sandbox.change_role("Approvers", permissions=int(P.BAN_MEMBERS))
    await lab.knows(lambda guild: any(role.permissions.ban_members for role in guild.roles if role.name == "Approvers"))
    await lab.run("time_out_member", {"member": str(nina.id), "minutes": 60})
    assert "they lack Ban Members" in await lab.refused("ban_member", {"member": await lab.id_of("Max")}, who="Nina")


async def test_the_bot_needs_the_right_to_read_too(lab: Moderated) -> None:
    ops = await lab.sandbox.channel("ops")
    await lab.sandbox.overwrite(ops, lab.sandbox.bot_id, deny=int(P.READ_MESSAGE_HISTORY))
    await lab.knows(lambda guild: guild.get_channel(ops.id).overwrites)  # type: ignore[union-attr]
    why = await lab.refused("read_channel", {"channel": str(ops.id)})
    assert "The bot lacks Read Message History in #ops" in why


async def test_the_bot_does_nothing_for_an_ordinary_member_that_they_could_not_do(lab: Moderated) -> None:
    nina, where = await lab.id_of("Nina"), await general(lab)
    said = await (await lab.sandbox.person("Ada")).say("general", "hello")
    role = str(await lab.sandbox.role_id("Approvers"))
    for tool, args in {
        "ban_member": {"member": nina},
        "kick_member": {"member": nina},
        "time_out_member": {"member": nina, "minutes": 5},
        "unban_user": {"user": nina},
        "assign_role": {"member": nina, "role": role},
        "remove_role": {"member": nina, "role": role},
        "create_channel": {"name": "x"},
        "set_slow_mode": {"channel": where, "seconds": 5},
        "delete_messages": {"channel": where, "messages": [str(said.id)]},
        "pin_message": {"channel": where, "message": str(said.id)},
    }.items():
        assert "Max" in (why := await lab.refused(tool, args, who="Max")), tool
        assert "may not do this: they lack" in why, tool


async def test_an_approval_does_not_replace_a_right_that_was_lost_meanwhile(lab: Moderated) -> None:
    """Olga could ban when she asked; Ada accepts after Olga lost the role."""
    olga, mods = await moderator(lab, int(P.BAN_MEMBERS))
    step = await lab.ask("ban_member", {"member": await lab.id_of("Max")}, who="Olga")
    await lab.sandbox.revoke(olga, mods)
    assert "Olga" in (why := await lab.accept(step))
    assert "they lack Ban Members" in why
    assert await lab.bans() == []


@pytest.mark.parametrize(
    ("who", "words"),
    [("Olga", "The person who asked is not a member"), ("Max", "is not a member of this server")],
)
async def test_somebody_who_left_after_the_card(lab: Moderated, who: str, words: str) -> None:
    await moderator(lab, int(P.BAN_MEMBERS))
    step = await lab.ask("ban_member", {"member": await lab.id_of("Max")}, who="Olga")
    await lab.sandbox.leave(await lab.sandbox.person(who))
    assert words in await lab.accept(step)
    assert await lab.bans() == []


async def test_a_channel_that_was_deleted_after_the_card(lab: Moderated) -> None:
    step = await lab.ask("post_message", {"channel": await general(lab, "ops"), "text": "hello"})
    await lab.sandbox.delete_channel("ops")
    await lab.knows(lambda guild: "ops" not in [channel.name for channel in guild.channels])
    assert "has no channel" in await lab.accept(step)


async def test_a_target_that_rose_above_the_asker_after_the_card(lab: Moderated) -> None:
    mods, chief = await lab.sandbox.create_role("Mods", int(P.KICK_MEMBERS)), await lab.sandbox.create_role("Chief")
    await lab.sandbox.grant(await lab.sandbox.person("Olga"), mods)
    await lab.knows(lambda guild: guild.get_role(chief))
    step = await lab.ask("kick_member", {"member": await lab.id_of("Max")}, who="Olga")
    await lab.sandbox.grant(await lab.sandbox.person("Max"), chief)
    assert "is not below their own top role" in await lab.accept(step)
    assert await lab.sandbox.rest_calls("DELETE", "/members/") == []


async def test_a_rule_that_allows_a_call_does_not_skip_the_check(lab: Moderated) -> None:
    lab.policy = Policy((Rule("ban_member", Verdict.ALLOW),))
    assert "may not do this" in await lab.refused("ban_member", {"member": await lab.id_of("Nina")}, who="Max")
    step = await lab.ask("ban_member", {"member": await lab.id_of("Nina")})
    assert isinstance(step, Finished)
    [call] = await lab.sandbox.rest_calls("PUT", "/bans/")
    assert call["reason"].endswith("allowed without a card")


async def test_only_servers_and_only_this_server(lab: Moderated) -> None:
    max_ = await lab.id_of("Max")
    assert "not in direct messages" in await lab.refused("ban_member", {"member": max_}, server="dm")
    other = next(g for g in (await lab.sandbox.world())["guilds"] if g["name"] == "Other Place")
    lobby, otto = other["channels"][0]["id"], await lab.id_of("Otto")
    assert "no channel" in await lab.refused("read_channel", {"channel": lobby})
    assert "no channel" in await lab.refused("post_message", {"channel": lobby, "text": "hi"})
    assert "not a member" in await lab.refused("ban_member", {"member": otto})
    assert "not in this server any more" in await lab.refused("list_roles", {}, server=other["id"])


async def test_a_name_is_not_taken_for_an_id(lab: Moderated) -> None:
    await lab.ask("ban_member", {"member": "Max"})
    assert "write the user's id, a number in quotes; list_members gives it" in str(lab.script.asked[-1][-1])


# Failures


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 403, "code": 50013}, "Not done: Discord says that the bot lacks a permission"),
        ({"status": 404, "code": 10013}, "Not done: there is no such user"),
        ({"status": 400, "code": 99, "message": "odd"}, "Not done: Discord refused it (status 400, code 99: odd)"),
        ({"status": 503}, "It may have been done"),
        ({"status": 500, "after": True}, "It may have been done"),
        ({"drop": True}, "It may have been done"),
        ({"drop": True, "after": True, "times": 1}, "It may have been done"),
    ],
)
async def test_discord_fails(lab: Moderated, fault: dict[str, Any], words: str) -> None:
    """Attack 51 for Discord: after an answer that never came, nobody claims that nothing was done."""
    step = await lab.ask("kick_member", {"member": await lab.id_of("Max")})
    await lab.sandbox.fault("DELETE", "/members/", **{"times": 9} | fault)
    assert words in await lab.accept(step)
    calls = await lab.sandbox.rest_calls("DELETE", "/members/")
    assert len(calls) <= (2 if "drop" in fault else 1), "it is not sent again"


async def test_a_rate_limit_is_waited_for(lab: Moderated) -> None:
    step = await lab.ask("ban_member", {"member": await lab.id_of("Max")})
    await lab.sandbox.fault("PUT", "/bans/", status=429, retry_after=0.05, times=1)
    assert "Banned" in await lab.accept(step)


async def test_if_discord_cannot_be_asked_nothing_is_done(lab: Moderated) -> None:
    await lab.sandbox.fault("GET", "/members/", status=503, times=3)
    assert "could not be looked up" in await lab.refused("ban_member", {"member": await lab.id_of("Max")})


async def test_a_call_waits_for_the_servers_data_after_a_start(lab: Moderated) -> None:
    [guild] = lab.client.guilds
    guild.unavailable = True
    asking = asyncio.create_task(lab.ask("list_roles", {}))
    await asyncio.sleep(0.2)
    assert not asking.done()
    guild.unavailable = False
    await asking
    assert "Approvers" in lab.result
