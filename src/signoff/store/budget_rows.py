"""The rows about budgets: what was used, by whom and where, and the limits that people raised."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.approvals.model import DIRECT
from signoff.store.database import Database, Row
from signoff.turns.budgets import Account, Budget, Unit, Used

_SUM = """COALESCE(SUM(input_tokens + output_tokens), 0), COALESCE(SUM(cost), 0), COUNT(*),
    COUNT(*) - COUNT(cost)"""
USED_IN_THREAD = f"SELECT {_SUM} FROM usage WHERE server = ? AND conversation = ? AND at >= ?"
USED_BY_PERSON = f"SELECT {_SUM} FROM usage WHERE server = ? AND person = ? AND at >= ?"
USED_BY_SERVER = f"SELECT {_SUM} FROM usage WHERE server = ? AND at >= ?"
USED_BY = f"""SELECT {{column}}, {_SUM} FROM usage WHERE server = ? AND at >= ?
    GROUP BY {{column}} ORDER BY 2 DESC, 1 LIMIT ?"""
_SUBJECT = "server = ? AND budget = ? AND subject = ? AND unit = ? AND day = ?"
RAISED_TO = f"SELECT MAX(raised_to) FROM raised_limits WHERE {_SUBJECT}"
RAISE_LIMIT = """INSERT INTO raised_limits (request, server, budget, subject, unit, day, raised_to, at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (request) DO NOTHING"""
_COLUMN = {Budget.PERSON: "person", Budget.THREAD: "conversation"}


class BudgetRows:
    """Implements `turns.budgets.BudgetTx`."""

    db: Database

    def used(self, account: Account, since: float = 0.0) -> Used:
        if account.budget is Budget.THREAD:
            row = self.db.one(USED_IN_THREAD, account.server, account.subject, since)
        elif account.budget is Budget.PERSON or account.server == DIRECT:
            row = self.db.one(USED_BY_PERSON, account.server, account.subject, since)
        else:
            row = self.db.one(USED_BY_SERVER, account.server, since)
        return _used(row) if row else Used()

    def used_by(self, server: str, budget: Budget, since: float, most: int) -> Sequence[tuple[str, Used]]:
        rows = self.db.all(USED_BY.format(column=_COLUMN[budget]), server, since, most)
        return [(row[0], _used(row[1:])) for row in rows]

    def raised_to(self, account: Account, unit: Unit, day: str) -> float | None:
        row = self.db.one(RAISED_TO, account.server, account.budget, account.subject, unit, day)
        return float(row[0]) if row and row[0] is not None else None

    def raise_limit(self, account: Account, unit: Unit, day: str, to: float, request: str, at: float) -> None:
        values = (request, account.server, account.budget, account.subject, unit, day, to, at)
        self.db.change(RAISE_LIMIT, *values)


def _used(row: Row) -> Used:
    tokens, dollars, requests, unpriced = row
    return Used(int(tokens), float(dollars), requests, unpriced)
