"""Prunes old texts of calls from the record, and old files of askers. Rows and their hashes are kept forever."""

from __future__ import annotations

from dataclasses import field

from signoff.approvals.ports import RequestStore
from signoff.dataclass import dataclass

EVERY = 3600.0


@dataclass
class Retention:
    """`prune` may be called at any time; it prunes at most once an hour."""

    store: RequestStore
    keep: float
    """Seconds: `[audit] keep_text`."""
    _next: float = field(default=float("-inf"), init=False)

    async def prune(self, now: float) -> int:
        """Remove texts that no row of the last `keep` seconds refers to, and record that. Returns their number.

        Files that askers sent along before that time are removed too.
        """
        if now < self._next:
            return 0
        self._next = now + EVERY
        await self.store.run(lambda tx: tx.prune_files(now - self.keep))
        return await self.store.run(lambda tx: tx.prune_texts(now - self.keep, at=now))
