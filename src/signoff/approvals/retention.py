"""Prunes old texts of calls from the record. Rows and their hashes are kept forever."""

from __future__ import annotations

from dataclasses import dataclass, field

from signoff.approvals.ports import RequestStore

EVERY = 3600.0


@dataclass
class Retention:
    """`prune` may be called at any time; it prunes at most once an hour."""

    store: RequestStore
    keep: float
    """Seconds: `[audit] keep_text`."""
    _next: float = field(default=float("-inf"), init=False)

    async def prune(self, now: float) -> int:
        """Remove texts that no row of the last `keep` seconds refers to, and record that. Returns their number."""
        if now < self._next:
            return 0
        self._next = now + EVERY
        return await self.store.run(lambda tx: tx.prune_texts(now - self.keep, at=now))
