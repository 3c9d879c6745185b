"""Keeps the output of an imported agent as it is: its output type, output functions, validators and retries.

A run with an output type of its own cannot end with `DeferredToolRequests`: the framework refuses that type beside
output validators, and drops deferred calls if the same response calls an output tool. So such a run ends with the
exception `RunWaits` when people have to decide, and is run again afterwards. An output tool never runs before the calls
beside it are settled. Knows nothing of people and cards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Never, cast, get_args

from pydantic_ai import Agent, DeferredToolRequests, ModelRetry, RunContext, ToolDefinition
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.output import OutputContext

from signoff.agent.imported import capabilities_of
from signoff.agent.output_text import text_of_output
from signoff.approvals.containment import answered
from signoff.approvals.model import CallKey, JsonObject
from signoff.dataclass import dataclass
from signoff.gate.gate import Gate
from signoff.gate.passing_events import PassesEvents
from signoff.gate.tool_slots import ToolSlots
from signoff.gate.transcript import response_of

log = logging.getLogger(__name__)


class RunWaits(Exception):
    """People have to decide about calls, so the run ends here. Nothing failed."""

    def __init__(self, requests: DeferredToolRequests) -> None:
        super().__init__("the run waits for a decision")
        self.requests = requests


@dataclass
class OwnOutputGate(Gate):
    """Ends the run when calls are deferred. It is outermost, so no handler of the agent decides about them before."""

    waits: DeferredToolRequests | None = None
    """The calls that people have to decide about. A capability of the agent may take `RunWaits` for a failure."""

    async def handle_deferred_tool_calls(self, ctx: RunContext[Any], *, requests: DeferredToolRequests) -> None:
        self.wait(requests)

    def wait(self, requests: DeferredToolRequests) -> Never:
        self.waits = requests
        raise RunWaits(requests)


@dataclass
class OutputAfterCalls(PassesEvents):
    """Lets an output tool run only after the calls of its response."""

    gate: Gate

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def wrap_output_validate(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        if output_context.tool_call is not None and not ctx.partial_output:
            await self._check_calls(ctx)
        return await handler(output)

    async def _check_calls(self, ctx: RunContext[Any]) -> None:
        """Look at the calls beside an output tool. Raises RunWaits, or ModelRetry if one of them did not run."""
        calls = [call for call in response_of(ctx).tool_calls if call.tool_name in self.gate.examiner.tools]
        waiting = [call for call in calls if self.gate.pending(call.tool_call_id)]
        if waiting:
            await self._wait(waiting)
        if getattr(ctx.agent, "end_strategy", None) == "early" or ctx.last_attempt:
            return  # "early" runs no calls beside an output; in the last attempt there is no other output to wait for
        if missing := sorted({call.tool_name for call in calls if not self._ran(call)}):
            # The model wrote this output before it could know that.
            names = ", ".join(missing)
            raise ModelRetry(f"Not used: {names} did not run as you expected. Read its result, then answer again.")

    async def _wait(self, calls: list[ToolCallPart]) -> None:
        cast(OwnOutputGate, self.gate).wait(DeferredToolRequests(approvals=calls))

    def _ran(self, call: ToolCallPart) -> bool:
        conversation = self.gate.conversation or self.gate.place.conversation
        return CallKey(conversation, self.gate.responses, call.tool_call_id) in self.gate.ran


@dataclass
class OutputLast(PassesEvents):
    """Puts the output tools behind the other calls of a response, because the framework runs calls in their order."""

    async def prepare_output_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        # Under `end_strategy="exhaustive"` only a sequential tool waits for the calls before it.
        return [replace(tool_def, sequential=True) for tool_def in tool_defs]

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        names = {tool.name for tool in request_context.model_request_parameters.output_tools}
        last = [part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_name in names]
        if not last or list(response.parts[-len(last) :]) == last:
            return response
        others = [part for part in response.parts if not any(part is one for one in last)]
        return replace(response, parts=[*others, *last])


async def shown(output: Any, mask: Callable[[JsonObject], JsonObject], slots: ToolSlots) -> str:
    """Return the text of the reply. The agent's own classes may say how they are written, so this is contained."""
    if isinstance(output, str):
        return output
    try:
        return await slots.in_time("writing the output", answered(text_of_output, output, mask))
    except Exception as error:
        log.warning("an output of type %s cannot be shown", type(output).__name__, exc_info=error)
        return f"The agent finished, but its output ({type(output).__name__}) cannot be shown as text."


def is_plain_text(agent: AbstractAgent[Any, Any]) -> bool:
    """Whether the agent's output is just what its model writes, and no code of the agent's own takes part in a run."""
    if type(agent) is not Agent or agent.output_type is not str or not writes_reply(agent):
        return False
    parts = capabilities_of(agent.root_capability)
    # A search for tools with a strategy may call a function of the agent's own.
    has_strategy = any(getattr(part, "strategy", None) is not None for part in parts)
    listeners: Any = getattr(agent, "_event_hooks", None)  # what `@agent.on_event` registers
    listens = listeners is not None and listeners.has_on_event
    return not has_strategy and not listens and {type(part) for part in parts} <= _of_every_agent()


@cache
def _of_every_agent() -> set[type[AbstractCapability[Any]]]:
    """The capabilities that the framework gives to each agent."""
    return {type(part) for part in capabilities_of(Agent().root_capability)}


def writes_reply(agent: AbstractAgent[Any, Any]) -> bool:
    """Whether the text that the model writes is the reply, so that people may read it while it is written.

    The text of a structured output is not: secrets in it are masked at the end, and a validator may change it.
    """
    output_type: Any = agent.output_type
    kinds = cast("Sequence[Any]", output_type) if isinstance(output_type, list | tuple) else get_args(output_type)
    while isinstance(agent, WrapperAgent):
        agent = agent.wrapped
    return str in (*kinds, output_type) and getattr(agent, "_output_validators", None) == []


def around(
    gate: OwnOutputGate, agent: AbstractAgent[Any, Any], inner: Sequence[AbstractCapability[Any]]
) -> list[AbstractCapability[Any]]:
    """Return the capabilities of a run that keeps the agent's output, with `inner` between gate and seal."""
    if agent.output_type is str:  # it has no output tools, and every capability costs each step of every run
        return [gate, *inner, gate.seal()]
    return [gate, OutputAfterCalls(gate), *inner, OutputLast(), gate.seal()]
