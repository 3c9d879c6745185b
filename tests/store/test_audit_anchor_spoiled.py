"""An unreadable anchor beside an empty record."""

from __future__ import annotations

from pathlib import Path

from signoff.store import Store
from signoff.store.anchor import anchor_path


async def test_a_spoiled_anchor_is_recorded_even_where_every_row_is_gone(tmp_path: Path) -> None:
    """Row 30: an unreadable anchor beside an empty record does not count as a new database."""
    database = tmp_path / "signoff.db"
    anchor_path(database).write_text("not an anchor")
    async with await Store.open(f"sqlite:///{database}") as store:
        assert [row.kind for row in await store.run(lambda tx: tx.audit_page(""))] == ["chain_broken"]
