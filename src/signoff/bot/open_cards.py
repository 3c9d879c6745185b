"""Which cards this process knows to be posted where. A memory, not the truth: the desk knows what is still open.

Discord tells of a deleted thread or channel by its own id only, so the cards in it have to be known beforehand. What
was posted before a restart is not in here; such a card ends at its deadline.
"""

from __future__ import annotations

from collections import OrderedDict

KEPT = 10_000


class OpenCards:
    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._channels: OrderedDict[str, str] = OrderedDict()
        self._gone: OrderedDict[str, None] = OrderedDict()

    def note(self, card: str, channel: str) -> None:
        self._channels[card] = channel
        while len(self._channels) > self._kept:
            self._channels.popitem(last=False)

    def forget(self, card: str) -> None:
        self._channels.pop(card, None)

    def close(self, channel: str) -> list[str]:
        """The channel is gone: the cards that were in it."""
        self._gone[channel] = None
        while len(self._gone) > self._kept:
            self._gone.popitem(last=False)
        lost = [card for card, where in self._channels.items() if where == channel]
        for card in lost:
            self.forget(card)
        return lost

    def is_gone(self, channel: str) -> bool:
        """Whether somebody deleted this channel, so that it must not be opened again."""
        return channel in self._gone
