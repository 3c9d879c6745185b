"""Tries a call without running it: the real agent and the real gate validate, judge and preview it.

The agent runs with a model of ours that makes only this call, and with a gate that stops every call after its preview.
So hooks, toolsets and validators judge new arguments exactly as they would judge the model's.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from typing import Any

from pydantic_ai import ApprovalRequired, DeferredToolRequests, RunContext, ToolDefinition
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset

from signoff.approvals.containment import described
from signoff.approvals.digest import bind
from signoff.approvals.errors import Refused
from signoff.approvals.model import Actor, JsonObject, Place, ToolCall, Verdict
from signoff.approvals.policy import Said
from signoff.approvals.ports import Revised
from signoff.dataclass import dataclass
from signoff.gate.book import MemoryBook
from signoff.gate.examiner import Judge
from signoff.gate.gate import Gate
from signoff.gate.pending_call import CallTool, Preview
from signoff.gate.tool_slots import ToolSlots


@dataclass(frozen=True)
class DryRun:
    agent: AbstractAgent[Any, Any]
    policy: Judge
    place: Place
    asker: Actor
    heard: Sequence[Said] = ()
    slots: ToolSlots = field(default_factory=ToolSlots)
    """Those of the real calls. A dry run takes over their time limit and threads, but no place in a share."""
    toolsets: Sequence[AbstractToolset[Any]] = ()
    capabilities: Sequence[AbstractCapability[Any]] = ()
    """The toolsets and capabilities that a real run gets besides those of the agent."""
    make_deps: Callable[[], Awaitable[Any]] | None = None

    async def call(self, tool: str, args: JsonObject, instead_of: ToolCall | None = None) -> Revised:
        """Return the call as people would see it. Raises Refused if the tool does not take it."""
        slots = ToolSlots(self.slots.seconds_per_tool, threads=self.slots.threads)
        gate = DryRunGate(self.policy, MemoryBook(), self.place, self.asker, slots, heard=self.heard)
        try:
            await self.agent.run(
                "dry run",
                model=_calling(tool, args),
                deps=await self.make_deps() if self.make_deps else None,
                toolsets=self.toolsets,
                capabilities=[gate, *self.capabilities],
            )
        except _Ended as end:
            if gate.tried is None:
                raise Refused(f"The tool does not take this: {end.answer}") from None
        except Exception as error:
            raise Refused(f"This could not be tried: {described(error)}") from error
        if gate.tried is None:
            raise Refused(f"{tool} is not a tool that could be tried.")
        if instead_of is None:
            return gate.tried
        if gate.tried.call.schema != instead_of.schema:
            raise Refused("The tool has changed since this card was made, so its call cannot be edited.")
        return replace(gate.tried, call=bind(replace(gate.tried.call, key=instead_of.key), self.place))


class _Ended(Exception):
    """Ends a dry run: the call was previewed, or it got an answer without that."""

    def __init__(self, answer: str = "no reason was given") -> None:
        super().__init__(answer)
        self.answer = answer


@dataclass
class DryRunGate(Gate):
    """Judges and previews a call like the gate, but never runs it."""

    tried: Revised | None = None

    async def check(self, ctx: RunContext[Any], validate: Callable[..., Any], args: dict[str, Any]) -> None:
        """Run the validator as if the call were approved, so that the editor learns now what it would refuse later."""
        await self.examiner.check(ctx, self._key(ctx.tool_call_id), validate, args, approved=True)

    async def admit(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], run: CallTool) -> Any:
        attempt = await self._attempt(ctx, tool_def.name, args, run)
        ruling = await self.examiner.rule(attempt.call, attempt.ctx)
        denied = ruling.verdict is Verdict.DENY
        view = Preview("") if denied else await self.examiner.preview(attempt.tool_def, attempt.ctx, attempt.args)
        self.tried = Revised(replace(attempt.call, operands=view.operands), ruling, view.text, view.diff_of)
        raise ApprovalRequired

    # Both hooks end the run with an exception, which needs no output type of ours: the agent may have its own.

    async def handle_deferred_tool_calls(self, ctx: RunContext[Any], *, requests: DeferredToolRequests) -> None:
        raise _Ended

    async def wrap_output_validate(self, ctx: RunContext[Any], **rest: Any) -> Any:
        raise _Ended("it is an output of the agent, not a tool")


def _calling(tool: str, args: JsonObject) -> FunctionModel:
    """Return a model that makes one call, and ends the run once that call has a result."""

    def once(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            raise _Ended(_answer(messages))
        return ModelResponse(parts=[ToolCallPart(tool, json.dumps(dict(args)), "dry run")])

    return FunctionModel(once)


def _answer(messages: Sequence[ModelMessage]) -> str:
    """Return the last result that the model got: the refusal by the framework or the validator."""
    for message in reversed(messages):
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, ToolReturnPart):
                return part.model_response_str()
    return "no reason was given"
