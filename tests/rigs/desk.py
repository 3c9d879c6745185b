"""A desk with an open batch."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from signoff.approvals.desk import Desk, Woken
from signoff.approvals.model import Actor, Batch
from signoff.approvals.ports import DeskTx
from signoff.approvals.votes import Unchecked


@dataclass(frozen=True)
class Watch:
    """The future of an open batch, for tests that care about nothing but the settled batch."""

    future: asyncio.Future[Woken]

    def done(self) -> bool:
        return self.future.done()

    def result(self) -> Batch:
        return self.future.result().batch

    def __await__(self) -> Generator[Any, None, Batch]:
        return (yield from self.future.__await__()).batch


async def opened(desk: Desk, batch: Batch) -> Watch:
    """Open the batch as the driver does: people who gave a grant are looked up first."""
    givers: dict[str, Actor | None] = {}

    def work(tx: DeskTx) -> Batch:
        return desk.open(tx, batch, givers=givers)

    while True:
        try:
            return Watch(desk.watch(await desk.store.run(work)))
        except Unchecked as unchecked:
            givers.update(await desk.look_up_givers(batch.place.server, unchecked.people))
