"""The runner: `advance` runs or resumes one turn until it is done or waits for people.

The conversation is saved after each model response that calls tools, before any of them runs. To resume, a saved
history that ends in open calls is run again: the calls keep their ids, no model request is repeated, and the gate
returns the results of calls that were decided or have run. Knows nothing of Discord or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import AgentRunResult, AgentRunResultEvent, DeferredToolRequests
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.usage import RunUsage, UsageLimits

from signoff.agent.batches import build_batch
from signoff.agent.failures import explain
from signoff.agent.history import (
    Saver,
    close_open_calls,
    entry_of,
    load_messages,
    open_calls,
    requests_made,
    responses_in,
)
from signoff.agent.inner_runs import StoredRuns, judged_inside
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
from signoff.gate.transcript import said, text_of
from signoff.turns.activity import Activity, ModelUsed
from signoff.turns.model import Finished, Step, Turn, Waiting
from signoff.turns.ports import Progress, TurnStore, TurnTx
from signoff.turns.progress import Unseen


@dataclass(frozen=True, slots=True)
class Limits:
    calls_per_response: int = 10
    model_requests: int = 25


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

    async def quiesce(self, seconds: float) -> None:
        await self.slots.clear(seconds)

    def pause(self, server: str) -> None:
        self.slots.pause(server)

    def resume(self, server: str) -> None:
        self.slots.resume(server)

    async def advance(self, turn: Turn, progress: Progress | None = None) -> Step:
        history = await self._history(turn.place.conversation)
        if not turn.prompted and open_calls(history):
            await self._close(turn, "Not run: the turn was stopped.")
            history = await self._history(turn.place.conversation)
        saver = Saver(self.store, turn, history)
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
            progress=progress or Unseen(),
            children=StoredRuns(self.store, turn),
        )
        prompt = None if turn.prompted else prompt_of(turn, await self.store.run(lambda tx: tx.files_of(turn.id)))
        try:
            with contained():
                result = await self._run(turn, prompt, history, gate, saver)
        except SignoffError:
            raise
        except Exception as error:
            await self._close(turn, "Not run: the turn ended with an error.")
            raise TurnFailed(explain(error, model_requests=self.limits.model_requests)) from error
        if isinstance(result.output, DeferredToolRequests):
            return Waiting(self._batch(result, gate, turn))
        return Finished(str(result.output), saver.unsaved())

    async def _run(
        self, turn: Turn, prompt: Prompt | None, history: list[ModelMessage], gate: Gate, saver: Saver
    ) -> AgentRunResult[str | DeferredToolRequests]:
        marked = has_enclosures(history) or not isinstance(prompt, str | None)
        made = await self.store.run(lambda tx: tx.inner_requests(turn.id))
        requests_left = self.limits.model_requests - made - (requests_made(history) if turn.prompted else 0)
        gate.requests.left = requests_left
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
                capabilities=[gate, saver, gate.seal()],
            ) as events:
                async for event in events:
                    if isinstance(event, AgentRunResultEvent):
                        return event.result
        finally:
            self.activity.tell(ModelUsed(turn, usage.requests, usage.input_tokens, usage.output_tokens))
        raise TurnFailed("The run ended without a result. Nothing further was run.")

    async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
        if request.path:
            return await judged_inside(self.policy, batch, request, args)
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
