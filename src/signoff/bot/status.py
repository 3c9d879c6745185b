"""The status message of a run in Discord: plain text with a Stop button, which the reply replaces.

It is a classic message and not a card of components, because a message that began with components can never hold plain
text. The button's id carries the turn's id only; `stopping` checks at the press who may stop the run.
"""

from __future__ import annotations

import logging
from typing import Any

import discord
from discord import ui

from signoff.bot import quoting, sending
from signoff.bot.buttons import OwnButton
from signoff.bot.refusals import Weight, refusals_of
from signoff.bot.sending import ARCHIVED, NOBODY, UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, Failure, nonce
from signoff.bot.split import LIMIT, Framed, sendable, split
from signoff.cards.progress import status_line, writing_line
from signoff.text.patterns import lazy_pattern
from signoff.turns.model import Turn
from signoff.turns.progress import RunStatus

log = logging.getLogger(__name__)

STOP = "Stop"
WRITING = 100
"""The most characters below a reply that is not finished, which say so."""
STOP_ID = lazy_pattern(r"signoff-stop:(?P<turn>[0-9]{1,20}-[0-9]{1,20})\Z")


def stopped_by(custom_id: object) -> str | None:
    """Return the id of the turn that a Stop button with this id stops; None if it is another button."""
    match = STOP_ID.fullmatch(custom_id) if isinstance(custom_id, str) else None
    return match["turn"] if match else None


def text_of(status: RunStatus) -> str:
    """Return the beginning of the reply if the model is writing it, else what the run is doing."""
    # Only the beginning is read: the message can show no more, and this runs again every second or two.
    if parts := split(sendable(status.text[:LIMIT]), LIMIT - WRITING):
        below = f"-# {quoting.line(writing_line(len(status.text)))}"
        return Framed(parts[0], below=below).around(parts[0])
    return quoting.line(status_line(status.ran, status.failed, status.running, status.since))


async def post(client: discord.Client, turn: Turn, status: RunStatus, answers: str | None) -> str:
    """Post the message. A repeated call for the same turn and round leads to the same message."""
    key = nonce("status", turn.id, turn.rounds)
    message = await sending.send(
        client, turn.place.channel, text_of(status), key=key, answers=answers, buttons=_buttons(turn)
    )
    return str(message.id)


async def edit(client: discord.Client, turn: Turn, status: RunStatus) -> None:
    await _change(client, turn, Weight.OPTIONAL, content=text_of(status), view=_buttons(turn))


async def delete(client: discord.Client, turn: Turn) -> None:
    """Delete the message. Raises NotDelivered if that fails."""
    try:
        refusals_of(client).check(Weight.NORMAL)
        await sending.while_open(client, _message(client, turn).delete())
    except discord.HTTPException as error:
        if error.code not in (UNKNOWN_CHANNEL, UNKNOWN_MESSAGE):
            raise sending.not_delivered(error) from error
    except Failure as error:
        raise sending.not_delivered(error) from error


async def become(client: discord.Client, turn: Turn, text: str, file: discord.File | None = None) -> bool:
    """Replace the message by the reply, or by its first part. Returns False if there is no such message any more."""
    if not turn.status_message:
        return False
    try:
        attachments = [file] if file else []
        await _change(client, turn, Weight.ESSENTIAL, content=text, view=None, attachments=attachments)
    except discord.HTTPException as error:
        if error.code != UNKNOWN_MESSAGE:
            raise
        log.info("the status message of %s was deleted, so its reply is a new message", turn.id)
        return False
    return True


async def _change(client: discord.Client, turn: Turn, weight: Weight, **what: Any) -> None:
    """Edit the message, even in an archived thread."""

    refusals_of(client).check(weight)

    async def change() -> None:
        await sending.while_open(client, _message(client, turn).edit(allowed_mentions=NOBODY, **what))

    try:
        await change()
    except discord.HTTPException as error:
        if error.code != ARCHIVED:
            raise
        await sending.unarchive(client, turn.place.channel)
        await change()


def _message(client: discord.Client, turn: Turn) -> discord.PartialMessage:
    channel = client.get_partial_messageable(int(turn.place.channel))
    return channel.get_partial_message(int(turn.status_message or 0))


def _buttons(turn: Turn) -> ui.View:
    view = ui.View(timeout=None)
    view.add_item(OwnButton(label=STOP, style=discord.ButtonStyle.secondary, custom_id=f"signoff-stop:{turn.id}"))
    return view
