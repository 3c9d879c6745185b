"""Questions of admins about the record as a whole."""

from __future__ import annotations

from typing import Any, cast

import pytest

from signoff.approvals.audit import BROKEN, PRUNED
from signoff.store import Store
from signoff.turns.administration import Administration

NONE = cast(Any, None)


@pytest.mark.parametrize("kind", [BROKEN, PRUNED])
async def test_what_concerns_the_record_as_a_whole_is_shown_in_every_server(store: Store, kind: str) -> None:
    """An alarm that nobody can find would read as all clear."""
    await store.run(lambda tx: tx.audit(kind, "", "", "signoff", {}, 1.0))
    await store.run(lambda tx: tx.audit("asked", "other server", "r", "1", {}, 2.0))
    office = Administration(NONE, NONE, NONE, NONE, NONE, NONE, store)
    assert [row.kind for row in await office.audit("900000000000000001", kind=kind)] == [kind]
    assert await office.audit("900000000000000001") == []
    assert await office.audit("900000000000000001", kind="asked") == []
