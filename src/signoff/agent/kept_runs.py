"""Keeps the newest runs in memory while people decide about their calls, so that a decision continues them at once.

The store knows everything that a kept run knows. A run that was dropped, or whose process has ended, is run again from
the store instead. Both ways lead through the same gate, which judges each call again and reads the decision from the
book. Only a run that holds nothing else meanwhile is kept: see `can_be_kept`. See docs/decisions/023.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import field, replace
from functools import cache
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolDefinition
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.usage import RunUsage

from signoff.agent.history import Saver
from signoff.agent.imported import capabilities_of
from signoff.agent.outputs import writes_reply
from signoff.dataclass import dataclass
from signoff.gate.book import CallBook
from signoff.gate.gate import Gate
from signoff.gate.pending_call import CallTool
from signoff.gate.transcript import response_of
from signoff.turns.ports import Progress

MOST = 100
"""How many runs are kept. Each takes some 40 KB; the oldest one is dropped for a new one."""
SECONDS = 300.0
"""How long a run is kept. People who take longer do not notice the milliseconds that it saves."""

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
    _task: asyncio.Task[Output] | None = None
    _outcome: asyncio.Future[Output] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """What the present step ends with."""
    _decided: asyncio.Future[bool] | None = None
    """While the run waits for people: whether it goes on."""

    def start(self, work: Coroutine[Any, Any, Output]) -> None:
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._ended)

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
            return False  # the step was cancelled just now
        self._decided = asyncio.get_running_loop().create_future()
        self._outcome.set_result(requests)
        return await self._decided

    @property
    def waits(self) -> bool:
        return self._decided is not None and not self._decided.done()

    def go_on(self) -> None:
        """Begin the next step of a run that waits."""
        assert self._decided is not None
        self._outcome = asyncio.get_running_loop().create_future()
        self._decided.set_result(True)

    def drop(self) -> None:
        """Let a run that waits end where it is. The store has all of it."""
        if self._decided and not self._decided.done():
            self._decided.set_result(False)

    async def ended(self) -> None:
        if self._task and not self._task.done():
            await asyncio.wait({self._task})

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
        else:
            self._outcome.set_result(task.result())

    async def _cancel(self) -> None:
        """Cancel the run, and wait until it has ended: it may still have to store something."""
        if self._task:
            self._task.cancel()
        await self.ended()


@dataclass
class WaitingGate(Gate):
    """Waits inside the run while people decide."""

    wait: Callable[[DeferredToolRequests], Coroutine[Any, Any, bool]] | None = None

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        # If some calls of the response have ended, a new run gives their results in the order of the model's calls.
        asks_all = len(requests.approvals) == len(response_of(ctx).tool_calls)
        if not asks_all or self.wait is None or not await self.wait(requests):
            return None  # the run ends with these requests
        ctx.retries.clear()  # a run that begins anew has no failed attempts either
        # The framework calls all of them again, whatever was decided: the gate reads that from the book.
        return requests.build_results(approve_all=True)

    def go_on(self, book: CallBook, progress: Progress) -> None:
        """Begin the next step: nothing that was judged before the decision counts any more."""
        self.book, self.progress = book, progress
        self.examiner.asked_early.clear()
        self._seen.clear()
        self._pending.clear()
        self._within.clear()

    # The framework marks these calls as approved. Only the book knows whether they are.

    async def check(self, ctx: RunContext[Any], validate: Callable[..., Any], args: dict[str, Any]) -> None:
        await super().check(_unmarked(ctx), validate, args)

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        return await super().admit(_unmarked(ctx), tool_def, args, run)


def _unmarked(ctx: RunContext[Any]) -> RunContext[Any]:
    return replace(ctx, tool_call_approved=False) if ctx.tool_call_approved else ctx


@dataclass
class KeptRuns:
    most: int = MOST
    seconds: float = SECONDS
    _runs: dict[str, tuple[Run, asyncio.TimerHandle]] = field(
        default_factory=dict[str, "tuple[Run, asyncio.TimerHandle]"]
    )
    """Id of each batch that a run waits for -> (the run, the timer that drops it). The oldest one is the first."""

    def keep(self, batch: str, run: Run) -> None:
        """Keep a run that waits for this batch. A run that does not wait has ended and is not kept."""
        if not run.waits:
            return
        timer = asyncio.get_running_loop().call_later(self.seconds, self.drop, batch)
        self._runs[batch] = run, timer
        while len(self._runs) > self.most:
            self.drop(next(iter(self._runs)))

    def take(self, batch: str | None) -> Run | None:
        """Return the run that waits for this batch, if it is still kept. From now on it is the caller's."""
        run, timer = self._runs.pop(batch or "", (None, None))
        if timer:
            timer.cancel()
        return run

    def drop(self, batch: str | None) -> None:
        if run := self.take(batch):
            run.drop()

    async def close(self) -> None:
        """Drop all runs, and keep no more."""
        self.most = 0
        runs = [run for run, _ in self._runs.values()]
        for batch in list(self._runs):
            self.drop(batch)
        for run in runs:
            await run.ended()


def is_plain_text(agent: AbstractAgent[Any, Any]) -> bool:
    """Whether the agent's output is just what its model writes, without any part of the agent's own."""
    if not isinstance(agent, Agent) or agent.output_type is not str or not writes_reply(agent):
        return False
    return {type(part) for part in capabilities_of(agent.root_capability)} <= _of_every_agent()


def can_be_kept(agent: AbstractAgent[Any, Any], toolsets: tuple[AbstractToolset[Any], ...]) -> bool:
    """Whether a run holds nothing while it waits, and goes on as a new run would.

    The code of others may hold a connection or a lock as long as a run lasts, and tools may change while people decide.
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


@cache
def _of_every_agent() -> set[type[AbstractCapability[Any]]]:
    """The capabilities that the framework gives to each agent."""
    return {type(part) for part in capabilities_of(Agent().root_capability)}
