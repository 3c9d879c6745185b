"""SignoffClient: Discord's events, each handed to the part that knows what to do with it. No logic of its own.

Intents: guilds, guild messages, direct messages. Message Content, a privileged one, is not asked for: Discord delivers
the text of mentions, of replies that ping us and of direct messages without it, and nothing else is read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Any, cast

import discord

from signoff.bot.access import Access
from signoff.bot.admin.record import Record, RecordButton
from signoff.bot.admin.tree import AdminTree
from signoff.bot.buttons import Clicks
from signoff.bot.card_view import ApprovalButton
from signoff.bot.connection import point_at, run_bot
from signoff.bot.deletions import LostCards
from signoff.bot.front_end import DiscordFrontEnd
from signoff.bot.gone import GoneChannels
from signoff.bot.lost_approvers import LostApprovers
from signoff.bot.mentions import Chat
from signoff.bot.ports import Desk, Editor, Intake, Now
from signoff.bot.sending import NOBODY
from signoff.cards.actions import Offers
from signoff.turns.administration import Administration

__all__ = ["SignoffClient", "point_at", "run_bot"]

log = logging.getLogger(__name__)


def intents() -> discord.Intents:
    return discord.Intents(guilds=True, guild_messages=True, dm_messages=True)


class SignoffClient(discord.Client):
    """Built first, because the driver needs its `front_end`; given the desk and the driver with `serve`; then run."""

    clicks: Clicks
    chat: Chat
    lost: LostCards
    lost_approvers: LostApprovers
    record: Record

    def __init__(self, access: Access, now: Now = time.time, **options: Any) -> None:
        # We never join a voice channel, so what is missing for that is nobody's concern.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        # No message is kept in memory: deletions are told by id.
        super().__init__(intents=intents(), allowed_mentions=NOBODY, max_messages=None, **options)
        self._access = access
        self._now = now
        self._gone = GoneChannels()
        self._intake: Intake | None = None
        self.tree: AdminTree | None = None
        self.front_end = DiscordFrontEnd(self, self._gone, now)

    def serve(
        self,
        desk: Desk,
        intake: Intake,
        *,
        orders: Administration | None = None,
        editor: Editor | None = None,
        offers: Offers | None = None,
    ) -> None:
        """Say whom to ask about clicks and whom to give mentions. Before `run_bot`.

        Without `orders` there are no commands. `offers` is what cards offer beyond accept and reject, and the masker of
        arguments on cards and in lists; editing takes an `editor`.
        """
        self._intake = intake
        offers = replace(offers or Offers(), edit=editor is not None)
        self.front_end.offers = offers
        self.clicks = Clicks(desk, self.front_end.refresh_card, self._now, editor=editor, offers=offers)
        self.chat = Chat(self, intake, self._access, self._now)
        self.lost = LostCards(self, desk, self._gone)
        self.lost_approvers = LostApprovers(self, desk, self.front_end.refresh_card)
        if orders is not None:
            self.tree = AdminTree(self, orders, offers.masker, self._now, self._access)
            self.record = self.tree.record

    async def setup_hook(self) -> None:
        """Logged in, not yet connected: buttons are known before the first click, and stored work is taken up."""
        if self._intake is None:
            raise RuntimeError("serve() comes before run_bot()")
        self.add_dynamic_items(ApprovalButton)
        if self.tree is not None:
            self.add_dynamic_items(RecordButton)
            self.tree.register()
        await self._intake.recover()

    async def close(self) -> None:
        # The library says `ready` two seconds late, and would still say it to a client that was closed meanwhile.
        ready = cast("asyncio.Task[None] | None", getattr(self._connection, "_ready_task", None))
        if ready is not None:
            ready.cancel()
        await super().close()

    async def on_ready(self) -> None:
        log.info("signed in as %s, in %d servers", self.user, len(self.guilds))
        # Nobody told us of roles that were deleted while we were not connected.
        await self.lost_approvers.look()

    async def on_message(self, message: discord.Message) -> None:
        await self.chat.hear(message)

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        await self.clicks.unclaimed(interaction)

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        await self.lost.messages(event.channel_id, [event.message_id])

    async def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent) -> None:
        await self.lost.messages(event.channel_id, sorted(event.message_ids))

    async def on_raw_thread_delete(self, event: discord.RawThreadDeleteEvent) -> None:
        await self.lost.thread(event.thread_id, event.parent_id)

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        await self.lost.channel(channel.id)

    async def on_guild_role_delete(self, role: discord.Role) -> None:
        await self.lost_approvers.role(role.id)

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        log.exception("an event was dropped: %s", event_method)
