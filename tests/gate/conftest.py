"""In all tests of the gate, what the journal remembers about a call is compared with the store."""

from __future__ import annotations

from typing import Any

import pytest

from signoff.approvals.model import CallKey, ToolCall
from signoff.gate.journal import Journal


@pytest.fixture(autouse=True)
def remembered_as_stored(monkeypatch: pytest.MonkeyPatch) -> Any:
    met, enter, stale = Journal.met, Journal.enter, list[str]()

    async def stored(journal: Journal, key: CallKey) -> Any:
        return await journal.store.run(lambda tx: (tx.call(key), tx.decision_for(key, journal.turn.id)))

    async def checked_met(self: Journal, key: CallKey) -> Any:
        remembered = await met(self, key)
        if remembered != await stored(self, key):
            stale.append(f"met {key}")
        return remembered

    async def checked_enter(self: Journal, call: ToolCall, **options: Any) -> Any:
        is_new = self.known and self.known.has_none(call.key) and call.key not in self._changed
        if is_new and await stored(self, call.key) != (None, None):
            stale.append(f"enter {call.key}")
        return await enter(self, call, **options)

    monkeypatch.setattr(Journal, "met", checked_met)
    monkeypatch.setattr(Journal, "enter", checked_enter)
    yield
    assert stale == []
