"""Missing approvers: roles that were deleted and people who left the server. Nobody replaces them."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from signoff.approvals.approvers import with_missing
from signoff.approvals.automatic import settled_for_nobody
from signoff.approvals.model import DIRECT, Batch
from signoff.approvals.ports import DeskTx, Directory
from signoff.approvals.settling import Ended, Settler

log = logging.getLogger(__name__)


async def find_missing(directory: Directory | None, server: str, roles_and_people: Collection[str]) -> Collection[str]:
    """Return those that are missing. If the lookup fails, return none: each click is checked anyway."""
    if directory is None or server == DIRECT or not roles_and_people:
        return ()
    try:
        return await directory.missing(server, sorted(roles_and_people))
    except Exception as error:
        log.warning("could not look for missing approvers: %s", error)
        return ()


def note_missing(tx: DeskTx, settler: Settler, batch: Batch, missing: Collection[str], now: float) -> Ended | None:
    """Note the missing approvers on open questions, and reject those that nobody can decide now.

    Returns None if nothing changed.
    """
    changed = {old.id: new for old in batch.open_questions if (new := with_missing(missing, old)) != old}
    if not changed:
        return None
    for request in changed.values():
        tx.rewrite(request)
        settler.record(tx, "approver_gone", batch, request, None, {"gone": ", ".join(request.missing)}, now)
    batch = replace(batch, requests=tuple(changed.get(r.id, r) for r in batch.requests))
    return settler.settle(tx, batch, settled_for_nobody(batch, now), now)
