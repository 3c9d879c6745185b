"""`signoff check --discord`: signoff.toml is compared with the servers that the bot is really in."""

from __future__ import annotations

import asyncio

import pytest

from discord_sandbox import SandboxClient
from discord_sandbox.permissions import Permission
from signoff.bot import checkup
from signoff.bot.checkup import check_by_connecting, check_servers
from signoff.bot.connection import point_at
from signoff.config.findings import Finding, Severity
from signoff.config.schema import Config, parse_config
from signoff.errors import LoginFailed
from tests.rigs.bot import TOKEN, Rig, until

NOWHERE = 123456789012345678


async def found(rig: Rig, text: str = "", *, at_start: bool = False) -> list[Finding]:
    return await check_servers(rig.client, parse_config(text), at_start=at_start)


async def only(rig: Rig, text: str) -> str:
    (finding,) = await found(rig, text)
    return finding.line


async def can_count(rig: Rig) -> None:
    """Let the bot read the numbers of members."""
    await rig.sandbox.change_role("Signoff", permissions=str(309237763136 | Permission.MANAGE_ROLES))
    guild = rig.client.get_guild(int(rig.server))
    assert guild
    await until(lambda: guild.me.guild_permissions.manage_roles)


async def test_a_server_that_fits_gives_no_finding(rig: Rig) -> None:
    approvers, general = await rig.sandbox.role_id("Approvers"), await rig.sandbox.channel("general")
    ada = await rig.sandbox.person("Ada")
    await can_count(rig)
    assert await found(rig) == []
    assert (
        await found(
            rig,
            f'[access]\nservers = ["{rig.server}"]\nchannels = ["{general.id}"]\nroles = ["{approvers}"]\n'
            f'dm_users = ["{ada.id}"]\n[audit]\nlog_channels = ["{general.id}"]\n[[rules]]\ntool = "x"\n'
            f'verdict = "ask"\napprovers = ["role:{approvers}", "user:{ada.id}"]\nquorum = 2\n',
        )
        == []
    )


async def test_permissions_and_intents_that_the_discord_tools_lack(rig: Rig) -> None:
    text = '[tools]\nenable = ["ban_member", "post_message", "read_channel", "list_members"]\n'
    lines = [finding.line for finding in await found(rig, text)]
    assert lines[0].startswith("warning: signoff.toml:2: in Signoff Lab the bot lacks Ban Members, so these tools")
    assert "cannot work there: ban_member;" in lines[0]
    assert "Message Content Intent, read_channel cannot show" in lines[1]
    assert "Server Members Intent" in lines[2]
    await rig.sandbox.change_role("Signoff", permissions=str(309237763136 | Permission.BAN_MEMBERS))
    guild = rig.client.get_guild(int(rig.server))
    assert guild
    await until(lambda: guild.me.guild_permissions.ban_members)
    assert not [finding for finding in await found(rig, text) if "lacks" in finding.line]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f'[access]\nservers = ["{NOWHERE}"]\n', 2, ("not in the server", "invite")),
        (f'[access]\nchannels = ["{NOWHERE}"]\n', 2, ("no channel", "Copy Channel ID")),
        (f'[audit]\nlog_channels = ["{NOWHERE}"]\n', 2, ("no channel",)),
        (f'[access]\nroles = ["{NOWHERE}"]\n', 2, (f"role {NOWHERE} is missing", "Copy Role ID")),
        (f'[approvals]\n\napprovers = ["manage_server", "role:{NOWHERE}"]\n', 3, ("is missing",)),
        (f'[approvals]\napprovers = ["manage_server", "user:{NOWHERE}"]\n', 2, ("in none of the bot's servers",)),
        (f'[access]\ndm_users = ["{NOWHERE}"]\n', 2, (f"no user {NOWHERE}",)),
        (f'[approvals]\nnotify = "channel:{NOWHERE}"\n', 2, ("no channel",)),
        (f'[approvals]\nescalate = {{ after = "1m", to = ["role:{NOWHERE}"] }}\n', 2, ("is missing",)),
    ],
)
async def test_an_id_that_does_not_exist_is_named_with_its_line(
    rig: Rig, text: str, line: int, words: tuple[str, ...]
) -> None:
    said = await only(rig, text)
    assert said.startswith(f"error: signoff.toml:{line}: ")
    assert [word for word in words if word not in said] == [], said


async def test_everyone_is_no_approver(rig: Rig) -> None:
    said = await only(rig, f'[approvals]\napprovers = ["manage_server", "role:{rig.server}"]\n')
    assert "@everyone" in said


async def test_missing_permissions_are_named_per_channel(rig: Rig) -> None:
    denied = Permission.SEND_MESSAGES_IN_THREADS | Permission.ATTACH_FILES
    await rig.sandbox.overwrite("ops", await rig.sandbox.role_id("Signoff"), deny=int(denied))
    await until_lacking(rig, "ops")
    (finding,) = await found(rig)
    assert finding.severity is Severity.WARNING
    assert "in #ops of Signoff Lab the bot lacks Send Messages in Threads, Attach Files" in finding.problem
    ops = await rig.sandbox.channel("ops")
    said = await only(rig, f'[access]\nchannels = ["{ops.id}"]\n')
    assert said.startswith("error: signoff.toml:2: in #ops of Signoff Lab the bot lacks Send Messages in Threads")


async def test_a_channel_that_is_configured_must_be_visible(idle: Rig) -> None:
    ops = await idle.sandbox.channel("ops")
    await idle.sandbox.overwrite("ops", await idle.sandbox.role_id("Signoff"), deny=int(Permission.VIEW_CHANNEL))
    async with idle.running():
        assert await found(idle) == [], "a channel that the bot does not see is somebody else's"
        said = await only(idle, f'[access]\n# the incidents\nchannels = ["{ops.id}"]\n')
    assert said.startswith("error: signoff.toml:3: ")
    assert "lacks View Channel" in said or "that the bot can see" in said


async def until_lacking(rig: Rig, name: str) -> None:
    def lacks() -> bool:
        guild = rig.client.get_guild(int(rig.server))
        assert guild
        channel = next((one for one in guild.text_channels if one.name == name), None)
        return channel is None or bool(checkup._lacking(channel))  # pyright: ignore[reportPrivateUsage]

    await until(lacks)


async def test_a_quorum_larger_than_the_role_has_members_is_an_error(rig: Rig) -> None:
    approvers = await rig.sandbox.role_id("Approvers")
    text = f'[[rules]]\ntool = "x"\nverdict = "ask"\napprovers = ["role:{approvers}"]\nquorum = 5\n'
    note = await only(rig, text)
    assert note.startswith("note: signoff.toml:4: ")
    assert "lacks Manage Roles" in note
    await can_count(rig)
    said = await only(rig, text)
    assert said.startswith("error: signoff.toml:4: [[rules]] number 1: 5 people must accept, but in Signoff Lab only 2")
    assert "quorum = 2" in said


async def test_a_role_that_nobody_has_can_decide_nothing(rig: Rig) -> None:
    await can_count(rig)
    empty = await rig.sandbox.create_role("Empty")
    await rig.sandbox.wait_for("GUILD_ROLE_CREATE")
    await until(lambda: any(role.id == empty for role in rig.client.guilds[0].roles))
    said = await only(rig, f'[approvals]\napprovers = ["role:{empty}"]\n')
    assert "one person must accept, but in Signoff Lab only 0 may decide" in said


async def test_a_failing_lookup_is_noted_and_not_taken_for_missing(rig: Rig) -> None:
    await rig.sandbox.fault("GET", "/roles/member-counts", status=403, code=50013)
    await rig.sandbox.fault("GET", "/members/", status=403, code=50001)
    ada, approvers = await rig.sandbox.person("Ada"), await rig.sandbox.role_id("Approvers")
    findings = await found(rig, f'[approvals]\napprovers = ["user:{ada.id}", "role:{approvers}"]\n')
    assert [finding.severity for finding in findings] == [Severity.NOTE]


async def test_a_bot_in_many_servers_looks_nobody_up_at_its_start(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f'[approvals]\napprovers = ["manage_server", "user:{NOWHERE}"]\n'
    assert len(await found(rig, text, at_start=True)) == 1
    monkeypatch.setattr(checkup, "MANY_SERVERS", 0)
    assert await found(rig, text, at_start=True) == []


async def test_it_connects_checks_and_leaves(sandbox: SandboxClient, pointed: None) -> None:
    findings, fact = await asyncio.wait_for(check_by_connecting(TOKEN, Config()), 60)
    assert findings == []
    assert fact.startswith("Signed in as Signoff")
    assert "in Signoff Lab" in fact


async def test_a_wrong_token_is_one_line(sandbox: SandboxClient, pointed: None) -> None:
    with pytest.raises(LoginFailed, match="refused the token"):
        await asyncio.wait_for(check_by_connecting("wrong", Config()), 60)


async def test_an_address_where_nobody_listens_is_one_line(pointed: None) -> None:
    point_at("http://127.0.0.1:9/api/v10", None)
    with pytest.raises(LoginFailed, match="Cannot reach Discord"):
        await asyncio.wait_for(check_by_connecting(TOKEN, Config()), 60)
