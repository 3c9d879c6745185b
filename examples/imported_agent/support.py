"""A support agent as somebody might already have it. It knows nothing of Signoff: only `make_deps` is new."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext

if TYPE_CHECKING:
    from signoff import TurnInfo


@dataclass
class Shop:
    """The dependencies of a run."""

    orders: Path
    currency: str
    clerk: str
    """The person on whose behalf the agent acts."""


class Case(BaseModel):
    """The output: a case is closed with a sentence for the customer and the amounts."""

    order: str
    refunded: int
    message: str


agent = Agent(
    deps_type=Shop,
    output_type=[Case, str],
    instructions="You look after the orders of a shop. Refund only what the order cost.",
)


@agent.tool(metadata={"read_only": True})
def find_order(ctx: RunContext[Shop], order: str) -> dict[str, int | str]:
    """Look an order up."""
    return _orders(ctx.deps)[order]


@agent.tool(requires_approval=True)
def refund(ctx: RunContext[Shop], order: str, amount: int) -> str:
    """Refund an amount of an order."""
    orders = _orders(ctx.deps)
    orders[order] |= {"refunded": amount, "by": ctx.deps.clerk}
    ctx.deps.orders.write_text(json.dumps(orders, indent=1))
    return f"{amount} {ctx.deps.currency} refunded"


@agent.output_validator
def check(ctx: RunContext[Shop], case: Case | str) -> Case | str:
    if isinstance(case, Case) and case.refunded != _orders(ctx.deps)[case.order].get("refunded", 0):
        raise ModelRetry("The order was refunded another amount.")
    return case


def _orders(shop: Shop) -> dict[str, dict[str, int | str]]:
    return json.loads(shop.orders.read_text())


def make_deps(info: TurnInfo) -> Shop:
    """Called by Signoff for each turn, with the person who asks and the values of `[agent.settings]`."""
    return Shop(Path(info.settings["orders"]), info.settings["currency"], info.asker.name)
