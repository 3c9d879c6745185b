"""The messages that show one card: the card in its conversation, and its copies in approvals channels.

Every change of a card goes to all of them. Pure: this module knows where a card is shown and sends nothing.
"""

from __future__ import annotations

from signoff.approvals.model import Batch, CardCopy


def shown_in(batch: Batch) -> tuple[CardCopy, ...]:
    """Return the messages that show this card, the card in the conversation first."""
    own = () if batch.card_message is None else (CardCopy(batch.place.channel, batch.card_message),)
    return (*own, *batch.copies)


def link(batch: Batch) -> str:
    """Return the address of the card in its conversation, or of the conversation while the card is not posted."""
    place = batch.place
    card = f"/{batch.card_message}" if batch.card_message and batch.card_message.isdecimal() else ""
    server = "@me" if place.is_direct else place.server
    return f"https://discord.com/channels/{server}/{place.channel}{card}"


def link_line(batch: Batch) -> str:
    """Return the line above a copy, as markdown. Discord shows the address as the name of the conversation."""
    return f"-# From {link(batch)}"
