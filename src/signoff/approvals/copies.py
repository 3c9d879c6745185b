"""Copies of a card: a card in its conversation may be shown in an approvals channel as well, with the same buttons.

A click on a copy counts like a click on the card. A copy is bound to its channel and message, as the card is.
"""

from __future__ import annotations

from dataclasses import replace

from signoff.approvals.model import Batch, CardCopy
from signoff.approvals.notify import copy_channels
from signoff.approvals.ports import DeskTx


def located_copy(tx: DeskTx, batch: Batch, channel: str, message: str | None) -> Batch | None:
    """Return the batch if this message shows a copy of its card; None if it does not.

    `message`: None for a private panel, which was opened from a copy in this channel. A click may arrive before the
    message id is stored; then it is stored now.
    """
    if channel not in copy_channels(batch):
        return None
    known = {copy.channel: copy.message for copy in batch.copies}
    if message is None or known.get(channel) == message:
        return batch
    if channel in known:
        return None
    copy = CardCopy(channel, message)
    tx.add_copy(batch.id, copy)
    return replace(batch, copies=(*batch.copies, copy))
