"""What was used of the model, for people: by a person and in a thread; for admins, by the whole server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from signoff.approvals.model import Actor, Place
from signoff.approvals.ports import Clock
from signoff.dataclass import dataclass
from signoff.turns.budgets import Account, Budget, Budgets, Standing, Used, accounts_of
from signoff.turns.ports import TurnStore, TurnTx

MOST = 10
"""The most people, and the most threads, in a report."""


@dataclass(frozen=True, slots=True)
class AccountUsage:
    """What one account has used: a thread since it began, a person or a server today."""

    account: Account
    used: Used
    limits: tuple[Standing, ...] = ()


@dataclass(frozen=True, slots=True)
class UsageReport:
    day: str
    next_day: float
    """When the next day begins."""
    accounts: Sequence[AccountUsage]
    """The thread and the person; for admins, also the server."""
    by_person: Sequence[tuple[str, Used]] = ()
    """(person, used today), most tokens first. Only for admins, and so for `by_thread`."""
    by_thread: Sequence[tuple[str, Used]] = ()


@dataclass(frozen=True)
class UsageBook:
    store: TurnStore
    clock: Clock
    budgets: Budgets = field(default_factory=Budgets)

    async def report(self, actor: Actor, place: Place) -> UsageReport:
        """Return what this person may see here: their own usage or, with Manage Server, the server's too."""
        now = self.clock.now()
        day, began = self.budgets.day_of(now)
        is_admin = actor.manages_server and not place.is_direct

        def work(tx: TurnTx) -> UsageReport:
            standings = self.budgets.standings(tx, place, actor.id, now)
            accounts = [
                AccountUsage(
                    account,
                    tx.used(account, began if account.budget.is_daily else 0.0),
                    tuple(standing for standing in standings if standing.account == account),
                )
                for account in accounts_of(place, actor.id)
                if account.budget is not Budget.SERVER or is_admin
            ]
            server = place.server
            people = tx.used_by(server, Budget.PERSON, began, MOST) if is_admin else ()
            threads = tx.used_by(server, Budget.THREAD, began, MOST) if is_admin else ()
            return UsageReport(day, self.budgets.next_day(now), accounts, people, threads)

        return await self.store.run(work)
