"""The record's rows: append them with a hash that binds each to the one before, read pages, prune texts.

Only one writer appends, inside its transaction, so the newest row that it reads is the one before its own. Does not
know what the kinds of rows mean, and does not know the anchor file.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.approvals.audit import PRUNED, START, Anchor, AuditRow, chain, text_digest
from signoff.approvals.model import JsonObject
from signoff.store.codec import dump_object
from signoff.store.database import Database, Value

COLUMNS = "seq, at, kind, server, subject, actor, tool, data, text, hash"

HEAD = "SELECT seq, hash FROM audit WHERE seq = (SELECT MAX(seq) FROM audit)"
HASH_OF = "SELECT hash FROM audit WHERE seq = ?"
APPEND = f"INSERT INTO audit ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
PAGE = f"SELECT {COLUMNS} FROM audit WHERE {{where}} ORDER BY seq DESC LIMIT ?"
# `at` is the time of the newest row with this text, so that pruning by it never deletes a text that is still needed.
KEEP_TEXT = """INSERT INTO audit_texts (digest, text, at) VALUES (?, ?, ?)
    ON CONFLICT (digest) DO UPDATE SET at = excluded.at WHERE excluded.at > audit_texts.at"""
TEXT = "SELECT text FROM audit_texts WHERE digest = ?"
PRUNE = "DELETE FROM audit_texts WHERE at < ?"


def newest(db: Database) -> Anchor:
    row = db.one(HEAD)
    return Anchor(row[0], row[1]) if row else START


class AuditRows:
    """Implements the audit part of `approvals.ports.DeskTx`."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def audit(
        self,
        kind: str,
        server: str,
        subject: str,
        actor: str,
        data: JsonObject,
        at: float,
        *,
        tool: str = "",
        text: str = "",
    ) -> None:
        head = self.db.known.get(HEAD) or newest(self.db)
        digest = text_digest(text) if text else ""
        moment = float(at) + 0.0  # the value as it comes back from the column: never an int, never minus zero
        columns = (head.seq + 1, moment, kind, server, subject, actor, tool, dump_object(data), digest)
        hash = chain(head.hash, columns)
        self.db.change(APPEND, *columns, hash)
        self.db.known[HEAD] = Anchor(head.seq + 1, hash)
        if text:
            self.db.change(KEEP_TEXT, digest, text, moment)

    def audit_page(
        self,
        server: str,
        *,
        before: int | None = None,
        limit: int = 50,
        actor: str | None = None,
        tool: str | None = None,
        kind: str | None = None,
        subject: str | None = None,
    ) -> Sequence[AuditRow]:
        given: dict[str, Value] = {"actor": actor, "tool": tool, "kind": kind, "subject": subject}
        narrowed = {name: value for name, value in given.items() if value is not None}
        where = ["server = ?", *(f"{name} = ?" for name in narrowed)]
        params = [server, *narrowed.values()]
        if before is not None:
            where.append("seq < ?")
            params.append(before)
        return [AuditRow(*row) for row in self.db.all(PAGE.format(where=" AND ".join(where)), *params, limit)]

    def audit_text(self, digest: str) -> str | None:
        row = self.db.one(TEXT, digest)
        return row[0] if row else None

    def prune_texts(self, before: float, *, at: float | None = None) -> int:
        pruned = self.db.change(PRUNE, before)
        if pruned:
            moment = before if at is None else at
            self.audit(PRUNED, "", "", "signoff", {"before": float(before), "texts": pruned}, moment)
        return pruned
