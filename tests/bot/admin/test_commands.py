"""Each `/signoff` command over real sockets: the call that it makes, and its response. `audit` has its own tests."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.approvals.model import Choice, Pause, Place, Ruling, Verdict
from signoff.approvals.policy import Rule
from signoff.errors import CardFailed
from tests.rigs.admin import NOW, AdminRig, admin, idle, private  # noqa: F401 - fixtures
from tests.rigs.bot_fakes import make_batch

# ruff: noqa: F811 - a fixture is asked for by its name


async def test_protect_makes_the_rule_and_says_it(admin: AdminRig) -> None:
    role = await admin.sandbox.role_id("Approvers")
    answer = await admin.run(
        "protect",
        tool="delete_file",
        verdict="ask",
        argument="path",
        pattern="/etc/* | *.key",
        unless_argument="force",
        unless_pattern="false",
        role=str(role),
        person=str(admin.ada.id),
        quorum=2,
        four_eyes=True,
        timeout="10m",
        reminder="1m",
        ping=True,
        message="Look twice",
    )
    ((rule, actor),) = admin.administration.told("protect")
    assert rule == Rule(
        "delete_file",
        Verdict.ASK,
        when={"path": ("/etc/*", "*.key")},
        unless={"force": ("false",)},
        approvers=(f"role:{role}", f"user:{admin.ada.id}"),
        timeout=600.0,
        quorum=2,
        four_eyes=True,
        reminder=60.0,
        ping=True,
        message="Look twice",
    )
    assert (actor.id, actor.manages_server) == (str(admin.ada.id), True)
    text = private(answer)
    for words in (
        f"`{admin.administration.own[0].id}`",
        "**ask** `delete_file` when `path` is `/etc/*` or `*.key` unless `force` is `false`",
        f"<@&{role}> or <@{admin.ada.id}>",
        "2 people must accept",
        "the asker may not decide",
        "within 10 minutes",
        "reminder 1 minute before the deadline with a ping",
        "`Look twice`",
        "Starting with the next call",
    ):
        assert words in text


async def test_protect_warns_about_tools_and_arguments_that_are_not_there(admin: AdminRig) -> None:
    assert "No known tool has that name" in private(await admin.run("protect", tool="mcp_later"))
    answer = await admin.run("protect", tool="delete_file", argument="colour", pattern="red")
    assert "never matches" in private(answer)
    assert len(admin.administration.own) == 2


async def test_protect_says_what_allow_can_do(admin: AdminRig) -> None:
    assert "nothing changes" in private(await admin.run("protect", tool="delete_file", verdict="allow"))
    text = private(await admin.run("protect", tool="write_file", verdict="allow"))
    assert "relaxable" in text
    assert "nothing changes" not in text


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"pattern": "a"}, "needs argument"),
        ({"role": "SERVER"}, "@everyone"),
        ({"role": "BOT_ROLE"}, "belongs to a bot"),
        ({"role": "1"}, "not a role of this server"),
        ({"person": "ECHO"}, "is a bot"),
        ({"person": "OTTO"}, "not a member"),
        ({"timeout": "soon"}, "timeout must be a duration"),
        ({"quorum": 99}, "from 1 to 10"),
        ({"verdict": "maybe"}, "ask, deny or allow"),
        ({"verdict": "deny", "role": "APPROVERS"}, "asks nobody"),
    ],
)
async def test_protect_refuses_in_words(admin: AdminRig, options: dict[str, Any], why: str) -> None:
    ids = {
        "SERVER": admin.server,
        "APPROVERS": await admin.sandbox.role_id("Approvers"),
        "BOT_ROLE": await admin.sandbox.role_id("Echo"),
        "ECHO": (await admin.sandbox.person("Echo")).id,
        "OTTO": (await admin.sandbox.person("Otto")).id,
    }
    given: dict[str, Any] = {
        name: str(ids.get(value, value)) if isinstance(value, str) else value for name, value in options.items()
    }
    text = private(await admin.run("protect", tool="delete_file", **given)).replace("\\", "")
    assert why in text
    assert admin.administration.calls == []


async def test_unprotect_removes_and_says_what(admin: AdminRig) -> None:
    made = admin.rule()
    assert await admin.choices("unprotect", "rule", rule="delete") == [made.id]
    assert "**ask** `delete_file`" in private(await admin.run("unprotect", rule=made.id))
    assert admin.administration.own == []
    assert "no rule abc123" in private(await admin.run("unprotect", rule=made.id))


async def test_policy_shows_operator_rules_server_rules_and_tools(admin: AdminRig) -> None:
    admin.rule(timeout=90.0)
    text = private(await admin.run("policy"))
    for words in (
        "**ask** `write_*` when `path` is `*.env`, within 10 minutes, relaxable",
        "**deny** `shell`, says `no shell here`",
        f"`abc123` by <@{admin.ada.id}>",
        "within 90 seconds",
        "`roll_dice` (`sides`): runs without asking",
    ):
        assert words in text
    admin.administration.pauses[admin.server] = Pause(admin.server, admin.actor(admin.max), NOW)
    assert f"**Paused** by <@{admin.max.id}>" in private(await admin.run("policy"))


async def test_test_says_what_would_happen(admin: AdminRig) -> None:
    admin.administration.ruling = Ruling(
        Verdict.ASK, "a rule for delete_* says ask", ("manage_server&role:7", "asker"), 600.0, 2, True, 60.0, True, "Hm"
    )
    text = private(await admin.run("test", tool="delete_file", arguments='{"path": "a.txt"}'))
    ((tool, args, place, actor),) = admin.administration.told("test")
    general = str((await admin.sandbox.channel("general")).id)
    assert (tool, args, place) == ("delete_file", {"path": "a.txt"}, Place(admin.server, general, general))
    assert actor.id == str(admin.ada.id)
    for words in (
        "**asks**",
        r"a rule for delete\_\* says ask",
        "members with Manage Server and <@&7> or the asker",
        "2 people must accept",
        "10 minutes",
        "the asker may not decide",
        "`Hm`",
    ):
        assert words in text
    assert "There is no tool nothing" in private(await admin.run("test", tool="nothing"))
    assert "not valid JSON" in private(await admin.run("test", tool="delete_file", arguments="{'path'}"))


async def test_grants_are_listed_masked_and_revoked(admin: AdminRig) -> None:
    channel = (await admin.sandbox.channel("general")).id
    wide = admin.grant({"path": "a.txt", "password": "hunter2hunter2"}, id="wide1234")
    narrow = admin.grant({"path": "``` @everyone"}, conversation=str(channel), choice=Choice.REJECT, uses_left=1)
    old = admin.grant({}, expires=1.0)
    admin.administration.remembered += [wide, narrow, old]
    text = private(await admin.run("grants"))
    assert f"`{wide.id}`: accepts `delete_file` in every conversation of this server, by <@{admin.ada.id}>" in text
    assert f"`{narrow.id}`: rejects `delete_file` in <#{channel}>" in text
    assert "1 use left" in text
    assert 'path = "a.txt"' in text
    assert "hunter2" not in text
    assert old.id not in text
    assert await admin.choices("revoke", "grant", grant=wide.id[:3]) == [wide.id]
    assert f"`{wide.id}`" in private(await admin.run("revoke", grant=wide.id))
    assert wide not in admin.administration.remembered
    assert "no grant" in private(await admin.run("revoke", grant=wide.id))


async def test_pending_posts_the_cards_again_and_links_to_the_new_ones(admin: AdminRig) -> None:
    place = Place(admin.server, "777", "777")
    asker = admin.actor(admin.max)
    first, second, third = (
        make_batch(place, asker, card_message=str(n), deadline=NOW + 900 - n) for n in (100, 200, 300)
    )
    admin.administration.open += [first, second, third]
    admin.administration.fails_on = {
        second.id: CardFailed("the channel is gone"),
        third.id: RuntimeError("secret words"),
    }
    text = private(await admin.run("pending"))
    assert f"https://discord.com/channels/{admin.server}/777/101" in text
    assert text.count("(posted again)") == 1
    assert "the channel is gone" in text
    assert "in the bot's log" in text
    assert "secret words" not in text
    assert [what[0] for what in admin.administration.told("repost")] == [third.id, second.id, first.id]
    admin.administration.calls.clear()
    assert "**3 open cards**" in private(await admin.run("pending", repost=False))
    assert admin.administration.told("repost") == []


async def test_pending_does_not_flood(admin: AdminRig) -> None:
    place = Place(admin.server, "777", "777")
    admin.administration.open += [
        make_batch(place, admin.actor(admin.max), card_message=str(1000 * n)) for n in range(1, 13)
    ]
    text = private(await admin.run("pending"))
    assert len(admin.administration.told("repost")) == 10
    assert text.count("too many at once") == 2


async def test_pause_and_resume(admin: AdminRig) -> None:
    admin.administration.open.append(make_batch(Place(admin.server, "777", "777"), admin.actor(admin.max)))
    assert "1 open card cancelled" in private(await admin.run("pause"))
    assert "Resumed" in private(await admin.run("resume"))
    assert "was not paused" in private(await admin.run("resume"))


async def test_stop_is_for_this_place_unless_told_otherwise(admin: AdminRig) -> None:
    thread = await admin.ada.open_thread("general", "work")
    assert "in the run's thread" in private(await admin.run("stop"))
    admin.administration.running = 2
    answer = await admin.ada.run(thread, "signoff stop")
    assert "Stopped 2 runs here" in private(answer)
    assert "Stopped 2 runs in this server" in private(await admin.run("stop", everywhere=True))
    general = str((await admin.sandbox.channel("general")).id)
    assert [what[1] for what in admin.administration.told("stop")] == [general, str(thread.id), None]


async def test_protect_takes_several_tools_and_a_mark(admin: AdminRig) -> None:
    answer = await admin.run("protect", tool="delete_* | post", verdict="deny", mark="not read_only")
    ((rule, _),) = admin.administration.told("protect")
    assert rule == Rule(("delete_*", "post"), Verdict.DENY, read_only=False)
    text = private(answer)
    assert "**deny** `delete_*` or `post` if marked not `read_only`" in text
    assert "No known tool" not in text


async def test_protect_says_that_no_tool_has_the_mark(admin: AdminRig) -> None:
    assert "No known tool has these marks" in private(await admin.run("protect", tool="*", mark="destructive"))


@pytest.mark.parametrize(("options", "why"), [({"mark": "nice"}, "mark must be"), ({"tool": "a||b"}, "empty name")])
async def test_protect_refuses_odd_marks_and_names(admin: AdminRig, options: dict[str, Any], why: str) -> None:
    text = private(await admin.run("protect", **{"tool": "*", **options}))
    assert why in text.replace("\\", "")
    assert admin.administration.calls == []
