"""`/signoff schedule add`, `list` and `remove`: prompts that run by themselves. For members with Manage Server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import discord
from discord import app_commands
from discord.app_commands import Range

from signoff.approvals.errors import Refused
from signoff.bot import replying
from signoff.bot.access import Access
from signoff.bot.admin.authority import admin_of
from signoff.bot.admin.listing import quoted, who
from signoff.bot.admin.responses import in_time, inert, tell
from signoff.turns.administration import Administration
from signoff.turns.schedules import Schedule, ScheduleBook

Interaction = discord.Interaction[Any]
Mode = Literal["interactive", "auto_deny", "auto_approve"]
CANNOT_WRITE = "You may not write in that channel, so nothing can be scheduled there for you."
NONE = "This server has no schedules."
PROMPT_SPACE = 200


def add_schedule_commands(group: app_commands.Group, admin: Administration, access: Access) -> None:
    schedule = app_commands.Group(name="schedule", description="Run a prompt by itself, at times that you set")
    group.add_command(schedule)

    @schedule.command(name="add", description="Add a prompt that runs by itself, as if you had asked it")
    @app_commands.describe(
        cron="minute, hour, day of month, month, day of week: 0 9 * * 1-5 is 09:00 from Monday to Friday",
        prompt="what I am asked each time",
        channel="where each run begins; it gets a thread of its own",
        mode="what happens to calls that ask (default: interactive)",
    )
    async def add(
        interaction: Interaction,
        cron: Range[str, 1, 100],
        prompt: Range[str, 1, 1500],
        channel: discord.TextChannel,
        mode: Mode = "interactive",
    ) -> None:
        actor = admin_of(interaction)
        if isinstance(interaction.user, discord.Member) and not replying.may_ask(channel, interaction.user):
            raise Refused(CANNOT_WRITE)
        if lacking := replying.missing(channel, replying.permissions(channel, channel.guild.me)):
            raise Refused(f"Not added, because I lack {' and '.join(lacking)} in that channel.")
        if refusal := access.refusal(actor, frozenset({str(channel.id)})):
            raise Refused(f"Not added, because each run would be refused: {refusal}")
        made = await in_time(interaction, admin.schedules.add(actor, str(channel.id), cron, prompt, mode))
        await tell(interaction, f"Added. {schedule_text(made, admin.schedules)}", name="schedule")

    @schedule.command(name="list", description="List the schedules of this server and when they run next")
    async def list_schedules(interaction: Interaction) -> None:
        actor = admin_of(interaction)
        schedules = await in_time(interaction, admin.schedules.of(actor))
        await tell(interaction, schedules_text(schedules, admin.schedules), name="schedules")

    @schedule.command(name="remove", description="Remove a schedule; a run that has begun goes on")
    @app_commands.describe(number="its number, as /signoff schedule list shows it")
    async def remove(interaction: Interaction, number: Range[int, 1, 1_000_000]) -> None:
        actor = admin_of(interaction)
        removed = await in_time(interaction, admin.schedules.remove(actor, int(number)))
        await tell(interaction, f"Removed: schedule {removed.number} does not run again.")


def schedules_text(schedules: Sequence[Schedule], book: ScheduleBook) -> str:
    return "\n\n".join(schedule_text(one, book) for one in schedules) or NONE


def schedule_text(one: Schedule, book: ScheduleBook) -> str:
    """Write a schedule as three lines: what it is, when it runs next, and its prompt."""
    times = f"{book.cron(one).words()} ({book.terms.zone}), {quoted(one.cron)}"
    about = f"**Schedule {one.number}** in <#{one.channel}>: {times}, mode {one.mode}, by {who(one.by)}"
    following = f"Next run: <t:{one.due:.0f}:F> (<t:{one.due:.0f}:R>)."
    following = f"Paused: {inert(one.paused)}." if one.paused else following
    last = f" Last run: <t:{one.last_run:.0f}:f>." if one.last_run is not None else ""
    return f"{about}\n{following}{last}\n{quoted(one.prompt, PROMPT_SPACE)}"
