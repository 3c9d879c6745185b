"""The runner: `advance` runs or resumes one turn until it is done or waits for people.

The conversation is saved after each model response that calls tools, before any of them runs. To resume, a saved
history that ends in open calls is run again: the calls keep their ids, no model request is repeated, and the gate
returns the results of calls that were decided or have run. Knows nothing of Discord or SQL.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Never

from pydantic_ai import AgentRunResult, AgentRunResultEvent, DeferredToolRequests
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.usage import RunUsage, UsageLimits

from signoff.agent.batches import build_batch
from signoff.agent.budget_check import BudgetCheck, BudgetReached, overage_batch, revise_overage
from signoff.agent.failures import explain, retry_delay
from signoff.agent.history import (
    Saver,
    close_open_calls,
    entry_of,
    load_messages,
    open_calls,
    requests_made,
    responses_in,
)
from signoff.agent.prompt import NOTE, Prompt, has_enclosures, images_in, prompt_of, with_images
from signoff.approvals.containment import contained
from signoff.approvals.model import Actor, ApprovalRequest, Batch, CallKey, JsonObject, Place, Ruling, Terms
from signoff.approvals.policy import Policy
from signoff.approvals.ports import Clock, Revised
from signoff.errors import SignoffError, TurnFailed
from signoff.gate.dry_run import DryRun
from signoff.gate.examiner import Judge
from signoff.gate.gate import Gate
from signoff.gate.journal import Journal
from signoff.gate.observed_book import ObservedBook
from signoff.gate.tool_slots import ToolSlots
from signoff.gate.transcript import said, text_of, words_in
from signoff.turns.activity import Activity, ModelUsed
from signoff.turns.budgets import Budgets
from signoff.turns.model import Finished, Step, Turn, Waiting
from signoff.turns.ports import Progress, TurnStore, TurnTx
from signoff.turns.progress import Unseen

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    calls_per_response: int = 10
    model_requests: int = 25
    model_retries: int = 3
    """How often a step is tried again if the model's provider fails for a moment."""


@dataclass(frozen=True)
class AgentRunner:
    """Runs one PydanticAI agent behind the gate."""

    agent: AbstractAgent[Any, Any]
    store: TurnStore
    clock: Clock
    policy: Judge = field(default_factory=Policy)
    terms: Terms = field(default_factory=Terms)
    hold: bool = True
    limits: Limits = field(default_factory=Limits)
    slots: ToolSlots = field(default_factory=ToolSlots)
    mask: Callable[[JsonObject], JsonObject] = lambda args: args
    activity: Activity = field(default_factory=Activity)
    budgets: Budgets | None = None
    """None: there are no limits. What is used is noted anyway."""

    async def quiesce(self, seconds: float) -> None:
        await self.slots.clear(seconds)

    def pause(self, server: str) -> None:
        self.slots.pause(server)

    def resume(self, server: str) -> None:
        self.slots.resume(server)

    async def advance(self, turn: Turn, progress: Progress | None = None) -> Step:
        for attempt in range(self.limits.model_retries + 1):
            try:
                return await self._advance(turn, progress or Unseen())
            except Exception as error:
                delay = retry_delay(error, attempt) if attempt < self.limits.model_retries else None
                if delay is None:
                    return await self._failed(turn, error)
                log.warning("the model failed turn %s, which goes on in %g seconds: %s", turn.id, delay, error)
            await asyncio.sleep(delay)
            turn = await self.store.run(lambda tx, turn=turn: tx.turn(turn.id)) or turn
        raise AssertionError("the last attempt returns or raises")

    async def _advance(self, turn: Turn, progress: Progress) -> Step:
        history = await self._history(turn.place.conversation)
        if not turn.prompted and open_calls(history):
            await self._close(turn, "Not run: the turn was stopped.")
            history = await self._history(turn.place.conversation)
        saver = Saver(self.store, turn, history, self.clock)
        journal = Journal(self.store, self.clock, turn, self.mask)
        gate = Gate(
            self.policy,
            ObservedBook(journal, turn, self.activity),
            turn.place,
            turn.asker,
            self.slots,
            self.hold,
            self.limits.calls_per_response,
            responses=responses_in(history),
            progress=progress,
        )
        prompt = None if turn.prompted else prompt_of(turn, await self.store.run(lambda tx: tx.files_of(turn.id)))
        try:
            with contained():
                result = await self._run(turn, prompt, history, gate, saver)
        except BudgetReached as reached:
            assert self.budgets is not None
            now = self.clock.now()
            return Waiting(await overage_batch(reached, self.budgets, turn, self.policy, self.terms, now))
        if isinstance(result.output, DeferredToolRequests):
            return Waiting(self._batch(result, gate, turn))
        return Finished(str(result.output), saver.unsaved())

    async def _failed(self, turn: Turn, error: Exception) -> Never:
        """End the turn with a line for the asker, unless the error has one already or the store failed."""
        if isinstance(error, SignoffError):
            raise error
        await self._close(turn, "Not run: the turn ended with an error.")
        raise TurnFailed(explain(error, model_requests=self.limits.model_requests)) from error

    async def _run(
        self, turn: Turn, prompt: Prompt | None, history: list[ModelMessage], gate: Gate, saver: Saver
    ) -> AgentRunResult[str | DeferredToolRequests]:
        marked = has_enclosures(history) or not isinstance(prompt, str | None)
        requests_left = self.limits.model_requests - (requests_made(history) if turn.prompted else 0)
        usage = RunUsage()
        try:
            async with self.agent.run_stream_events(
                prompt,
                output_type=[str, DeferredToolRequests],
                message_history=history,
                conversation_id=turn.place.conversation,
                instructions=NOTE if marked else None,
                usage_limits=UsageLimits(request_limit=max(requests_left, 0)),
                usage=usage,
                capabilities=[gate, saver, *self._checks(turn), gate.seal()],
            ) as events:
                async for event in events:
                    if isinstance(event, AgentRunResultEvent):
                        return event.result
                    if words := words_in(event):
                        gate.progress.writing(words)
        finally:
            self.activity.tell(ModelUsed(turn, usage.requests, usage.input_tokens, usage.output_tokens))
        raise TurnFailed("The run ended without a result. Nothing further was run.")

    def _checks(self, turn: Turn) -> list[BudgetCheck]:
        return [BudgetCheck(self.budgets, self.store, self.clock, turn)] if self.budgets else []

    async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
        if request.call.is_overage:
            return await revise_overage(batch, request, args, self.policy)
        heard = said(await self._history(batch.place.conversation))
        dry_run = DryRun(self.agent, self.policy, batch.place, batch.asker, heard, self.slots)
        return await dry_run.call(request.call.tool, args, request.call)

    async def test(self, tool: str, args: JsonObject, place: Place, actor: Actor) -> Ruling:
        """Return the ruling on such a call without running it."""
        heard = said(await self._history(place.conversation))
        dry_run = DryRun(self.agent, self.policy, place, actor, heard, self.slots)
        return (await dry_run.call(tool, args)).ruling

    async def _history(self, conversation: str) -> list[ModelMessage]:
        entries = await self.store.run(lambda tx: tx.history(conversation))
        messages = load_messages(entries)
        if not (keys := images_in(messages)):
            return messages
        turns = {turn for turn, _ in keys}
        files = await self.store.run(lambda tx: {turn: tx.files_of(turn) for turn in turns})
        images = {(turn, at): file for turn, kept in files.items() for at, file in enumerate(kept) if file.is_image}
        return with_images(messages, images)

    def _batch(self, result: AgentRunResult[Any], gate: Gate, turn: Turn) -> Any:
        words = next(text_of(m) for m in reversed(result.all_messages()) if isinstance(m, ModelResponse))
        return build_batch(result.output, gate, turn, words, now=self.clock.now(), terms=self.terms)

    async def _close(self, turn: Turn, words: str) -> None:
        """Give a result to every call that is still open, so that the next mention can continue the conversation."""

        def work(tx: TurnTx) -> None:
            entries = tx.history(turn.place.conversation)
            history = load_messages(entries)
            if closing := close_open_calls(history, words, lambda call_id: tx.call(_key(turn, history, call_id))):
                tx.save_history(turn.place.conversation, [entry_of(len(history), closing)])

        await self.store.run(work)


def _key(turn: Turn, history: Sequence[ModelMessage], call_id: str) -> CallKey:
    return CallKey(turn.place.conversation, responses_in(history), call_id)
