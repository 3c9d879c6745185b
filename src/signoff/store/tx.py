"""One transaction over all rows, put together from the desk's statements and the turns'."""

from __future__ import annotations

from signoff.store.database import Database
from signoff.store.desk_rows import DeskRows
from signoff.store.turn_rows import TurnRows


class Tx(DeskRows, TurnRows):
    """What `Store.run` hands to its work. Valid only during that call."""

    def __init__(self, db: Database) -> None:
        self.db = db
