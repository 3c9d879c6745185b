"""Posts every decision to a log channel, if the operator named one in this server.

It subscribes to the desk and can change nothing. A line that cannot be posted is logged and dropped. The desk's events
already have masked arguments.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection
from typing import Any

import discord

from signoff.approvals.model import ENDED_AS
from signoff.bot import quoting, sending
from signoff.bot.sending import Failure, nonce
from signoff.text.visible import clip

log = logging.getLogger(__name__)

ARGUMENTS = 600


class LogChannels:
    def __init__(self, client: discord.Client, channels: Collection[str]) -> None:
        self._client = client
        self._channels = tuple(channels)
        self._posting: set[asyncio.Task[None]] = set()

    def __call__(self, event: dict[str, Any]) -> None:
        for channel in self._channels:
            place = self._client.get_channel(int(channel))
            if isinstance(place, discord.abc.GuildChannel | discord.Thread) and str(place.guild.id) == event["server"]:
                task = asyncio.get_running_loop().create_task(self._post(channel, event))
                self._posting.add(task)
                task.add_done_callback(self._posting.discard)

    async def _post(self, channel: str, event: dict[str, Any]) -> None:
        try:
            await sending.send(self._client, channel, worded(event), key=nonce("log", channel, event["request"]))
        except Failure as error:
            log.warning("a decision was not posted to the log channel %s: %s", channel, error)


def worded(event: dict[str, Any]) -> str:
    by = f"<@{event['by']}>" if event["by"] else "nobody"
    how = f" ({quoting.escape(clip(str(event['note']), 200)[0])})" if event["note"] else ""
    arguments, cut = clip(json.dumps(event["arguments"], ensure_ascii=False), ARGUMENTS)
    tail = "" if not cut else " (shortened; the record has the full arguments)"
    state = next((word for choice, word in ENDED_AS.items() if choice == event.get("choice")), str(event["state"]))
    head = f"**{state.upper()}** {quoting.code(str(event['tool']))} by {by}{how}, request {event['request']}"
    if event.get("answer") is not None:
        answer, cut = clip(json.dumps(event["answer"], ensure_ascii=False), ARGUMENTS)
        tail += f"\nAnswer:\n{quoting.block(answer)[0]}" + (" (shortened; the record has all of it)" if cut else "")
    return f"{head}\n{quoting.block(arguments)[0]}{tail}"
