"""One transaction over all rows, put together from the desk's statements, the turns' and the record's."""

from __future__ import annotations

from signoff.store.audit_rows import AuditRows
from signoff.store.database import Database
from signoff.store.policy_rows import PolicyRows
from signoff.store.request_rows import DeskRows
from signoff.store.turn_rows import TurnRows


class Tx(DeskRows, PolicyRows, TurnRows, AuditRows):
    """What `Store.run` hands to its work. Valid only during that call."""

    def __init__(self, db: Database) -> None:
        self.db = db
