"""The client, which is the connection to Discord, and the bot, which hands each event to the part that handles it.

The client is built first and knows nothing of approvals; the directory and the front end need nothing but it. The bot
is built last, from finished parts. Neither has logic of its own.

Intents: guilds, guild messages, direct messages. The bot does not ask for Message Content, a privileged intent. Without
it, Discord delivers the text of mentions, of replies that ping the bot and of direct messages; the bot reads no others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

import discord

from signoff.approvals.desk import Desk
from signoff.approvals.edits import Editor
from signoff.bot.access import Access
from signoff.bot.admin.record_pages import is_page, read_id
from signoff.bot.admin.tree import AdminTree
from signoff.bot.attachments import FileLimits
from signoff.bot.buttons import parse, pressed_id
from signoff.bot.catch_up import CatchUp
from signoff.bot.clicks import Clicks
from signoff.bot.connection import run_client
from signoff.bot.deletions import DeletedCards, MissingApprovers
from signoff.bot.front_end import DiscordFrontEnd
from signoff.bot.mentions import Mentions
from signoff.bot.refusals import CountingClient
from signoff.bot.sending import NOBODY
from signoff.bot.status import stopped_by
from signoff.bot.stopping import Stopping
from signoff.turns.administration import Administration
from signoff.turns.driver import Driver
from signoff.turns.listening import Listening

log = logging.getLogger(__name__)


def intents() -> discord.Intents:
    return discord.Intents(guilds=True, guild_messages=True, dm_messages=True)


class SignoffClient(CountingClient):
    """A connection with the least intents, which pings nobody and keeps no messages in memory."""

    def __init__(self, **options: Any) -> None:
        # The bot never joins a voice channel, so nobody needs the warnings about missing voice packages.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        # Events about deleted messages carry ids, so no message needs to be cached.
        super().__init__(intents=intents(), allowed_mentions=NOBODY, max_messages=None, **options)

    async def close(self) -> None:
        # discord.py sends `ready` two seconds late, even to a client that was closed in the meantime.
        ready = cast("asyncio.Task[None] | None", getattr(self._connection, "_ready_task", None))
        if ready is not None:
            ready.cancel()
        await super().close()

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        log.exception("an event was dropped: %s", event_method)


class Bot:
    """Handles the events of a client. Without `administration` there are no commands; without `editor`, no edits.

    Without `listening`, mentions that were sent while the bot was offline are not looked for.
    """

    def __init__(
        self,
        client: discord.Client,
        front_end: DiscordFrontEnd,
        desk: Desk,
        driver: Driver,
        access: Access,
        *,
        administration: Administration | None = None,
        editor: Editor | None = None,
        listening: Listening | None = None,
        catch_up: float = 0.0,
        now: Callable[[], float] = time.time,
        files: FileLimits = FileLimits(),  # noqa: B008 - it is frozen
        at_first_ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.client = client
        self._at_first_ready = at_first_ready
        self._driver = driver
        self.clicks = Clicks(desk, front_end.draw_card, now, front_end.offers, editor=editor, drawing=front_end.drawing)
        self.stopping = Stopping(administration)
        self.mentions = Mentions(client, driver, access, now, listening, files)
        self.catch_up = CatchUp(client, self.mentions, listening, catch_up, now) if listening else None
        self.deleted_cards = DeletedCards(client, desk, front_end.deleted)
        self.missing_approvers = MissingApprovers(client, desk, front_end.refresh_card)
        self.tree: AdminTree | None = None
        if administration is not None:
            self.tree = AdminTree(client, administration, front_end.offers.masker, now, access, self.clicks.inbox)
        for handler in (
            self.on_ready,
            self.on_disconnect,
            self.on_resumed,
            self.on_message,
            self.on_interaction,
            self.on_raw_message_delete,
            self.on_raw_bulk_message_delete,
            self.on_raw_thread_delete,
            self.on_guild_channel_delete,
            self.on_guild_role_delete,
        ):
            client.event(handler)

    async def run(self, token: str) -> None:
        """Serve until the client is closed. Raises LoginFailed with a line for the operator."""
        try:
            await run_client(self.client, token, self._prepare)
        finally:
            if self.catch_up is not None:
                await self.catch_up.stop()

    async def _prepare(self) -> None:
        """Register the commands, and recover stored work. Runs between login and connection."""
        if self.tree is not None:
            self.tree.register()
        await self._driver.recover()

    async def on_ready(self) -> None:
        log.info("signed in as %s, in %d servers", self.client.user, len(self.client.guilds))
        # Discord does not report roles that were deleted while the bot was not connected.
        await self.missing_approvers.look()
        if self.catch_up is not None:
            await self.catch_up.run()
        check, self._at_first_ready = self._at_first_ready, None
        if check is not None:
            await check()

    async def on_disconnect(self) -> None:
        if self.catch_up is not None:
            self.catch_up.disconnected()

    async def on_resumed(self) -> None:
        if self.catch_up is not None:
            self.catch_up.resumed()

    async def on_message(self, message: discord.Message) -> None:
        await self.mentions.hear(message)

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        """Handle a press or a submitted form. The id of a button says what it does, also after a restart."""
        custom_id = pressed_id(interaction)
        if (locator := parse(custom_id)) is not None:
            await self.clicks.click(interaction, locator)
        elif self.tree is not None and is_page(custom_id):
            await self.tree.record.turn(interaction, read_id(custom_id))
        elif (turn := stopped_by((interaction.data or {}).get("custom_id"))) is not None:
            await self.stopping.press(interaction, turn)
        else:
            await self.clicks.unclaimed(interaction)

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        await self.deleted_cards.messages(event.channel_id, [event.message_id])

    async def on_raw_bulk_message_delete(self, event: discord.RawBulkMessageDeleteEvent) -> None:
        await self.deleted_cards.messages(event.channel_id, sorted(event.message_ids))

    async def on_raw_thread_delete(self, event: discord.RawThreadDeleteEvent) -> None:
        await self.deleted_cards.thread(event.thread_id, event.parent_id)

    async def on_guild_channel_delete(self, channel: discord.abc.GuildChannel) -> None:
        await self.deleted_cards.channel(channel.id)

    async def on_guild_role_delete(self, role: discord.Role) -> None:
        await self.missing_approvers.role(role.id)
