"""Compares the enabled Discord tools with the permissions and intents that the bot has. Part of the checkup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import discord

from signoff.bot.server_facts import rights_of
from signoff.config.findings import Finding, Severity, warning
from signoff.config.schema import Config
from signoff.servers.model import Kind
from signoff.servers.permissions import listed, wanted_by
from signoff.servers.tool_names import enabled_kinds, enabled_tools


def tool_findings(client: discord.Client, guilds: Iterable[discord.Guild], config: Config) -> Iterator[Finding]:
    """Yield what the bot lacks for its tools: one finding per server, and one per intent."""
    place, kinds = config.where("tools", "enable"), enabled_kinds(config.tools.enable)
    for guild in guilds:
        rights = rights_of(guild.me.guild_permissions)
        lacking = [name for name in wanted_by(kinds) if name not in rights]
        if lacking:
            tools = ", ".join(kind for kind in kinds if set(wanted_by([kind])) & set(lacking))
            problem = f"in {guild.name} the bot lacks {listed(lacking)}, so these tools cannot work there: {tools}"
            yield warning(place, problem, "grant it to the bot's role, or take the tools out of [tools] enable")
    yield from _intents(client, place, enabled_tools(config.tools.enable))


def _intents(client: discord.Client, place: str, tools: tuple[str, ...]) -> Iterator[Finding]:
    flags = client.application_flags
    todo = "turn it on in Discord's Developer Portal under Bot, or leave it as it is"
    reading = [name for name in ("read_channel", Kind.DELETE.value) if name in tools]
    if reading and not (flags.gateway_message_content or flags.gateway_message_content_limited):
        problem = f"without the Message Content Intent, {' and '.join(reading)} cannot show most texts"
        yield Finding(Severity.NOTE, problem, todo, place)
    if "list_members" in tools and not (flags.gateway_guild_members or flags.gateway_guild_members_limited):
        problem = "without the Server Members Intent, list_members can only search by name"
        yield Finding(Severity.NOTE, problem, todo, place)
