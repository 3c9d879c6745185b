"""Begins the runs of schedules in Discord: a message in the channel, and a thread of its own for each run.

The message takes the place of a mention: the turn's id, its thread and its reply depend on it as on any mention.
Implements `turns.scheduling.Starter`. It claims nothing; the scheduler does.
"""

from __future__ import annotations

import logging

import discord

from signoff.approvals.model import Actor, Place
from signoff.bot import replying, sending
from signoff.bot.access import Access
from signoff.bot.directory import DiscordDirectory
from signoff.bot.origins import Origin, title
from signoff.bot.refusals import Weight
from signoff.bot.sending import Failure, nonce, patiently, while_open
from signoff.turns import messages
from signoff.turns.driver import Driver
from signoff.turns.model import Turn
from signoff.turns.schedules import Schedule
from signoff.turns.scheduling import CannotRun

log = logging.getLogger(__name__)


class DiscordStarter:
    def __init__(self, client: discord.Client, driver: Driver, access: Access) -> None:
        self._client = client
        self._driver = driver
        self._access = access
        self._directory = DiscordDirectory(client)

    async def person(self, server: str, person: str) -> Actor | None:
        return await self._directory.person(server, person)

    async def check(self, schedule: Schedule, asker: Actor) -> None:
        number = int(schedule.channel)
        channel: object = self._client.get_channel(number)
        try:
            if not isinstance(channel, discord.abc.GuildChannel):
                channel = await self._directory.channel(schedule.server, number)
        except (discord.NotFound, discord.Forbidden) as error:
            raise CannotRun(sending.reason(error)) from error
        if not isinstance(channel, discord.abc.GuildChannel) or str(channel.guild.id) != schedule.server:
            raise CannotRun("its channel is not a channel of this server")
        if self._access.refusal(asker, frozenset({schedule.channel})) is not None:
            raise CannotRun(f"the operator does not let {asker.name} ask in its channel any more")
        maker = await while_open(self._client, channel.guild.fetch_member(int(asker.id)))
        if not replying.may_ask(channel, maker):
            raise CannotRun(f"{asker.name} may no longer write in its channel")
        allowed = replying.permissions(channel, await self._directory.myself(channel.guild))
        if lacking := replying.missing(channel, allowed):
            raise CannotRun(f"I lack {' and '.join(lacking)} in its channel")

    async def begin(self, schedule: Schedule, asker: Actor) -> str:
        key = nonce("schedule", schedule.server, schedule.number, schedule.claimed)
        quoted = "\n".join(f"> {line}" for line in sending.inert(schedule.prompt).splitlines())[:1700]
        text = f"Schedule {schedule.number} of <@{asker.id}>:\n{quoted}"
        text = messages.under_mode(text, schedule.mode, markup=True)
        try:
            message = await sending.send(self._client, schedule.channel, text, key=key, weight=Weight.ESSENTIAL)
        except Failure as error:
            if sending.lasting(error):
                raise CannotRun(sending.reason(error)) from error
            raise
        return str(message.id)

    def turn(self, schedule: Schedule, message: str, asker: Actor, now: float) -> Turn:
        place = Place(schedule.server, message, message)
        return Turn(Origin(schedule.channel, message).turn, place, message, asker, schedule.prompt, now)

    async def start(self, schedule: Schedule, turn: Turn) -> None:
        admission = await self._driver.submit(turn)
        if admission.kind == "duplicate":
            return
        if admission.kind == "refused":
            await self._say(schedule.channel, f"Not run: {admission.text}", turn.message, turn.message)
            return
        try:
            place = await self._open(schedule, turn)
            if admission.kind == "queued":
                await self._say(place.channel, admission.text, None, turn.message)
        except Exception:
            # Start the turn anyway, or it would block its conversation. The reply tries to open the thread again.
            log.exception("turn %s has neither its thread nor another place", turn.id)
        await self._driver.go(turn.id)

    async def _open(self, schedule: Schedule, turn: Turn) -> Place:
        """Open the run's thread. If Discord refuses, the run replies in the channel."""
        name = title(schedule.prompt)
        try:
            await patiently(lambda: sending.open_thread(self._client, schedule.channel, turn.message, name))
            return turn.place
        except Failure as error:
            if sending.passing(error) or sending.busy(error):
                log.warning("the thread of %s is not open yet: %s", turn.id, error)
                return turn.place
            log.info("no thread for %s, answering in place: %s", turn.id, error)
        place = Place(schedule.server, schedule.channel, schedule.channel)
        await self._driver.relocate(turn.id, place)
        return place

    async def tell(self, schedule: Schedule, text: str) -> None:
        await self._say(schedule.channel, f"For the admins: {text}", None, f"{schedule.number} {text}")

    async def _say(self, channel: str, text: str, answers: str | None, about: str) -> None:
        key = nonce("schedule says", channel, about, text)
        try:
            await sending.send(self._client, channel, sending.inert(text), key=key, answers=answers)
        except Failure as error:
            log.warning("not said in channel %s: %s: %s", channel, text, error)
