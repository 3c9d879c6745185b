"""A book of calls that tells when each tool ended and how long it took. The book itself does the work."""

from __future__ import annotations

import time
from dataclasses import field
from typing import Any, Literal

from signoff.approvals.model import ApprovalRequest, CallKey, ToolCall
from signoff.dataclass import dataclass
from signoff.gate.book import CallBook, Entry, Go
from signoff.turns.activity import Activity, CallEnded
from signoff.turns.model import CallRecord, Turn


@dataclass
class ObservedBook(CallBook):
    book: CallBook
    turn: Turn
    activity: Activity
    _started: dict[CallKey, tuple[float, str]] = field(default_factory=dict[CallKey, tuple[float, str]])
    """Call key -> when it started, and the id of its request (empty: none)."""

    async def met(self, key: CallKey) -> tuple[CallRecord | None, ApprovalRequest | None]:
        return await self.book.met(key)

    async def enter(self, call: ToolCall, *, asks: bool, held: bool, read_only: bool) -> Entry:
        entry = await self.book.enter(call, asks=asks, held=held, read_only=read_only)
        if isinstance(entry, Go):
            self._started[call.key] = time.monotonic(), entry.request.id if entry.request else ""
        return entry

    async def done(self, call: ToolCall, result: Any) -> Any:
        stored = await self.book.done(call, result)
        self._tell(call, "done")
        return stored

    async def failed(self, call: ToolCall, words: str, *, unknown: bool = False) -> None:
        self._tell(call, "unknown" if unknown else "failed")
        await self.book.failed(call, words, unknown=unknown)

    async def withdraw(self, call: ToolCall) -> None:
        self._started.pop(call.key, None)
        await self.book.withdraw(call)

    def _tell(self, call: ToolCall, result: Literal["done", "failed", "unknown"]) -> None:
        started, request = self._started.pop(call.key, (time.monotonic(), ""))
        self.activity.tell(CallEnded(self.turn, call.tool, request, result, time.monotonic() - started))
