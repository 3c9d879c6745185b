"""Reaches approvers in Discord: pings, direct messages, copies of cards. Implements `turns.notifying.Notifier`.

A message pings only the roles and people that it names. A message that cannot be sent is logged, and its reason is said
in the conversation. The card goes on in its own place in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

import discord

from signoff.approvals.model import Batch
from signoff.approvals.notify import DM, PING
from signoff.bot import earlier_posts, quoting, sending
from signoff.bot.front_end import DiscordFrontEnd
from signoff.bot.linked_cards import link
from signoff.bot.people import escalated_specs, mentions, pings
from signoff.bot.refusals import Braked, Weight, refusals_of
from signoff.bot.sending import ARCHIVED, NOBODY, UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, Failure, nonce
from signoff.cards import notices
from signoff.cards.model import Person, RoleRef
from signoff.errors import CardDelayed, CardFailed
from signoff.turns.model import Notice
from signoff.turns.notifying import NotAllTold

log = logging.getLogger(__name__)

MOST_DIRECT = 10
"""The most people who get a direct message about one card."""
OTHER_SERVER = "it belongs to another server"
NOT_KNOWN = "I know no member of some approver roles"
TOO_MANY = f"more than {MOST_DIRECT} people may decide"
CLOSED = "some approvers accept no direct messages from me"
REFUSED = "Discord refused some of them"


class DiscordNotifier:
    def __init__(self, client: discord.Client, front_end: DiscordFrontEnd) -> None:
        self._client = client
        self._front_end = front_end

    async def post_copy(self, batch: Batch, channel: str) -> str:
        try:
            # The raw call: before the gateway is connected, discord.py knows no server to make a channel object of.
            target = await sending.while_open(self._client, self._client.http.get_channel(int(channel)))
        except Failure as error:
            later = sending.passing(error) or sending.busy(error)
            raise (CardDelayed if later else CardFailed)(sending.reason(error)) from error
        if str(target.get("guild_id")) != batch.place.server:
            raise CardFailed(OTHER_SERVER)
        return await self._front_end.post_copy(batch, channel)

    async def find_copy(self, batch: Batch, channel: str) -> str | None:
        try:
            posted = await earlier_posts.cards(self._client, batch, channel)
        except Failure as error:
            raise sending.not_delivered(error) from error
        return posted[-1] if posted else None

    async def ping(self, batch: Batch, problems: Sequence[str]) -> Notice | None:
        whom = pings(batch)
        lines = [quoting.line(notices.opened(batch)) + "."]
        lines += [" ".join(quoting.line((one,)) for one in whom)] if whom else []
        lines += [quoting.line(notices.NO_ROLE)] if notices.names_no_role(batch) else []
        lines += [f"-# {quoting.trusted(problem)}" for problem in problems]
        return await self._say(batch, PING, batch.place.channel, "\n".join(lines), whom, batch.card_message)

    async def send_directly(self, batch: Batch, told: Collection[str]) -> tuple[Sequence[Notice], str]:
        people, unreached = self._people(batch)
        sent: list[Notice] = []
        delay = ""
        for identifier in people[:MOST_DIRECT]:
            text = f"{quoting.line(notices.opened(batch))}.\n{link(batch)}"
            try:
                opening = self._client.create_dm(discord.Object(int(identifier)))
                direct = str((await sending.while_open(self._client, opening)).id)
                if direct in told:
                    continue
                key = nonce(DM, batch.id, identifier)
                message = await sending.send(self._client, direct, text, key=key, weight=Weight.NORMAL)
                sent.append(Notice(batch.id, DM, direct, str(message.id)))
            except Failure as error:
                log.warning("no direct message to %s about %s: %s", identifier, batch.id, sending.reason(error))
                if _may_pass(error):
                    delay = sending.reason(error)
                else:
                    unreached = unreached or (CLOSED if isinstance(error, discord.Forbidden) else REFUSED)
        if delay:
            raise NotAllTold(delay, sent)
        if len(people) > MOST_DIRECT:
            unreached = unreached or TOO_MANY
        if not unreached:
            return sent, ""
        log.info("the approvers of %s are pinged in the channel instead: %s", batch.id, unreached)
        return sent, f"I could not send a direct message to everybody: {unreached}."

    def _people(self, batch: Batch) -> tuple[list[str], str]:
        """Return the people to write to, as far as they are known, and why some are not known.

        Without the privileged members intent, Discord tells only about members who were active.
        """
        server = self._client.get_guild(int(batch.place.server))
        people: dict[str, None] = {}
        unreached = NOT_KNOWN if notices.names_no_role(batch) else ""
        for one in pings(batch):
            if isinstance(one, Person):
                people[one.id] = None
                continue
            role = server.get_role(int(one.id)) if server else None
            members = [str(member.id) for member in role.members if not member.bot] if role else []
            people |= dict.fromkeys(members)
            unreached = unreached if members else NOT_KNOWN
        barred = {batch.asker.id} if all(request.four_eyes for request in batch.open_questions) else set[str]()
        return [identifier for identifier in people if identifier not in barred], unreached

    async def report_escalation(self, batch: Batch, kind: str, told: Collection[str] = ()) -> Sequence[Notice]:
        whom = pings(batch, escalated_specs)
        text = quoting.line(notices.escalated(batch)) + "."
        below = [(batch.place.channel, batch.card_message), *((copy.channel, copy.message) for copy in batch.copies)]
        sent: list[Notice] = []
        delay: NotAllTold | None = None
        for channel, message in below:
            try:
                notice = await self._say(batch, kind, channel, text, whom, message) if channel not in told else None
                sent += [notice] if notice else []
            except NotAllTold as error:
                delay = error
        if delay:
            raise NotAllTold(str(delay), sent)
        return sent

    async def _say(
        self,
        batch: Batch,
        kind: str,
        channel: str,
        text: str,
        whom: Sequence[Person | RoleRef],
        answers: str | None,
    ) -> Notice | None:
        """Post a message about a card. Returns None if it is refused for good; raises NotAllTold if that may pass."""
        key = nonce(kind, batch.id, channel)
        try:
            message = await sending.send(
                self._client, channel, text, key=key, answers=answers, pings=mentions(whom), weight=Weight.NORMAL
            )
        except Failure as error:
            log.warning("the %s about %s was not posted in %s: %s", kind, batch.id, channel, sending.reason(error))
            if _may_pass(error):
                raise NotAllTold(sending.reason(error)) from error
            return None
        return Notice(batch.id, kind, channel, str(message.id))

    async def remove(self, notice: Notice, batch: Batch) -> None:
        """Change a direct message into one line, and delete any other message."""
        try:
            try:
                await self._remove(notice, batch)
            except discord.HTTPException as error:
                if error.code != ARCHIVED:
                    raise
                await sending.unarchive(self._client, notice.channel)
                await self._remove(notice, batch)
        except discord.HTTPException as error:
            if error.code not in (UNKNOWN_CHANNEL, UNKNOWN_MESSAGE) and not sending.lasting(error):
                raise sending.not_delivered(error) from error
            log.info("the %s about %s could not be removed: %s", notice.kind, batch.id, sending.reason(error))
        except Failure as error:
            raise sending.not_delivered(error) from error

    async def _remove(self, notice: Notice, batch: Batch) -> None:
        channel = self._client.get_partial_messageable(int(notice.channel))
        message = channel.get_partial_message(int(notice.message))
        refusals_of(self._client).check(Weight.NORMAL)
        if notice.kind == DM:
            text = f"{quoting.line(notices.settled(batch))}.\n{link(batch)}"
            await sending.while_open(self._client, message.edit(content=text, allowed_mentions=NOBODY))
        else:
            await sending.while_open(self._client, message.delete())


def _may_pass(error: BaseException) -> bool:
    """Whether sending again later may help."""
    return sending.passing(error) or sending.busy(error) or isinstance(error, Braked)
