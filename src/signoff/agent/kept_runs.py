"""Keeps the newest runs in memory while people decide about their calls, so that a decision continues them at once.

The store knows everything that a kept run knows. A run that was dropped, or whose process has ended, is run again from
the store instead. Both ways lead through the same gate, which judges each call again and reads the decision from the
book. Only a run that is small and holds nothing else is kept: see `can_be_kept`, and docs/decisions/023.

A run that is ahead of its first step is kept here too: it asks the model while the turn's thread is opened. The store
knows nothing of it yet, so its turn would begin anew. See docs/decisions/024.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import field, replace
from itertools import takewhile
from typing import Any

from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, RunContext, ToolDefinition
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.usage import RunUsage

from signoff.agent.history import Saver
from signoff.agent.outputs import is_plain_text
from signoff.dataclass import dataclass
from signoff.gate.gate import Gate
from signoff.gate.pending_call import CallTool
from signoff.gate.transcript import is_prompt, response_of
from signoff.turns.model import Turn

MOST = 100
"""How many runs are kept. The oldest one is dropped for a new one."""
SECONDS = 300.0
"""How long a run is kept. People who take longer do not notice the milliseconds that it saves."""
LARGEST = 50_000
"""Bytes of the stored conversation. In memory it takes several times as much, and there may be `MOST` of them."""

Output = str | DeferredToolRequests
"""The text of the reply, or the calls that people have to decide about."""


@dataclass(eq=False)
class Run:
    """One run of the agent. It has a task of its own, so that it can outlast the step that began it."""

    gate: Gate
    saver: Saver
    usage: RunUsage = field(default_factory=RunUsage)
    _told: tuple[int, int, int] = (0, 0, 0)
    """What `new_usage` has returned so far."""
    task: asyncio.Task[Output] | None = None
    _outcome: asyncio.Future[Output] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """What the present step ends with."""
    _next: asyncio.Future[bool] | None = None
    """While the run waits for its next step, or is ahead of its first one: whether it goes on."""
    is_ahead: bool = False
    """Whether the first step has not begun yet."""
    dropped_ahead: Callable[[Run], None] = lambda run: None
    """Called with the run if it is dropped before that."""

    def start(self, work: Coroutine[Any, Any, Output], *, ahead: bool = False) -> None:
        self.is_ahead = ahead
        if ahead:
            self._next = asyncio.get_running_loop().create_future()
        self.task = asyncio.get_running_loop().create_task(work)
        self.task.add_done_callback(self._ended)

    async def begun(self) -> None:
        """Called inside the run: wait for the first step, if the run is ahead of it."""
        if self.is_ahead and self._next and not await self._next:
            raise asyncio.CancelledError  # it was dropped

    async def outcome(self) -> Output:
        """Return the output of the run, or the calls for which it waits. Raises what the run raises."""
        try:
            return await self._outcome
        except asyncio.CancelledError:
            await self._cancel()
            raise

    async def wait(self, requests: DeferredToolRequests) -> bool:
        """Called inside the run: end the step, and wait for people. Returns whether the run goes on."""
        if self._outcome.done():
            return False  # the step was cancelled, and a tool kept the run from noticing that
        loop = asyncio.get_running_loop()
        self._next, ended = loop.create_future(), self._outcome
        self._outcome = loop.create_future()
        ended.set_result(requests)
        return await self._next

    @property
    def is_waiting(self) -> bool:
        return self._next is not None and not self._next.done()

    def resume(self) -> None:
        """Begin the next step of a run that waits, or the first one of a run that is ahead of it."""
        assert self._next is not None
        self.is_ahead = False
        self._next.set_result(True)

    def drop(self) -> None:
        """Let the run end where it is, if it waits. The store has all of it, or nothing if it is ahead of its step."""
        if self._next and self.is_waiting:
            self._next.set_result(False)
            if self.is_ahead and self.task:
                self.task.cancel()
                self.dropped_ahead(self)

    def new_usage(self) -> tuple[int, int, int]:
        """Return the requests, input tokens and output tokens since the last call."""
        before, now = self._told, (self.usage.requests, self.usage.input_tokens, self.usage.output_tokens)
        self._told = now
        return now[0] - before[0], now[1] - before[1], now[2] - before[2]

    def _ended(self, task: asyncio.Task[Output]) -> None:
        error = None if task.cancelled() else task.exception()
        if self._outcome.done():
            return  # nobody waits for it any more
        if task.cancelled():
            self._outcome.cancel()
        elif error:
            self._outcome.set_exception(error)
            self._outcome.exception()  # nobody may ask for it: the run was dropped, or its turn was
        else:
            self._outcome.set_result(task.result())

    async def _cancel(self) -> None:
        """Cancel the run, and wait until it has ended: it may still have to store something."""
        task = self.task
        while task and not task.done():
            task.cancel()
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue  # the step is cancelled once more, and so is the run


@dataclass
class WaitingGate(Gate):
    """The gate of a run that may be kept. It waits inside the run while people decide.

    No code of others lies between it and its seal, so it is saver and seal as well: each capability costs every step.
    """

    run: Run | None = None

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return super().get_wrapper_toolset(self.seal().get_wrapper_toolset(toolset))

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        request_context = await super().before_model_request(ctx, request_context)
        return await self.seal().before_model_request(ctx, request_context)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        saved = await self._saver.after_model_request(ctx, request_context=request_context, response=response)
        return await super().after_model_request(ctx, request_context=request_context, response=saved)

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        return await self._saver.before_node_run(ctx, node=node)

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        return await self._saver.on_run_error(ctx, error=error)

    @property
    def _saver(self) -> Saver:
        assert self.run is not None
        return self.run.saver

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        assert self.run is not None
        if not _goes_on_alike(ctx, requests) or not await self.run.wait(requests):
            return None  # the run ends with these requests
        ctx.retries.clear()
        # The framework calls all of them again, whatever was decided: the gate reads that from the book.
        return requests.build_results(approve_all=True)

    # The framework marks these calls as approved. Only the book knows whether they are.

    async def check(self, ctx: RunContext[Any], validate: Callable[..., Any], args: dict[str, Any]) -> None:
        await super().check(_unmarked(ctx), validate, args)

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        return await super().admit(_unmarked(ctx), tool_def, args, run)


def _goes_on_alike(ctx: RunContext[Any], requests: DeferredToolRequests) -> bool:
    """Whether the run goes on after the decision just as a new run would.

    If some calls of the response have ended, a new run gives all results in the order of the calls. A new run also
    forgives the model responses without text and calls, of which one run allows only few.
    """
    said = takewhile(lambda message: not is_prompt(message), reversed(ctx.messages))
    always_called = all(message.tool_calls for message in said if isinstance(message, ModelResponse))
    return always_called and len(requests.approvals) == len(response_of(ctx).tool_calls)


def _unmarked(ctx: RunContext[Any]) -> RunContext[Any]:
    return replace(ctx, tool_call_approved=False) if ctx.tool_call_approved else ctx


@dataclass(frozen=True)
class _Kept:
    batch: str | None
    """The id of the batch that the run waits for. None: it is ahead of its first step."""
    run: Run
    timer: asyncio.TimerHandle


@dataclass
class KeptRuns:
    most: int = MOST
    seconds: float = SECONDS
    _runs: dict[str, _Kept] = field(default_factory=dict[str, _Kept])
    """Turn id -> its run. The oldest one is the first."""
    _closed: bool = False

    @property
    def is_full(self) -> bool:
        return len(self._runs) >= self.most

    def keep(self, turn: Turn, batch: str | None, run: Run) -> None:
        """Keep the run until its next step, if it waits and is not too large. That begins when the batch is decided."""
        self.drop(turn)
        if self._closed or run.saver.size > LARGEST:
            run.drop()
        if not run.is_waiting:
            return
        timer = asyncio.get_running_loop().call_later(self.seconds, self._drop, turn.id)
        self._runs[turn.id] = _Kept(batch, run, timer)
        while len(self._runs) > self.most:
            self._drop(next(iter(self._runs)))

    def take(self, turn: Turn) -> Run | None:
        """Return the run that waits for this step of the turn, if it is still kept. It is the caller's then."""
        kept = self._runs.get(turn.id)
        if kept is None or kept.batch != turn.batch or kept.run.gate.place != turn.place:
            self.drop(turn)
            return None
        del self._runs[turn.id]
        kept.timer.cancel()
        return kept.run

    def drop(self, turn: Turn) -> None:
        self._drop(turn.id)

    async def close(self, seconds: float) -> None:
        """Drop all runs and keep no more. Wait at most this long for them."""
        self._closed = True
        tasks = [kept.run.task for kept in self._runs.values() if kept.run.task]
        for turn in list(self._runs):
            self._drop(turn)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _drop(self, turn: str) -> None:
        if kept := self._runs.pop(turn, None):
            kept.timer.cancel()
            kept.run.drop()


def can_be_kept(agent: AbstractAgent[Any, Any], toolsets: tuple[AbstractToolset[Any], ...]) -> bool:
    """Whether the agent's runs hold nothing while they wait, and go on as new runs would.

    The code of others may hold a connection or a lock as long as a run lasts, and tools may change while people decide.
    `WaitingGate` relies on this too: nothing may change arguments between the gate and its seal.
    """
    if not isinstance(agent, Agent) or not is_plain_text(agent):
        return False
    limited = getattr(agent, "_concurrency_limiter", None) is not None
    traced = agent.instrument or getattr(Agent, "_instrument_default", False)  # a trace would last as long
    return not limited and not traced and all(map(_is_static, [*agent.toolsets, *toolsets]))


def _is_static(toolset: AbstractToolset[Any]) -> bool:
    """Whether these tools are functions that are the same in each step."""
    if not isinstance(toolset, FunctionToolset) or not type(toolset).__module__.startswith("pydantic_ai."):
        return False
    return all(tool.prepare is None for tool in toolset.tools.values())
