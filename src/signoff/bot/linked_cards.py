"""The way from a copy of a card to the card in its conversation. Pure: this module sends nothing."""

from __future__ import annotations

from signoff.approvals.model import Batch


def link(batch: Batch) -> str:
    """Return the address of the card in its conversation, or of the conversation while the card is not posted."""
    place = batch.place
    card = f"/{batch.card_message}" if batch.card_message and batch.card_message.isdecimal() else ""
    server = "@me" if place.is_direct else place.server
    return f"https://discord.com/channels/{server}/{place.channel}{card}"


def link_line(batch: Batch) -> str:
    """Return the line above a copy, as markdown. Discord shows the address as the name of the conversation."""
    return f"-# From {link(batch)}"
