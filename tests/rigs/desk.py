"""A desk with an open batch."""

from __future__ import annotations

import asyncio

from signoff.approvals.desk import Desk
from signoff.approvals.model import Actor, Batch
from signoff.approvals.ports import DeskTx
from signoff.approvals.votes import Unchecked


async def opened(desk: Desk, batch: Batch) -> asyncio.Future[Batch]:
    """Open the batch as the driver does: people who gave a grant are looked up first."""
    givers: dict[str, Actor | None] = {}

    def work(tx: DeskTx) -> Batch:
        return desk.open(tx, batch, givers=givers)

    while True:
        try:
            return desk.watch(await desk.store.run(work))
        except Unchecked as unchecked:
            givers.update(await desk.look_up_givers(batch.place.server, unchecked.people))
