"""The command tree: `/signoff` as Discord registers it, the check before each command, and the handling of errors.

No error is swallowed: the person reads the reason of a refusal, or one sentence about any other error, which is logged.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Any

import discord
from discord import app_commands

from signoff.approvals.errors import DeskError
from signoff.bot.access import Access
from signoff.bot.admin.authority import owner_of
from signoff.bot.admin.autocomplete import Suggestions
from signoff.bot.admin.inbox_command import add_inbox_command
from signoff.bot.admin.listing import Mask
from signoff.bot.admin.record import Record, add_record_command
from signoff.bot.admin.responses import inert, tell
from signoff.bot.admin.rule_commands import add_rule_commands
from signoff.bot.admin.schedule_commands import add_schedule_commands
from signoff.bot.admin.usage_command import add_usage_command
from signoff.bot.admin.work_commands import add_work_commands
from signoff.bot.inbox import Inbox
from signoff.bot.sending import Failure
from signoff.text.secrets.masker import Masker
from signoff.turns.administration import Administration

log = logging.getLogger(__name__)

FOR_EVERYBODY = frozenset({"inbox", "stop", "usage"})
"""Commands that check by themselves what a person may see and do."""
FAILED = "The command failed, and it may or may not have taken effect. The reason is in the bot's log."
STRANGE = "I don't recognize this command in this form. Discord may show an old list: restart Discord and try again."


def signoff_group(
    admin: Administration,
    record: Record,
    mask: Mask,
    now: Callable[[], float],
    access: Access,
    inbox: Inbox | None = None,
) -> app_commands.Group:
    """Build the `/signoff` group. Discord shows the whole group or nothing, so it shows it to everybody.

    Everybody may use `inbox`, and `stop` and `usage` for their own runs. Each other command checks who uses it.

    If people may use it in direct messages for their grants, the other commands say there that they work only in a
    server.
    """
    direct = bool(access.dm_users)
    group = app_commands.Group(
        name="signoff",
        description="Rules, grants and the record of approvals in this server",
        guild_only=not direct,
        allowed_contexts=app_commands.AppCommandContext(guild=True, dm_channel=direct, private_channel=False),
        allowed_installs=app_commands.AppInstallationType(guild=True, user=False),
    )
    suggestions = Suggestions(admin, mask, access)
    add_rule_commands(group, admin, suggestions)
    add_work_commands(group, admin, suggestions, mask, now, access)
    add_record_command(group, record, suggestions)
    add_inbox_command(group, inbox)
    add_usage_command(group, admin, access)
    add_schedule_commands(group, admin, access)
    return group


class AdminTree(app_commands.CommandTree[discord.Client]):
    def __init__(
        self,
        client: discord.Client,
        admin: Administration,
        masker: Masker | None,
        now: Callable[[], float],
        access: Access,
        inbox: Inbox | None = None,
    ) -> None:
        super().__init__(client)
        self._access = access
        # Without the installation's masker, use a key of this process, so that secrets are always masked.
        mask = (masker or Masker(secrets.token_bytes(32))).mask_args
        self.record = Record(admin)
        self.add_command(signoff_group(admin, self.record, mask, now, access, inbox))
        self.registering: asyncio.Task[None] | None = None

    def register(self) -> None:
        """Register the commands in the background: a slow or refused registration delays nothing."""
        self.registering = asyncio.create_task(self._register(), name="register-commands")

    async def _register(self) -> None:
        try:
            await self.sync()
        except Exception as error:
            if not self.client.is_closed():
                said = " ".join(str(error).split())[:300] or type(error).__name__
                log.error("Discord refused the /signoff commands, so it keeps the ones that it has: %s", said)

    async def interaction_check(self, interaction: discord.Interaction[discord.Client], /) -> bool:
        """Runs before every command and suggestion; most of them then also require an admin."""
        if interaction.command is not None and interaction.command.name in FOR_EVERYBODY:
            return True
        try:
            owner_of(interaction, self._access)
        except DeskError as refusal:
            await _refuse(interaction, str(refusal))
            return False
        return True

    async def on_error(
        self, interaction: discord.Interaction[discord.Client], error: app_commands.AppCommandError, /
    ) -> None:
        await self._explain(interaction, error)

    async def _call(self, interaction: discord.Interaction[discord.Client]) -> None:
        # discord.py reports only its own errors to `on_error`; options that it cannot read would get no response.
        try:
            await super()._call(interaction)  # pyright: ignore[reportPrivateUsage]
        except app_commands.AppCommandError:
            raise
        except Exception as error:
            await self._explain(interaction, error)

    async def _explain(self, interaction: discord.Interaction[discord.Client], error: Exception) -> None:
        cause = error.original if isinstance(error, app_commands.CommandInvokeError) else error
        if isinstance(cause, DeskError):
            await _refuse(interaction, str(cause))
            return
        log.error("a command by %s failed", interaction.user.id, exc_info=cause)
        # If discord.py could not call the command, nothing was done.
        await _refuse(interaction, STRANGE if cause is error else FAILED)


async def _refuse(interaction: discord.Interaction[Any], text: str) -> None:
    try:
        if interaction.type is not discord.InteractionType.autocomplete:
            await tell(interaction, inert(text))
        elif not interaction.response.is_done():
            await interaction.response.autocomplete([])
    except Failure as failure:
        log.warning("a command by %s got no answer: %s", interaction.user.id, failure)
