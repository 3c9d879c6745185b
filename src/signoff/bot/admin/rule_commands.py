"""`/signoff protect`, `unprotect`, `policy` and `test`: add, remove, list and try this server's rules."""

from __future__ import annotations

from typing import Any

import discord
from discord import app_commands
from discord.app_commands import Range

from signoff.approvals.errors import Refused
from signoff.bot.admin import listing
from signoff.bot.admin.authority import admin_of, place_of
from signoff.bot.admin.autocomplete import Suggestions
from signoff.bot.admin.options import TOOL_SPACE, Asked, build_rule, checked_id, checked_text, read_arguments, remarks
from signoff.bot.admin.responses import in_time, tell
from signoff.turns.administration import Administration

Interaction = discord.Interaction[Any]
VERDICTS = [
    app_commands.Choice(name="ask: post a card and wait until somebody accepts", value="ask"),
    app_commands.Choice(name="deny: never run it", value="deny"),
    app_commands.Choice(name="allow: run without asking, where the operator permits it", value="allow"),
]
NOTIFY = [
    app_commands.Choice(name="none: post the card and nothing else", value="none"),
    app_commands.Choice(name="ping: name the approvers below the card", value="ping"),
    app_commands.Choice(name="dm: send the approvers a direct message", value="dm"),
]

WITH_MARK = [
    app_commands.Choice(name="acts: tools marked as changing something", value="acts"),
    app_commands.Choice(name="destructive: tools marked as doing what may not be undone", value="destructive"),
    app_commands.Choice(name="read_only: tools marked as only reading", value="read_only"),
    app_commands.Choice(name="not read_only: tools without that mark", value="not read_only"),
]


def add_rule_commands(group: app_commands.Group, admin: Administration, suggestions: Suggestions) -> None:
    tools, arguments, rules = suggestions.tools(), suggestions.arguments(), suggestions.rules()

    @group.command(description="Add a rule for this server: which calls ask, and who may decide")
    @app_commands.describe(
        tool="the tool's name; * matches anything, | separates several",
        verdict="what happens to matching calls (default: ask)",
        argument="apply only if this argument matches pattern",
        pattern="the values that match: * matches anything, | separates several",
        unless_argument="do not apply if this argument matches unless_pattern",
        unless_pattern="the values that match: * matches anything, | separates several",
        role="members with this role may decide",
        person="this person may decide",
        quorum="how many people must accept (default: 1)",
        four_eyes="do not let the asker decide",
        timeout='how long a card stays open: "90s", "10m", "1h"',
        reminder='post a reminder this long before the deadline: "1m"',
        ping="ping the approvers in the reminder",
        message="text for the card or, with deny, for the model",
        notify="how to tell the approvers when a card opens (default: as the operator has set)",
        approvals_channel="show the card in this channel too, with its buttons",
        mark="apply only to tools with this mark; use * as the tool to apply to all of them",
    )
    @app_commands.choices(verdict=VERDICTS, notify=NOTIFY, mark=WITH_MARK)
    @app_commands.autocomplete(tool=tools, argument=arguments, unless_argument=arguments)
    async def protect(
        interaction: Interaction,
        tool: Range[str, 1, 100],
        verdict: str = "ask",
        argument: Range[str, 1, 100] | None = None,
        pattern: Range[str, 1, 1000] | None = None,
        unless_argument: Range[str, 1, 100] | None = None,
        unless_pattern: Range[str, 1, 1000] | None = None,
        role: discord.Role | None = None,
        person: discord.User | None = None,
        quorum: Range[int, 1, 10] | None = None,
        four_eyes: bool | None = None,
        timeout: Range[str, 1, 20] | None = None,
        reminder: Range[str, 1, 20] | None = None,
        ping: bool | None = None,
        message: Range[str, 1, 500] | None = None,
        notify: str | None = None,
        approvals_channel: discord.TextChannel | None = None,
        mark: str | None = None,
    ) -> None:
        actor = admin_of(interaction)
        asked = Asked(
            tool,
            verdict,
            argument,
            pattern,
            unless_argument,
            unless_pattern,
            _role_id(interaction, role),
            _person_id(person),
            quorum,
            four_eyes,
            timeout,
            reminder,
            ping,
            message,
            notify,
            _channel_id(interaction, approvals_channel),
            mark,
        )
        rule = build_rule(asked)
        made = await in_time(interaction, admin.protect(rule, actor))
        notes = [f"-# {note}" for note in remarks(rule, admin.tools(), admin.operator_rules())]
        said = [f"Rule {listing.quoted(made.id)}: {listing.rule_line(made.rule)}", listing.effect(made.rule), *notes]
        await tell(interaction, "\n".join(said), name="rule")

    @group.command(description="Remove a rule of this server")
    @app_commands.describe(rule="the rule's id, as /signoff policy shows it")
    @app_commands.autocomplete(rule=rules)
    async def unprotect(interaction: Interaction, rule: Range[str, 1, 100]) -> None:
        actor = admin_of(interaction)
        removed = await in_time(interaction, admin.unprotect(checked_id("rule", rule), actor))
        said = f"Removed: rule {listing.quoted(removed.id)}, {listing.rule_line(removed.rule)}"
        await tell(interaction, f"{said}\nIt no longer applies, starting with the next call.", name="rule")

    @group.command(description="Show all rules that apply here, and what happens to a call of each tool")
    async def policy(interaction: Interaction) -> None:
        actor = admin_of(interaction)

        async def look() -> str:
            own, pause = await admin.rules(actor.server), await admin.paused(actor.server)
            return listing.policy_text(admin.operator_rules(), own, admin.tools(), pause)

        await tell(interaction, await in_time(interaction, look()), name="policy")

    @group.command(description="Show what would happen to a call, without running it")
    @app_commands.describe(tool="the tool's name", arguments='its arguments as JSON, such as {"path": "a.txt"}')
    @app_commands.autocomplete(tool=tools)
    async def test(interaction: Interaction, tool: Range[str, 1, 100], arguments: Range[str, 1, 6000] = "{}") -> None:
        actor = admin_of(interaction)
        name, args = checked_text("tool", tool, TOOL_SPACE), read_arguments(arguments)

        async def look() -> str:
            ruling = await admin.test(name, args, place_of(interaction, actor), actor)
            known = sum(one.tool == name for one in await admin.grants(actor))
            return listing.ruling_text(name, ruling, await admin.paused(actor.server), admin.mode(), known)

        await tell(interaction, await in_time(interaction, look()), name="test")


def _role_id(interaction: Interaction, role: object) -> str | None:
    if role is None:
        return None
    if not isinstance(role, discord.Role):
        raise Refused("role is not a role of this server.")
    if role.id == interaction.guild_id:
        raise Refused("@everyone can't be an approver. Choose a role that only approvers have.")
    if role.is_bot_managed():
        raise Refused("This role belongs to a bot, and bots can't decide.")
    return str(role.id)


def _channel_id(interaction: Interaction, channel: object) -> str | None:
    if channel is None:
        return None
    if not isinstance(channel, discord.TextChannel) or channel.guild.id != interaction.guild_id:
        raise Refused("approvals_channel is not a text channel of this server.")
    mine = channel.permissions_for(channel.guild.me)
    if not (mine.view_channel and mine.send_messages):
        raise Refused("I can't post in that channel: I need View Channel and Send Messages there.")
    return str(channel.id)


def _person_id(person: object) -> str | None:
    if person is None:
        return None
    if not isinstance(person, discord.Member):
        raise Refused("person is not a member of this server and could never decide.")
    if person.bot:
        raise Refused("person is a bot, and bots can't decide.")
    return str(person.id)
