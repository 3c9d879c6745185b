"""A desk with an open batch."""

from __future__ import annotations

import asyncio

from signoff.approvals.desk import Desk
from signoff.approvals.model import Batch


async def opened(desk: Desk, batch: Batch) -> asyncio.Future[Batch]:
    return desk.watch(await desk.store.run(lambda tx: desk.open(tx, batch)))
