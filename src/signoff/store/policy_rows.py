"""The rows of grants, server rules, pauses and keys: their statements and how a row becomes a dataclass."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from signoff.approvals.grants import Grant
from signoff.approvals.model import Choice, Pause
from signoff.approvals.server_rules import ServerRule
from signoff.store.codec import dump_actor, dump_rule, dump_strings, load_actor, load_rule, load_strings
from signoff.store.database import Database, Row

_GRANT = "id, key, server, conversation, tool, args, choice, given_by, at, expires, uses_left, revoked, named"

INSERT_GRANT = f"""INSERT INTO grants (seq, {_GRANT})
    VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM grants), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
GRANTS_UNDER = f"SELECT {_GRANT} FROM grants WHERE key IN ({{keys}}) AND revoked IS NULL ORDER BY seq DESC"
GRANTS_OF = f"SELECT {_GRANT} FROM grants WHERE server = ? AND revoked IS NULL ORDER BY seq DESC"
GRANTS_NAMING = f"""SELECT {_GRANT} FROM grants
    WHERE server = ? AND tool = ? AND named <> '' AND revoked IS NULL ORDER BY seq DESC"""
USE_GRANT = "UPDATE grants SET uses_left = uses_left - 1 WHERE id = ? AND uses_left > 0"
ONE_GRANT = f"SELECT {_GRANT} FROM grants WHERE id = ? AND server = ? AND revoked IS NULL"
REVOKE_GRANT = "UPDATE grants SET revoked = ? WHERE id = ? AND server = ? AND revoked IS NULL"
REVOKE_ALL = "UPDATE grants SET revoked = ? WHERE revoked IS NULL"

RULES_OF = "SELECT id, server, rule, made_by, at FROM server_rules WHERE server = ? ORDER BY seq"
INSERT_RULE = """INSERT INTO server_rules (seq, id, server, rule, made_by, at)
    VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM server_rules), ?, ?, ?, ?, ?)"""
ONE_RULE = "SELECT id, server, rule, made_by, at FROM server_rules WHERE id = ? AND server = ?"
DROP_RULE = "DELETE FROM server_rules WHERE id = ? AND server = ?"

PAUSES = "SELECT server, paused_by, at FROM pauses ORDER BY at"
PAUSE_OF = "SELECT server, paused_by, at FROM pauses WHERE server = ?"
SET_PAUSE = "INSERT INTO pauses (server, paused_by, at) VALUES (?, ?, ?) ON CONFLICT (server) DO NOTHING"
CLEAR_PAUSE = "DELETE FROM pauses WHERE server = ?"
KEY = "SELECT value FROM keys WHERE name = ?"
INSERT_KEY = "INSERT INTO keys (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"


class PolicyRows:
    """Implements the part of `approvals.ports.DeskTx` that is about grants, rules and pauses, and keeps keys."""

    db: Database

    def insert_grant(self, grant: Grant) -> None:
        self.db.change(
            INSERT_GRANT,
            grant.id,
            grant.key,
            grant.server,
            grant.conversation,
            grant.tool,
            grant.args,
            grant.choice,
            dump_actor(grant.by),
            grant.at,
            grant.expires,
            grant.uses_left,
            grant.revoked,
            "" if grant.named is None else dump_strings(grant.named),
        )

    def grants_under(self, keys: Sequence[str]) -> Sequence[Grant]:
        marks = ", ".join("?" for _ in keys) or "''"
        return [_grant(row) for row in self.db.all(GRANTS_UNDER.format(keys=marks), *keys)]

    def grants_of(self, server: str) -> Sequence[Grant]:
        return [_grant(row) for row in self.db.all(GRANTS_OF, server)]

    def grants_naming(self, server: str, tool: str) -> Sequence[Grant]:
        return [_grant(row) for row in self.db.all(GRANTS_NAMING, server, tool)]

    def use_grant(self, grant_id: str) -> None:
        self.db.change(USE_GRANT, grant_id)

    def revoke_grant(self, grant_id: str, server: str, at: float) -> Grant | None:
        row = self.db.one(ONE_GRANT, grant_id, server)
        if row is None:
            return None
        self.db.change(REVOKE_GRANT, at, grant_id, server)
        return replace(_grant(row), revoked=at)

    def rules_of(self, server: str) -> Sequence[ServerRule]:
        return [_rule(row) for row in self.db.all(RULES_OF, server)]

    def insert_rule(self, rule: ServerRule) -> None:
        self.db.change(INSERT_RULE, rule.id, rule.server, dump_rule(rule.rule), dump_actor(rule.by), rule.at)

    def drop_rule(self, rule_id: str, server: str) -> ServerRule | None:
        row = self.db.one(ONE_RULE, rule_id, server)
        if row is None:
            return None
        self.db.change(DROP_RULE, rule_id, server)
        return _rule(row)

    def pause_of(self, server: str) -> Pause | None:
        row = self.db.one(PAUSE_OF, server)
        return Pause(row[0], load_actor(row[1]), row[2]) if row else None

    def pauses(self) -> Sequence[Pause]:
        return [Pause(server, load_actor(by), at) for server, by, at in self.db.all(PAUSES)]

    def set_pause(self, pause: Pause) -> None:
        self.db.change(SET_PAUSE, pause.server, dump_actor(pause.by), pause.at)

    def clear_pause(self, server: str) -> bool:
        return self.db.change(CLEAR_PAUSE, server) == 1

    def key(self, name: str) -> bytes:
        """Return this installation's key of that name. The first call creates it."""
        self.db.change(INSERT_KEY, name, secrets.token_bytes(32))
        row = self.db.one(KEY, name)
        assert row
        return bytes(row[0])


def revoke_all_grants(rows: PolicyRows, at: float) -> int:
    """Revoke every grant of every server, and return their number. It reads the whole table: only a restore does it."""
    return rows.db.change(REVOKE_ALL, at)


def _grant(row: Row) -> Grant:
    id, key, server, conversation, tool, args, choice, by, at, expires, uses_left, revoked, named = row
    return Grant(
        id=id,
        key=key,
        server=server,
        conversation=conversation,
        tool=tool,
        args=args,
        choice=Choice(choice),
        by=load_actor(by),
        at=at,
        expires=expires,
        uses_left=uses_left,
        revoked=revoked,
        named=load_strings(named) if named else None,
    )


def _rule(row: Row) -> ServerRule:
    id, server, rule, by, at = row
    return ServerRule(id, server, load_rule(rule), load_actor(by), at)
