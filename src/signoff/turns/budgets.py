"""Budgets: how many tokens and dollars a thread, a person or a server may use, and which limits are reached.

A limit is checked before each model request, so a run exceeds it by one request at most. People may raise a limit: see
`overages`. Reads rows inside the caller's transaction. Knows no model and no prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Protocol

from signoff.approvals.model import DIRECT, Place
from signoff.dataclass import dataclass


class Budget(StrEnum):
    THREAD = "thread"
    PERSON = "person"
    SERVER = "server"

    @property
    def is_daily(self) -> bool:
        return self is not Budget.THREAD


class Unit(StrEnum):
    TOKENS = "tokens"
    DOLLARS = "dollars"


@dataclass(frozen=True, slots=True)
class Account:
    """Who or what uses up a budget: a conversation, a person of one server, or a server."""

    budget: Budget
    server: str
    subject: str
    """The id of the conversation, the person or the server."""


@dataclass(frozen=True, slots=True)
class Used:
    tokens: int = 0
    dollars: float = 0.0
    requests: int = 0
    """Model responses."""
    unpriced: int = 0
    """Model responses whose cost is not known."""

    def of(self, unit: Unit) -> float:
        return self.tokens if unit is Unit.TOKENS else self.dollars


class BudgetTx(Protocol):
    def used(self, account: Account, since: float = 0.0) -> Used:
        """Return what the account has used since then."""
        ...

    def used_by(self, server: str, budget: Budget, since: float, most: int) -> Sequence[tuple[str, Used]]:
        """Return (id, used) for the people or conversations of a server that used most tokens since then."""
        ...

    def raised_to(self, account: Account, unit: Unit, day: str) -> float | None:
        """Return the highest limit that people accepted; None if they raised none."""
        ...

    def raise_limit(self, account: Account, unit: Unit, day: str, to: float, request: str, at: float) -> None:
        """Raise a limit. Does nothing if this request has raised it already."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How one limit stands."""

    account: Account
    unit: Unit
    used: float
    limit: float
    day: str = ""
    """The day, such as `2026-11-17`, for a daily limit."""

    @property
    def is_reached(self) -> bool:
        return self.used >= self.limit

    @property
    def left(self) -> float:
        return max(self.limit - self.used, 0)


@dataclass(frozen=True, slots=True)
class Budgets:
    """The operator's limits. Without limits, usage is only noted."""

    limits: Mapping[tuple[Budget, Unit], float] = field(default_factory=dict[tuple[Budget, Unit], float])
    """(budget, unit) -> its limit. One that is missing has no limit."""
    overage: float = 0.5
    """How much more an accepted card allows, as a part of the limit."""
    zone: tzinfo = UTC
    """Where a day begins at midnight."""

    def day_of(self, now: float) -> tuple[str, float]:
        """Return the day of this moment, and when it began."""
        here = datetime.fromtimestamp(now, self.zone)
        return here.date().isoformat(), here.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()

    def next_day(self, now: float) -> float:
        noon = datetime.fromtimestamp(now, self.zone).replace(hour=12) + timedelta(days=1)
        return noon.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()

    def standings(self, tx: BudgetTx, place: Place, person: str, now: float) -> list[Standing]:
        """Return how each limit stands that applies to this person's runs in this place."""
        day, began = self.day_of(now)
        accounts = {account.budget: account for account in accounts_of(place, person)}
        standings: list[Standing] = []
        for (budget, unit), limit in self.limits.items():
            account, its_day = accounts[budget], day if budget.is_daily else ""
            used = tx.used(account, began if budget.is_daily else 0.0).of(unit)
            raised = tx.raised_to(account, unit, its_day)
            standings.append(Standing(account, unit, used, max(limit, raised or 0), its_day))
        return standings

    def reached(self, tx: BudgetTx, place: Place, person: str, now: float) -> list[Standing]:
        return [standing for standing in self.standings(tx, place, person, now) if standing.is_reached]

    def more(self, standing: Standing) -> float:
        """Return how much an accepted card adds to what is used by now."""
        configured = self.limits[standing.account.budget, standing.unit]
        return max(round(configured * self.overage), 1) if standing.unit is Unit.TOKENS else configured * self.overage


def accounts_of(place: Place, person: str) -> list[Account]:
    """Return the accounts that a run of this person in this place uses.

    Direct messages are no server that people share: there the budget of a server is the person's own.
    """
    server = person if place.server == DIRECT else place.server
    return [
        Account(Budget.THREAD, place.server, place.conversation),
        Account(Budget.PERSON, place.server, person),
        Account(Budget.SERVER, place.server, server),
    ]
