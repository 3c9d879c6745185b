"""Calls of one model response start in the order in which they are on the card.

They still run concurrently: a call waits only until those before it have started, or will not start. A tool that is
declared with `metadata={"independent": True}` neither waits nor is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from signoff.approvals.model import CallKey


@dataclass
class StartOrder:
    _ahead: dict[CallKey, asyncio.Event] = field(default_factory=dict[CallKey, asyncio.Event])
    """Each validated call that has neither started nor ended, and the event that says so."""

    def expect(self, key: CallKey) -> None:
        self._ahead[key] = asyncio.Event()

    def expects(self, key: CallKey) -> bool:
        return key in self._ahead

    def passed(self, key: CallKey) -> None:
        """The call starts now, or will not start."""
        if event := self._ahead.pop(key, None):
            event.set()

    async def wait_for(self, earlier: Iterable[CallKey]) -> None:
        for key in earlier:
            if event := self._ahead.get(key):
                await event.wait()
