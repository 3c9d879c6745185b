"""Approvers who are gone: a role that was deleted, a person who left. Nobody stands in for them."""

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
    """Those that name nobody any more. What cannot be found out is left to the click."""
    if directory is None or server == DIRECT or not roles_and_people:
        return ()
    try:
        return await directory.missing(server, sorted(roles_and_people))
    except Exception as error:
        log.warning("could not look whether those who may decide are still there: %s", error)
        return ()


def note_missing(tx: DeskTx, settler: Settler, batch: Batch, gone: Collection[str], now: float) -> Ended | None:
    """Write it on the open requests that name them, and settle what nobody can decide now. None: nothing changed."""
    changed = {old.id: new for old in batch.open_questions if (new := with_missing(gone, old)) != old}
    if not changed:
        return None
    for request in changed.values():
        tx.rewrite(request)
        settler.record(tx, "approver_gone", batch, request, None, {"gone": ", ".join(request.missing)}, now)
    batch = replace(batch, requests=tuple(changed.get(r.id, r) for r in batch.requests))
    return settler.settle(tx, batch, settled_for_nobody(batch, now), now)
