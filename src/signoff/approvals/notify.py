"""The ways to tell approvers that a card is open: a ping, a direct message, or a copy of the card in another channel.

A way is "none", "ping", "dm" or "channel:ID". A card is announced in every way that one of its calls asks for, to
everybody who may decide one of its calls. Pure: this module names the ways and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from signoff.approvals.model import Batch

NONE = "none"
PING = "ping"
DM = "dm"
CHANNEL = "channel:"


def combined_notify(ways: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Return all ways that these rules name; None if no rule names one."""
    named = [way for way in ways if way is not None]
    return tuple(dict.fromkeys(one for way in named for one in way)) if named else None


def ways_of_card(ways: Iterable[tuple[str, ...] | None]) -> tuple[str, ...]:
    """Return the ways for a card whose calls have these, without "none"."""
    return tuple(way for way in combined_notify(ways) or () if way != NONE)


def without_copies(ways: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Leave out the approvals channels: a question to the asker does not belong there."""
    return None if ways is None else tuple(way for way in ways if not way.startswith(CHANNEL))


def copy_channels(batch: Batch) -> tuple[str, ...]:
    """Return the approvals channels that show a copy of this card."""
    channels = (way.removeprefix(CHANNEL) for way in batch.notify if way.startswith(CHANNEL))
    return tuple(channel for channel in channels if channel != batch.place.channel)
