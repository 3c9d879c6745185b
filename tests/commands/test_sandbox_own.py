"""The sandbox for somebody's own configuration: which ids it names, and the world that gets them."""

from __future__ import annotations

from discord_sandbox import Permission, SandboxClient
from signoff.commands.sandbox_own import add_named, named_in
from signoff.config.schema import parse_config

CONFIG = """
[access]
roles = ["11"]
channels = ["12"]
dm_users = ["13"]

[approvals]
approvers = ["manage_server", "role:14", "user:15"]
notify = "channel:16"
escalate = { after = "2m", to = ["role:17"] }

[[rules]]
tool = "deploy"
verdict = "ask"
approvers = ["role:18", "asker"]
notify = "channel:16"
"""


def test_every_id_of_the_file_is_found() -> None:
    named = named_in(parse_config(CONFIG, "signoff.toml"))
    assert named.approver_roles == ("14", "18", "17")
    assert named.asker_roles == ("11",)
    assert named.people == ("15", "13")
    assert named.channels == ("12", "16")


async def test_the_world_gets_what_is_named_once(sandbox: SandboxClient) -> None:
    config = parse_config(CONFIG, "signoff.toml")
    await add_named(sandbox, config)
    before = await sandbox.world()
    await add_named(sandbox, config)
    after = await sandbox.world()
    assert {key: after[key] for key in ("users", "guilds")} == {key: before[key] for key in ("users", "guilds")}
    lab = after["guilds"][0]
    names = {user["id"]: user["name"] for user in after["users"]}
    roles = {names[member["user"]["id"]]: set(member["roles"]) for member in lab["members"]}
    assert {"11", "12", "13", "14", "15", "16", "17", "18"} <= {
        *(role["id"] for role in lab["roles"]),
        *(channel["id"] for channel in lab["channels"]),
        *(member["user"]["id"] for member in lab["members"]),
    }
    assert {"11"} <= roles["Max"]
    assert {"11", "14", "17", "18"} <= roles["Olga"]
    assert not {"14", "17", "18"} & roles["Max"]


async def test_the_bot_gets_what_the_discord_tools_need(sandbox: SandboxClient) -> None:
    await add_named(sandbox, parse_config('[tools]\nenable = ["ban_member"]\n', "signoff.toml"))
    roles = (await sandbox.world())["guilds"][0]["roles"]
    [own] = [role for role in roles if role["name"] == "Bot"]
    assert int(own["permissions"]) & Permission.BAN_MEMBERS
    assert not int(own["permissions"]) & Permission.KICK_MEMBERS
