"""The runs of agents inside tools, in the store: their messages, how many model requests they made, whether they ended.

A run is kept like the turn's own conversation. If its tool is run again, it goes on from its open calls without asking
the model; a run that had ended gives its last response again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import field
from typing import Any, Never, TypeVar, cast

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.models.wrapper import WrapperModel

from signoff.agent.budget_check import BudgetCheck, pending_overages
from signoff.agent.failures import retry_delay
from signoff.agent.history import Saver, load_messages, open_calls, responses_in
from signoff.agent.outputs import OutputAfterCalls, OutputLast
from signoff.approvals.digest import canonical
from signoff.approvals.errors import Refused
from signoff.approvals.model import ApprovalRequest, Batch, CallKey, JsonObject, Verdict
from signoff.approvals.policy import Context
from signoff.approvals.ports import Clock, Revised
from signoff.dataclass import dataclass
from signoff.errors import TurnFailed
from signoff.gate.delegation import Delegated, Delegation, InnerRun, InnerRuns, Opened, install
from signoff.gate.examiner import Judge
from signoff.gate.home_loop import HomeLoop
from signoff.gate.inner_gate import InnerGate, inner_gate, run_inside
from signoff.gate.passing_events import PassesEvents
from signoff.gate.pending_call import PendingCall
from signoff.turns.budgets import Budgets, Standing
from signoff.turns.model import HistoryEntry, Turn
from signoff.turns.ports import TurnStore, TurnTx

install(run_inside)

log = logging.getLogger(__name__)

T = TypeVar("T")
USED_UP = "Not asked: a budget is used up, and the tool that ran this agent has ended, so nobody can allow more."
NO_EDIT = "This call was made by an agent inside a tool, so it cannot be edited. Reject it with a reason instead."


@dataclass(frozen=True)
class StoredRuns(InnerRuns):
    store: TurnStore
    turn: Turn
    clock: Clock
    budgets: Budgets | None = None
    retries: int = 0
    """How often a model request is tried again if the provider fails for a moment."""

    async def open(
        self, delegation: Delegation, run: InnerRun, given: Sequence[ModelMessage], home: HomeLoop
    ) -> Opened:
        def work(tx: TurnTx) -> Sequence[HistoryEntry]:
            tx.begin_inner_run(run.conversation, delegation.call.key, self.turn.id, run.agent)
            return tx.history(run.conversation)

        known = load_messages(await self.store.run(work))
        gate = inner_gate(delegation, run, home, responses=responses_in(known or given))
        store = StoreAtHome(self.store, home)
        saver = InnerSaver(
            store, self.turn, known or list(given), self.clock, run=run.conversation, given=responses_in(given)
        )
        ours: list[AbstractCapability[Any]] = [InnerOutput(gate, leave=gate.leave), saver]
        if self.budgets:
            ours.append(InnerBudgetCheck(self.budgets, store, self.clock, self.turn, gate))
        ours += [OutputLast(), InnerRetries(self.retries)]
        if not known:
            saver.saved = 0
            return Opened(gate, None, ours)
        last = known[-1]
        if isinstance(last, ModelResponse) and not open_calls(known):
            gate.replay, known = last, known[:-1]
            gate.responses -= 1
        return Opened(gate, known, ours)

    async def ended(self, run: InnerRun) -> None:
        await self.store.run(lambda tx: tx.set_inner_run(run.conversation, ended=True))

    async def left_behind(self, call: CallKey, begun: set[str]) -> bool:
        return not begun.issuperset(await self.store.run(lambda tx: tx.open_inner_runs(call)))


@dataclass
class InnerSaver(Saver):
    """Saves every response of an agent inside a tool, the last one too: the agent may have to give it again."""

    run: str = field(kw_only=True)
    """The key of the run's messages. What the model used counts for the turn."""
    given: int = field(kw_only=True)
    """How many responses the history had that the tool gave to the agent."""

    @property
    def conversation(self) -> str:
        return self.run

    def must_save(self, response: ModelResponse) -> bool:
        return True

    def _write(self, tx: TurnTx, entries: Sequence[HistoryEntry]) -> None:
        tx.save_history(self.run, entries)
        tx.set_inner_run(self.run, requests=responses_in(self.history) - self.given)


@dataclass
class InnerBudgetCheck(BudgetCheck):
    """Lets an agent inside a tool wait for people when a budget is used up, as if one of its calls asked."""

    gate: InnerGate

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        return request_context if self.gate.replay else await super().before_model_request(ctx, request_context)

    async def stop(self, standings: Sequence[Standing]) -> Never:
        parent, position = self.gate.delegation, self.gate.delegation.call.key.position
        try:
            pending = await pending_overages(standings, position, self.budgets, self.turn, self.gate.policy)
        except TurnFailed as denied:
            # Only this tool ends, not the calls beside it. The turn ends before its next model request.
            raise ToolFailed(str(denied)) from denied
        if await parent.wait(self.gate.run, pending):
            raise Delegated
        raise ToolFailed(USED_UP)


class RetriedModel(WrapperModel):
    def __init__(self, wrapped: Model, most: int) -> None:
        super().__init__(wrapped)
        self.most = most

    async def request(self, *args: Any, **options: Any) -> ModelResponse:
        for attempt in range(self.most):
            try:
                return await self.wrapped.request(*args, **options)
            except Exception as error:
                delay = retry_delay(error, attempt)
                if delay is None:
                    raise
                log.warning("the model of an agent inside a tool failed; it is asked again in %g s: %s", delay, error)
            await asyncio.sleep(delay)
        return await self.wrapped.request(*args, **options)


@dataclass
class InnerRetries(PassesEvents):
    """Asks the model again if its provider fails for a moment: otherwise the whole tool would fail."""

    most: int

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        request_context.model = RetriedModel(request_context.model, self.most)
        return request_context


@dataclass
class InnerOutput(OutputAfterCalls):
    """Lets an output tool of an agent inside a tool run only after the calls of its response."""

    leave: Callable[[Sequence[PendingCall]], Awaitable[None]] = field(kw_only=True)
    """Leaves the run until people have decided."""

    async def _wait(self, calls: list[ToolCallPart]) -> None:
        await self.leave([pending for call in calls for pending in self.gate.pending(call.tool_call_id)])


@dataclass(frozen=True)
class StoreAtHome(TurnStore):
    """The store, used from the loop of an agent inside a tool."""

    store: TurnStore
    home: HomeLoop

    async def run(self, work: Callable[[TurnTx], T]) -> T:
        return await self.home.run(cast("Coroutine[Any, Any, T]", self.store.run(work)))


async def judged_inside(policy: Judge, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
    """Judge the call of an agent inside a tool by the rules alone: that agent exists only while its tool runs.

    Raises Refused if the arguments are new, because nobody could check them.
    """
    if canonical(args) != canonical(request.call.args):
        raise Refused(NO_EDIT)
    said = request.description
    context = Context(batch.place, batch.asker, marks=said.marks, shell=said.shell)
    ruling = await policy.decide(request.call, Verdict.ASK, context)
    return Revised(request.call, ruling, request.preview, request.diff_of)
