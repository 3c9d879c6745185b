"""The gate of an agent inside a tool, and how such an agent is run.

The gate is the same as the bot's: policy, place, asker, limits, journal. It differs in the way it asks: it hands its
questions to the call that runs the agent, and the agent's run is left. Knows nothing of the store.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import Any

from pydantic_ai import Agent, AgentRunResult, RunContext, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults
from pydantic_ai.usage import RequestUsage

from signoff.dataclass import dataclass
from signoff.errors import SignoffError
from signoff.gate import wording
from signoff.gate.delegation import Delegated, Delegation, InnerRun
from signoff.gate.gate import Gate
from signoff.gate.home_loop import BookAtHome, HomeLoop, JudgeAtHome, ProgressAtHome, SlotsAtHome
from signoff.gate.pending_call import PendingCall
from signoff.gate.toolsets import Seal


@dataclass
class InnerGate(Gate):
    """Behind it runs an agent inside a tool. It may be used on any loop."""

    delegation: Delegation = field(kw_only=True)
    run: InnerRun = field(kw_only=True)
    replay: ModelResponse | None = None
    """The last response of a run that had ended: it is given again instead of asking the model."""

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        return request_context if self.replay else await super().before_model_request(ctx, request_context)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        if self.replay is None:
            # An agent may use the bot's own model, whose connections belong to the bot's loop. A stream cannot move.
            away = self.home is not None and not request_context.streaming
            return await (self.home.run(handler(request_context)) if self.home and away else handler(request_context))
        response, self.replay = replace(self.replay, usage=RequestUsage()), None
        self.responses += 1
        ctx.usage.requests -= 1  # the framework is about to count it
        return response

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        pending = [self.pending(part.tool_call_id) for part in requests.approvals]
        if requests.calls or not all(pending):
            raise RuntimeError(wording.PAST_THE_GATE)
        await self.leave([call for several in pending for call in several])
        denied = {part.tool_call_id: ToolDenied(self.delegation.why_nobody) for part in requests.approvals}
        return requests.build_results(approvals=denied)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        # The framework drops deferred calls if the same response has the output. Here they are asked about.
        if self._pending or self._within:
            inside = [call for several in self._within.values() for call in several]
            await self.leave([*self._pending.values(), *inside])
        return result

    async def leave(self, pending: Sequence[PendingCall]) -> None:
        """Leave the run until people have decided. Returns only if nobody can be asked any more."""
        if await self.delegation.wait(self.run, pending):
            raise Delegated


def inner_gate(parent: Delegation, run: InnerRun, home: HomeLoop, *, responses: int) -> InnerGate:
    """Return the gate for a run of an agent inside the call."""
    outer = parent.gate
    return InnerGate(
        outer.policy if isinstance(outer.policy, JudgeAtHome) else JudgeAtHome(outer.policy, home),
        outer.book if isinstance(outer.book, BookAtHome) else BookAtHome(outer.book, home),
        outer.place,
        outer.asker,
        SlotsAtHome(outer.slots, home),
        outer.hold,
        outer.calls_per_response,
        outer.contains_failures,
        outer.native_allowed,
        responses=responses,
        progress=outer.progress if isinstance(outer.progress, ProgressAtHome) else ProgressAtHome(outer.progress, home),
        conversation=run.conversation,
        path=(*outer.path, run.agent),
        children=outer.children,
        live=outer.live,
        requests=outer.requests,
        home=home,
        delegation=parent,
        run=run,
    )


@asynccontextmanager
async def run_inside(
    run_agent: Callable[..., Any],
    parent: Delegation,
    agent: Agent[Any, Any],
    user_prompt: Any = None,
    *,
    message_history: Sequence[ModelMessage] | None = None,
    conversation: Any = None,
    capabilities: Sequence[Any] | None = None,
    **options: Any,
) -> AsyncGenerator[Any]:
    """Run an agent inside a tool, as `Agent.iter` does, behind the gate of that tool's call."""
    if parent.gate.asks_inside and any(isinstance(one, Gate) for one in capabilities or ()):
        # The program chose for itself how to ask about this agent's calls.
        options |= {"message_history": message_history, "conversation": conversation, "capabilities": capabilities}
        async with run_agent(agent, user_prompt, **options) as agent_run:
            yield agent_run
        return
    given = conversation.messages if conversation is not None else message_history or ()
    run, opened = await parent.begin(agent.name or "", user_prompt, given)
    finished = False
    try:
        if opened.history is None:
            options |= {"message_history": message_history, "conversation": conversation}
        else:
            user_prompt = None
            options |= {"message_history": opened.history, "run_id": None, "deferred_tool_results": None}
        # A gate that the tool's author added would ask in another way about the same calls.
        own = [one for one in capabilities or () if not isinstance(one, Gate | Seal)]
        behind = [opened.gate, *own, *opened.capabilities, opened.gate.seal()]
        async with run_agent(agent, user_prompt, capabilities=behind, **options) as agent_run:
            yield agent_run
            finished = agent_run.result is not None
    except SignoffError as error:
        parent.fatal = error
        raise
    finally:
        await parent.end(run, finished=finished)
