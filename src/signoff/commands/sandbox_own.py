"""The sandbox for somebody's own signoff.toml: suggestions for its tools, and the people and channels that it names.

Ids in the file belong to a real server. The sandbox gets roles, people and channels with the same ids, so that the
rules mean the same here, and the people of the sandbox can decide.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from discord_sandbox.client import SandboxClient
from discord_sandbox.permissions import Permission
from signoff.commands.sandbox_guide import guide_for
from signoff.config.schema import Config
from signoff.dataclass import dataclass
from signoff.errors import StartupError
from signoff.servers.permissions import wanted_by
from signoff.servers.tool_names import enabled_kinds, enabled_tools

HOLDERS = ("Olga", "Nina")
"""They get every role that the file names as approver. With two of them, a quorum of two can be reached."""
ASKERS = ("Ada", "Max", *HOLDERS)
"""They get every role that the file requires of people who ask."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Named:
    """The ids that a configuration names."""

    approver_roles: tuple[str, ...]
    asker_roles: tuple[str, ...]
    people: tuple[str, ...]
    channels: tuple[str, ...]


def named_in(config: Config) -> Named:
    asking = [config.approvals, *config.rules]
    approvers = [name for each in asking for name in each.approvers or ()]
    approvers += [name for each in asking if each.escalate for name in each.escalate.to]
    told = [way for each in asking if (way := each.notify)]
    return Named(
        _once(_ids(approvers, "role:")),
        _once(config.access.roles),
        _once([*_ids(approvers, "user:"), *config.access.dm_users]),
        _once([*config.access.channels, *_ids(told, "channel:")]),
    )


def _ids(approvers: Iterable[str], prefix: str) -> Iterator[str]:
    return (name.removeprefix(prefix) for name in approvers if name.startswith(prefix))


def _once(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


async def add_named(client: SandboxClient, config: Config) -> None:
    """Add what the configuration names and this world does not have yet."""
    named = named_in(config)
    world = await client.world()
    [home] = [guild for guild in world["guilds"] if int(guild["id"]) == await client.guild_id()]
    roles = {role["id"] for role in home["roles"]}
    for number in (*named.approver_roles, *named.asker_roles):
        if number not in roles:
            await client.create_role(f"role {number}", number=int(number))
            roles.add(number)
            holders = ASKERS if number in named.asker_roles else HOLDERS
            for name in holders:
                await client.grant(await client.person(name), number)
    people = {user["id"] for user in world["users"]}
    for number in named.people:
        if number not in people:
            await client.join(await client.add_person(f"user-{number}", number=int(number)))
    channels = {channel["id"] for channel in home["channels"]}
    for number in named.channels:
        if number not in channels:
            await client.create_channel(f"channel-{number}", number=int(number))
    await _permit_tools(client, config, home["roles"])


async def _permit_tools(client: SandboxClient, config: Config, roles: Iterable[dict[str, Any]]) -> None:
    """Give the bot the permissions and intents that the enabled Discord tools need."""
    if not enabled_tools(config.tools.enable):
        return
    [own] = [role for role in roles if role.get("tags", {}).get("bot_id") == str(client.bot_id)]
    permissions = int(own["permissions"])
    for name in wanted_by(enabled_kinds(config.tools.enable)):
        permissions |= Permission[name.upper()]
    await client.change_role(own["id"], permissions=str(permissions))
    await client.settings(message_content=True, members=True)


def own_guide(config: Config) -> dict[str, Any]:
    """Return the guide with the tools of this configuration. A mistake in it is left to the bot, which says it."""
    # Imported here because it loads the agent, which the sandbox with its own rules does not need.
    from signoff.agent.demo.examples import examples_for
    from signoff.agent.setup import Brain

    try:
        brain = Brain.build(config, "demo")
    except StartupError as problem:
        log.warning("the page suggests no tools: %s", problem)
        return guide_for((), {})
    return guide_for(examples_for(brain.agent), _notes(config))


def _notes(config: Config) -> dict[str, str]:
    """Return word for a person -> what they may do under this configuration."""
    named = named_in(config)
    admins = any("manage_server" in (rule.approvers or ()) for rule in config.rules)
    notes = {
        "admin": "has Manage Server"
        + (", may decide" if admins or "manage_server" in config.approvals.approvers else ""),
        "approver": "has the approver roles of your signoff.toml" if named.approver_roles else "may not decide here",
        "member": "has no role",
    }
    roles = {f"role {number}": f"has the role {number} of your signoff.toml" for number in named.asker_roles}
    people = {f"user-{number}": "is named in your signoff.toml" for number in named.people}
    return notes | roles | people
