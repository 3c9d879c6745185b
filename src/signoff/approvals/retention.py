"""How long the record keeps the texts of calls. Rows and their hashes stay for ever; only texts kept apart go."""

from __future__ import annotations

from dataclasses import dataclass, field

from signoff.approvals.ports import RequestStore

EVERY = 3600.0


@dataclass
class Retention:
    """Call `prune` as often as you like: it looks once an hour."""

    store: RequestStore
    keep: float
    """Seconds: `[audit] keep_text`."""
    _next: float = field(default=float("-inf"), init=False)

    async def prune(self, now: float) -> int:
        """Remove texts that no row of the last `keep` seconds refers to; how many. Recorded if there were any."""
        if now < self._next:
            return 0
        self._next = now + EVERY
        return await self.store.run(lambda tx: tx.prune_texts(now - self.keep, at=now))
