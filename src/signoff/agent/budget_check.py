"""Stops a run before the model request that would go beyond a budget, and turns that into a batch for people.

The run ends like one whose call asks. When people accept, the same conversation runs again up to the same model
request. Only runs with limits have this capability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Never

from pydantic_ai import RunContext
from pydantic_ai.models import ModelRequestContext

from signoff.agent.batches import batch_of_calls
from signoff.approvals.errors import Refused
from signoff.approvals.model import ApprovalRequest, Batch, JsonObject, Ruling, Terms, ToolCall, Verdict
from signoff.approvals.policy import Context
from signoff.approvals.ports import Clock, Revised
from signoff.approvals.tool_description import ToolDescription
from signoff.dataclass import dataclass
from signoff.errors import TurnFailed
from signoff.gate.examiner import Judge
from signoff.gate.passing_events import PassesEvents
from signoff.gate.pending_call import PendingCall
from signoff.turns.budgets import Budgets, Standing
from signoff.turns.model import Turn
from signoff.turns.overages import denied, overage_call, question
from signoff.turns.ports import TurnStore

FIXED = "A budget cannot be edited: accept or reject what the card asks for."
ABOUT = ToolDescription(
    "Raises a limit of the operator's budget, so that the run goes on.",
    order=("budget", "day", "unit", "used", "limit", "up_to"),
)


class BudgetReached(Exception):
    """Limits are reached before this model request."""

    def __init__(self, standings: Sequence[Standing]) -> None:
        super().__init__("a budget is used up")
        self.standings = standings


@dataclass
class BudgetCheck(PassesEvents):
    budgets: Budgets
    store: TurnStore
    clock: Clock
    turn: Turn

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        place, person, now = self.turn.place, self.turn.asker.id, self.clock.now()
        standings = await self.store.run(lambda tx: self.budgets.reached(tx, place, person, now))
        if standings:
            await self.stop(standings)
        return request_context

    async def stop(self, standings: Sequence[Standing]) -> Never:
        raise BudgetReached(standings)


async def overage_batch(
    standings: Sequence[Standing],
    position: int,
    budgets: Budgets,
    turn: Turn,
    policy: Judge,
    terms: Terms,
    now: float,
) -> Batch:
    """Return the batch that asks for more: one request for each limit. Raises TurnFailed if a rule denies it.

    `position`: how many responses the conversation has.
    """
    pending = await pending_overages(standings, position, budgets, turn, policy)
    return batch_of_calls(pending, turn, "", (), now=now, terms=terms)


async def pending_overages(
    standings: Sequence[Standing], position: int, budgets: Budgets, turn: Turn, policy: Judge
) -> list[PendingCall]:
    """Return what people have to decide before the run goes on. See `overage_batch`."""
    pending: list[PendingCall] = []
    for standing in standings:
        call = overage_call(budgets, standing, turn.place, position)
        ruling = await _judge(call, policy, Context(turn.place, turn.asker))
        if ruling.verdict is Verdict.DENY:
            raise TurnFailed(denied(call.args, turn.place, ruling.reason))
        pending.append(PendingCall(call, ruling, description=ABOUT))
    return pending


async def revise_overage(batch: Batch, request: ApprovalRequest, args: JsonObject, policy: Judge) -> Revised:
    """Judge an overage by today's rules. Raises Refused if somebody wants to change it."""
    if args != request.call.args:
        raise Refused(FIXED)
    return Revised(request.call, await _judge(request.call, policy, Context(batch.place, batch.asker)))


async def _judge(call: ToolCall, policy: Judge, context: Context) -> Ruling:
    """Return the ruling. A rule that allows every tool allows no overage: a budget is there to ask."""
    asks = Ruling(Verdict.ASK, question(call.args, context.place))
    ruling = await policy.decide(call, asks, context)
    if ruling.verdict is Verdict.DENY:
        return ruling
    return replace(ruling, verdict=Verdict.ASK, reason=asks.reason)
