"""`/signoff usage`: what was used of the model, the limits, and what is left. Everybody sees their own usage."""

from __future__ import annotations

from typing import Any

import discord
from discord import app_commands

from signoff.bot.access import Access
from signoff.bot.admin.authority import member_of, place_of
from signoff.bot.admin.responses import in_time, tell
from signoff.turns.administration import Administration
from signoff.turns.budgets import Budget, Standing, Unit, Used
from signoff.turns.overages import amount, shown
from signoff.turns.usage import AccountUsage, UsageReport

_NAMES = {Budget.THREAD: "This thread", Budget.PERSON: "You today", Budget.SERVER: "This server today"}


def add_usage_command(group: app_commands.Group, admin: Administration, access: Access) -> None:
    @group.command(name="usage", description="Show the tokens and cost of your runs; with Manage Server, everybody's")
    async def show_usage(interaction: discord.Interaction[Any]) -> None:
        actor = member_of(interaction, access)
        report = await in_time(interaction, admin.usage(actor, place_of(interaction, actor)))
        await tell(interaction, usage_text(report), name="usage")


def usage_text(report: UsageReport) -> str:
    lines = [_account_line(one) for one in report.accounts]
    for title, kind, entries in (
        ("By person today", "@", report.by_person),
        ("By thread today", "#", report.by_thread),
    ):
        if entries:
            lines += [
                "",
                f"**{title}**",
                *(f"- {_mention(kind, subject)}: {_plain(used)}" for subject, used in entries),
            ]
    if any(one.used.unpriced for one in report.accounts):
        lines += ["", "The cost of some model responses is not known, so only their tokens count."]
    return "\n".join([*lines, "", f"It is {report.day}. The next day begins <t:{report.next_day:.0f}:R>."])


def _account_line(one: AccountUsage) -> str:
    limits = {standing.unit: standing for standing in one.limits}
    parts = [_part(one.used, unit, limits.get(unit)) for unit in Unit]
    return f"**{_NAMES[one.account.budget]}**: {', '.join(part for part in parts if part)}"


def _part(used: Used, unit: Unit, limit: Standing | None) -> str:
    if limit:
        kind = " tokens" if unit is Unit.TOKENS else ""
        return f"{shown(limit.used, unit)} of {shown(limit.limit, unit)}{kind} ({shown(limit.left, unit)} left)"
    return amount(used.of(unit), unit) if unit is Unit.TOKENS or used.dollars else ""


def _plain(used: Used) -> str:
    cost = f", {shown(used.dollars, Unit.DOLLARS)}" if used.dollars else ""
    return f"{used.tokens:,} tokens{cost}, {used.requests} request{'' if used.requests == 1 else 's'} to the model"


def _mention(kind: str, subject: str) -> str:
    return f"<{kind}{subject}>" if subject.isdecimal() else "somewhere else"
