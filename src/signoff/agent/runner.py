"""The runner: `advance` runs or resumes one turn until it is done or waits for people.

The conversation is saved after each model response that calls tools, before any of them runs. To resume, a saved
history that ends in open calls is run again: the calls keep their ids, no model request is repeated, and the gate
returns the results of calls that were decided or have run. Knows nothing of Discord or SQL.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Never

from pydantic_ai import AgentRunResult, AgentStreamEvent, DeferredToolRequests, RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage, UsageLimits

from signoff.agent.batches import build_batch
from signoff.agent.budget_check import BudgetCheck, BudgetReached, overage_batch, revise_overage
from signoff.agent.compaction import beginning_of, cut_of, summarise
from signoff.agent.deps import DepsMaker
from signoff.agent.failures import explain, is_too_long, retry_delay
from signoff.agent.history import (
    Conversation,
    Saver,
    close_open_calls,
    entry_of,
    load_messages,
    open_calls,
    requests_made,
    responses_in,
    use_of,
)
from signoff.agent.inner_runs import StoredRuns, judged_inside
from signoff.agent.kept_runs import KeptRuns, Output, Run, WaitingGate, can_be_kept
from signoff.agent.outputs import OwnOutputGate, RunWaits, around, is_plain_text, shown, writes_reply
from signoff.agent.prompt import NOTE, Prompt, has_enclosures, images_in, prompt_of, with_images
from signoff.approvals.containment import contained, described
from signoff.approvals.model import Actor, ApprovalRequest, Batch, CallKey, JsonObject, Place, Ruling, Terms
from signoff.approvals.policy import Policy
from signoff.approvals.ports import Clock, Revised
from signoff.dataclass import dataclass
from signoff.errors import SignoffError, TurnFailed
from signoff.gate.book import CallBook
from signoff.gate.examiner import Judge
from signoff.gate.gate import Gate
from signoff.gate.journal import Journal
from signoff.gate.live_calls import LiveCalls
from signoff.gate.observed_book import ObservedBook
from signoff.gate.tool_slots import ToolSlots
from signoff.gate.transcript import said, text_of, words_in
from signoff.turns.activity import Activity, ModelUsed
from signoff.turns.budgets import Budgets
from signoff.turns.model import Finished, HistoryEntry, Step, StepInput, Turn, Waiting
from signoff.turns.ports import Progress, TurnStore, TurnTx
from signoff.turns.progress import Early, Unseen

if TYPE_CHECKING:
    from signoff.gate.dry_run import DryRun

log = logging.getLogger(__name__)

FAREWELL = 1.0
"""Seconds that dropped runs may take to end, when the program stops."""
AHEAD = 3
"""Rounds of the event loop that a run lets pass if it is ahead of its step: the thread is asked for first."""


@dataclass(frozen=True, slots=True)
class Limits:
    calls_per_response: int = 10
    model_requests: int = 25
    model_retries: int = 3
    """How often a step is tried again if the model's provider fails for a moment."""
    history_tokens: int = 100_000
    """About how many tokens of a conversation the model gets. A summary takes the place of the older ones."""


@dataclass(frozen=True, slots=True)
class Extras:
    """Further parts of every run, besides the agent."""

    model: Model | None = None
    """None: the agent's own."""
    toolsets: tuple[AbstractToolset[Any], ...] = ()
    capabilities: tuple[AbstractCapability[Any], ...] = ()
    """They lie between gate and seal. One that must be outermost lies around the gate, as an agent's own does."""
    deps: DepsMaker | None = None
    own_output: bool = False
    """Whether to keep the agent's own output type. If not, its output is text."""

    async def deps_for(self, asker: Actor, place: Place, slots: ToolSlots) -> Any:
        return await self.deps.make(asker, place, slots) if self.deps else None


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
    extras: Extras = field(default_factory=Extras)
    budgets: Budgets | None = None
    """None: there are no limits. What is used is noted anyway."""
    live: LiveCalls = field(default_factory=LiveCalls)
    kept: KeptRuns = field(default_factory=KeptRuns)

    def turn_ended(self, turn: Turn) -> None:
        self.kept.drop(turn)
        if self.live:
            self.live.end_turn(turn.place.conversation)

    async def quiesce(self, seconds: float) -> None:
        await self.slots.clear(seconds)
        await self.kept.close(FAREWELL)

    def pause(self, server: str) -> None:
        self.slots.pause(server)

    def resume(self, server: str) -> None:
        self.slots.resume(server)

    async def begin(self, turn: Turn, given: StepInput) -> None:
        goes_on = bool(given.history)  # it may have to be shortened first
        if goes_on or self.kept.is_full or not self._holds_nothing:
            return
        try:
            run = await self._begun(turn, Early(), given, ahead=True)
        except Exception as error:
            log.debug("turn %s begins with its step: %s", turn.id, error)  # which fails in the same way, and says so
        else:
            run.dropped_ahead = partial(self._tell_dropped, turn)
            self.kept.keep(turn, None, run)

    def _tell_dropped(self, turn: Turn, run: Run) -> None:
        """Tell what a run used whose step never came. The framework has not counted its response yet."""
        for response in run.saver.history:
            if isinstance(response, ModelResponse):
                self.activity.tell(ModelUsed(turn, 1, response.usage.input_tokens, response.usage.output_tokens))

    async def advance(self, turn: Turn, progress: Progress | None = None, given: StepInput | None = None) -> Step:
        for attempt in count():
            try:
                return await self._advance(turn, progress or Unseen(), given or await self._read(turn))
            except Exception as error:
                given = None  # the attempt has changed it
                delay = await self._delay(turn, error, attempt)
                if delay is None:
                    await self._failed(turn, error)
                log.warning("the model failed turn %s, which goes on in %g seconds: %s", turn.id, delay, error)
            await asyncio.sleep(delay)
            turn = await self.store.run(lambda tx, turn=turn: tx.turn(turn.id)) or turn
        raise AssertionError("counting does not end")

    async def _delay(self, turn: Turn, error: Exception, attempt: int) -> float | None:
        """Return the seconds after which the same step may succeed; None if it would fail again."""
        if is_too_long(error):
            # The estimate was too low for this model, so that only the present turn is left.
            conversation = await self._conversation(await self._read(turn))
            if await self._shorten(turn, conversation, tokens=0):
                return 0.0
        return retry_delay(error, attempt) if attempt < self.limits.model_retries else None

    async def _advance(self, turn: Turn, progress: Progress, given: StepInput) -> Step:
        run = self._continued(turn, progress, given) or await self._begun(turn, progress, given)
        try:
            output = await run.outcome()
        except BudgetReached as reached:
            assert self.budgets is not None
            batch = await overage_batch(
                reached.standings, run.gate.responses, self.budgets, turn, self.policy, self.terms, self.clock.now()
            )
            return Waiting(batch)
        finally:
            self.activity.tell(ModelUsed(turn, *run.new_usage()))
        if isinstance(output, DeferredToolRequests):
            return Waiting(self._asked(output, run, turn))
        return Finished(output, run.saver.unsaved(), tuple(run.saver.uses))

    def _continued(self, turn: Turn, progress: Progress, given: StepInput) -> Run | None:
        """Let the run go on that waits for this step, if it is still kept."""
        run = self.kept.take(turn)
        if run:
            early = run.gate.progress
            run.gate.begin_step(self._book(turn, given), progress)
            for words in early.words if isinstance(early, Early) else ():
                progress.writing(words)
            run.resume()
        return run

    async def _begun(self, turn: Turn, progress: Progress, given: StepInput, *, ahead: bool = False) -> Run:
        """Begin a run with the stored conversation. If that ends in open calls, these are run first.

        `ahead`: before its step. The run asks the model, and waits with the response.
        """
        conversation = await self._conversation(given)
        if not turn.prompted and open_calls(conversation.messages):
            await self._close(turn, "Not run: the turn was stopped.")
            conversation = await self._conversation(await self._read(turn))
        most = self.limits.history_tokens
        is_long = not turn.prompted and conversation.tokens > most
        if is_long and await self._shorten(turn, conversation, tokens=most // 2):
            conversation = await self._conversation(await self._read(turn))
        prompt = None if turn.prompted else prompt_of(turn, given.files)
        gate = self._gate_kind(prompt, conversation)(
            self.policy,
            self._book(turn, given),
            turn.place,
            turn.asker,
            self.slots,
            self.hold,
            self.limits.calls_per_response,
            responses=responses_in(conversation.messages),
            progress=progress,
            children=StoredRuns(self.store, turn, self.clock, self.budgets, self.limits.model_retries),
            live=self.live,
        )
        made = requests_made(conversation.shown) + given.inner_requests if turn.prompted else 0
        gate.requests.left = self.limits.model_requests - made
        run = Run(gate, Saver(self.store, turn, conversation.messages, self.clock, conversation.size))
        if isinstance(gate, WaitingGate):
            gate.run = run
        if ahead:
            gate.begun = run.begun
        run.start(self._output(turn, prompt, conversation.shown, run), ahead=ahead)
        return run

    def _book(self, turn: Turn, given: StepInput) -> CallBook:
        journal = Journal(self.store, self.clock, turn, self.mask, given.known)
        return ObservedBook(journal, turn, self.activity)

    def _gate_kind(self, prompt: Prompt | None, conversation: Conversation) -> type[Gate]:
        extras = self.extras
        if extras.own_output and (extras.capabilities or not is_plain_text(self.agent)):
            return OwnOutputGate
        may_be_large = _has_enclosures(prompt, conversation.shown)
        return WaitingGate if self._holds_nothing and not may_be_large else Gate

    @property
    def _holds_nothing(self) -> bool:
        """Whether a run may wait for people or for its thread: no code of others counts on when it begins and ends."""
        own_code = self.extras.capabilities or self.extras.deps
        return not own_code and can_be_kept(self.agent, self.extras.toolsets)

    def _asked(self, output: DeferredToolRequests, run: Run, turn: Turn) -> Batch:
        """Return the batch for these calls, and keep the run if it waits."""
        words = next(text_of(m) for m in reversed(run.saver.history) if isinstance(m, ModelResponse))
        try:
            batch = build_batch(output, run.gate, turn, words, now=self.clock.now(), terms=self.terms)
        except BaseException:
            run.drop()
            raise
        self.kept.keep(turn, batch.id, run)
        return batch

    async def _output(self, turn: Turn, prompt: Prompt | None, history: list[ModelMessage], run: Run) -> Output:
        """Run the agent. Returns the text of the reply, or the calls that people have to decide about."""
        gate, saver = run.gate, run.saver
        for _ in range(AHEAD if run.is_ahead else 0):
            await asyncio.sleep(0)
        with contained():
            if not isinstance(gate, OwnOutputGate):
                parts = [gate] if isinstance(gate, WaitingGate) else [gate, saver, gate.seal()]
                inner = [*self.extras.capabilities, *parts, *self._checks(turn)]
                output_type = [str, DeferredToolRequests]
                return (await self._run(turn, prompt, history, run, inner, output_type)).output
            try:
                inner = [*self.extras.capabilities, *around(gate, self.agent, [saver, *self._checks(turn)])]
                result = await self._run(turn, prompt, history, run, inner)
            except RunWaits as waits:
                return waits.requests
            if gate.waits is not None:
                return gate.waits  # a capability of the agent has made an output of that
            saver.note_results(result.all_messages())
            return await shown(result.output, self.mask, self.slots)

    async def _failed(self, turn: Turn, error: Exception) -> Never:
        """End the turn with a line for the asker, unless the error has one already or the store failed."""
        if isinstance(error, SignoffError):
            raise error
        await self._close(turn, "Not run: the turn ended with an error.")
        raise TurnFailed(explain(error, model_requests=self.limits.model_requests)) from error

    async def _run(
        self,
        turn: Turn,
        prompt: Prompt | None,
        history: list[ModelMessage],
        run: Run,
        capabilities: Sequence[AbstractCapability[Any]],
        output_type: Any = None,
    ) -> AgentRunResult[Any]:
        gate, marked = run.gate, _has_enclosures(prompt, history)
        is_shown = not self.extras.own_output or writes_reply(self.agent)
        deps = await self.extras.deps_for(turn.asker, turn.place, self.slots)

        async def report(ctx: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
            async for event in events:
                if is_shown and (words := words_in(event)):
                    gate.progress.writing(words)

        return await self.agent.run(
            prompt,
            output_type=output_type,
            deps=deps,
            model=self.extras.model,
            toolsets=self.extras.toolsets,
            message_history=history,
            conversation_id=turn.place.conversation,
            instructions=NOTE if marked else None,
            usage_limits=UsageLimits(request_limit=max(int(gate.requests.left), 0)),
            usage=run.usage,
            capabilities=capabilities,
            # Not `run_stream_events`: its task and its stream cost a fifteenth of an instant run.
            event_stream_handler=report,
        )

    def _checks(self, turn: Turn) -> list[BudgetCheck]:
        return [BudgetCheck(self.budgets, self.store, self.clock, turn)] if self.budgets else []

    async def revise(self, batch: Batch, request: ApprovalRequest, args: JsonObject) -> Revised:
        if request.call.is_overage:
            return await revise_overage(batch, request, args, self.policy)
        if request.path:
            return await judged_inside(self.policy, batch, request, args)
        dry_run = await self._dry_run(batch.place, batch.asker)
        return await dry_run.call(request.call.tool, args, request.call)

    async def test(self, tool: str, args: JsonObject, place: Place, actor: Actor) -> Ruling:
        """Return the ruling on such a call without running it."""
        return (await (await self._dry_run(place, actor)).call(tool, args)).ruling

    async def _dry_run(self, place: Place, asker: Actor) -> DryRun:
        from signoff.gate.dry_run import DryRun  # here, because few need it

        entries = await self.store.run(lambda tx: tx.history(place.conversation))
        heard = said(await self._messages(entries))
        extras = self.extras
        return DryRun(
            self.agent,
            self.policy,
            place,
            asker,
            heard,
            self.slots,
            extras.toolsets,
            extras.capabilities,
            lambda: extras.deps_for(asker, place, self.slots),
        )

    async def _read(self, turn: Turn) -> StepInput:
        return await self.store.run(lambda tx: tx.step_input(turn))

    async def _conversation(self, given: StepInput) -> Conversation:
        summary, messages = given.summary, await self._messages(given.history)
        if summary is None:
            return Conversation(given.history, messages)
        return Conversation(given.history, messages, beginning_of(summary, messages[: summary.upto]), summary.upto)

    async def _messages(self, entries: Sequence[HistoryEntry]) -> list[ModelMessage]:
        messages = load_messages(entries)
        if keys := images_in(messages):
            turns = {turn for turn, _ in keys}
            files = await self.store.run(lambda tx: {turn: tx.files_of(turn) for turn in turns})
            images = {(turn, at): file for turn, kept in files.items() for at, file in enumerate(kept) if file.is_image}
            messages = with_images(messages, images)
        return messages

    async def _shorten(self, turn: Turn, conversation: Conversation, tokens: int) -> bool:
        """Put a summary in the place of the older turns, so that about `tokens` are left. False if that is impossible.

        If the summary fails, the conversation stays as it is, and the run tries to go on with it.
        """
        cut, usage = cut_of(conversation, tokens, under_way=turn.prompted), RunUsage()
        if cut is None:
            return False
        await self.slots.wait_open(turn.place.server)  # a paused server asks no model
        try:
            summary, response = await summarise(conversation, cut, self.extras.model or self.agent.model, usage)
        except Exception as error:
            log.warning("the conversation of turn %s could not be summarised: %s", turn.id, described(error))
            return False
        finally:
            self.activity.tell(ModelUsed(turn, usage.requests, usage.input_tokens, usage.output_tokens))

        def work(tx: TurnTx) -> None:
            tx.save_summary(turn.place.conversation, summary)
            tx.add_use(turn, use_of(response, self.clock.now()))

        await self.store.run(work)
        log.info("turn %s reads a summary in place of the first %d messages", turn.id, cut)
        return True

    async def _close(self, turn: Turn, words: str) -> None:
        """Give a result to every call that is still open, so that the next mention can continue the conversation."""

        def work(tx: TurnTx) -> None:
            entries = tx.history(turn.place.conversation)
            history = load_messages(entries)
            if closing := close_open_calls(history, words, lambda call_id: tx.call(_key(turn, history, call_id))):
                tx.save_history(turn.place.conversation, [entry_of(len(history), closing)])

        await self.store.run(work)


def _has_enclosures(prompt: Prompt | None, history: Sequence[ModelMessage]) -> bool:
    """Whether files or quotes came with the prompt or with an earlier one."""
    return has_enclosures(history) or not isinstance(prompt, str | None)


def _key(turn: Turn, history: Sequence[ModelMessage], call_id: str) -> CallKey:
    return CallKey(turn.place.conversation, responses_in(history), call_id)
