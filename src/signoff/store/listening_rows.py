"""The rows about listening: until when the bot listened, and which mentions were heard without becoming a turn."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from signoff.store.database import Database

UNTIL = "SELECT until FROM listening WHERE only_row = 1"
SET_UNTIL = """INSERT INTO listening (only_row, until) VALUES (1, ?)
    ON CONFLICT (only_row) DO UPDATE SET until = excluded.until"""
NOTE = "INSERT INTO heard (mention, at) VALUES (?, ?) ON CONFLICT (mention) DO NOTHING"
NOTED = "SELECT 1 FROM heard WHERE mention = ?"
IS_TURN = "SELECT 1 FROM turns WHERE id = ?"
FORGET = "DELETE FROM heard WHERE at < ?"
RECENT = """SELECT id, server, channel FROM turns
    WHERE seq > (SELECT COALESCE(MAX(seq), 0) FROM turns) - ? ORDER BY seq DESC"""


class ListeningRows:
    """Implements `turns.listening.ListeningTx`."""

    db: Database

    def listened_until(self) -> float | None:
        row = self.db.one(UNTIL)
        return float(row[0]) if row else None

    def set_listened_until(self, at: float) -> None:
        self.db.change(SET_UNTIL, at)

    def note_heard(self, mentions: Collection[str], at: float) -> None:
        self.db.change_many(NOTE, [(mention, at) for mention in mentions])

    def was_heard(self, mention: str) -> bool:
        return self.db.one(IS_TURN, mention) is not None or self.db.one(NOTED, mention) is not None

    def forget_heard(self, before: float) -> None:
        self.db.change(FORGET, before)

    def recent_turns(self, limit: int) -> Sequence[tuple[str, str, str]]:
        return [(turn, server, channel) for turn, server, channel in self.db.all(RECENT, limit)]
