"""The rows of what was posted about a card besides the card: copies in approvals channels, pings and reminders."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.approvals.model import Batch, CardCopy
from signoff.store.request_rows import COPIES_OF, RequestRows
from signoff.turns.model import Notice

ADD_COPY = """INSERT INTO card_copies (batch, channel, message) VALUES (?, ?, ?)
    ON CONFLICT (batch, channel) DO UPDATE SET message = excluded.message"""
NOT_FINAL = "UPDATE batches SET card_final = FALSE WHERE id = ?"
_IN_CHANNEL = "channel = ?"
_IN_MESSAGE = "channel = ? AND message = ?"
COPIED = "id IN (SELECT batch FROM card_copies WHERE {where})"
DROP_COPIES = "DELETE FROM card_copies WHERE {where}"

ADD_NOTICE = """INSERT INTO card_notices (batch, kind, channel, message) VALUES (?, ?, ?, ?)
    ON CONFLICT (batch, kind, channel, message) DO NOTHING"""
NOTICES_OF = "SELECT batch, kind, channel, message FROM card_notices WHERE batch = ? ORDER BY kind, channel, message"
DROP_NOTICE = "DELETE FROM card_notices WHERE batch = ? AND kind = ? AND channel = ? AND message = ?"
SET_UNTOLD = "UPDATE batches SET untold = ? WHERE id = ?"
UNTOLD = "settled = FALSE AND untold = TRUE AND card IS NOT NULL"
SETTLED_UNTOLD = "settled = TRUE AND untold = TRUE AND card IS NOT NULL"
# Few rows: a notice is dropped when its card is settled.
OUTLIVED = "id IN (SELECT batch FROM card_notices) AND settled = TRUE"


class NoticeRows(RequestRows):
    """Implements the parts of `DeskTx` and `TurnTx` that are about copies and notices."""

    def add_copy(self, batch_id: str, copy: CardCopy) -> None:
        self.db.change(ADD_COPY, batch_id, copy.channel, copy.message)
        self.db.change(NOT_FINAL, batch_id)

    def copies_of(self, batch_id: str) -> Sequence[CardCopy]:
        return [CardCopy(*copy) for _, *copy in self.db.all(COPIES_OF.format(those="= ?"), batch_id)]

    def drop_copies(self, channel: str, message: str = "") -> Sequence[Batch]:
        where, params = (_IN_MESSAGE, (channel, message)) if message else (_IN_CHANNEL, (channel,))
        batches = self._batches(COPIED.format(where=where), *params)
        if batches:
            self.db.change(DROP_COPIES.format(where=where), *params)
        return batches

    def add_notice(self, notice: Notice) -> None:
        self.db.change(ADD_NOTICE, notice.batch, notice.kind, notice.channel, notice.message)

    def notices_of(self, batch_id: str) -> Sequence[Notice]:
        return [Notice(*row) for row in self.db.all(NOTICES_OF, batch_id)]

    def drop_notice(self, notice: Notice) -> None:
        self.db.change(DROP_NOTICE, notice.batch, notice.kind, notice.channel, notice.message)

    def set_untold(self, batch_id: str, untold: bool) -> None:
        self.db.change(SET_UNTOLD, untold, batch_id)

    def untold(self) -> Sequence[Batch]:
        # Two statements, since each uses an index.
        return [*self._batches(UNTOLD), *self._batches(SETTLED_UNTOLD)]

    def outlived_notices(self) -> Sequence[Batch]:
        return self._batches(OUTLIVED)
