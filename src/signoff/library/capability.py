"""`Signoff`, the gate as a capability of any PydanticAI agent.

The gate must be the outermost capability and its seal the innermost, so `Signoff` is a combination of two parts, which
the framework takes apart and sorts. Each run gets a gate and a seal of its own: their state belongs to one run.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar, Unpack, cast, get_args

from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, CombinedCapability, WrapperCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from signoff.approvals.policy import Policy
from signoff.dataclass import dataclass
from signoff.gate.delegation import is_inside
from signoff.gate.inline import InlineGate
from signoff.gate.passing_events import PassesEvents
from signoff.gate.toolsets import GatedToolset, Seal, SealedToolset
from signoff.library.decider import one_question_at_a_time
from signoff.library.settings import Resumed, Settings, SignoffOptions

log = logging.getLogger(__name__)


class Signoff(CombinedCapability[Any]):
    """Asks before a tool runs: `Agent(..., capabilities=[Signoff(ui=...)])`. See docs/library.md."""

    def __init__(self, **options: Unpack[SignoffOptions]) -> None:
        super().__init__(parts_of(Settings(**options)))


def parts_of(settings: Settings, resumed: Resumed | None = None) -> list[AbstractCapability[Any]]:
    """Return the two parts of a `Signoff`. They may stand anywhere in a list of capabilities."""
    gates = Gates(settings, resumed)
    return [OuterPart(gates), InnerPart(gates)]


def settings_of(agent: AbstractAgent[Any, Any]) -> Settings | None:
    """Return the settings of the agent's own `Signoff`, if it has one."""
    parts = leaves_of(agent.root_capability)
    return next((part.gates.settings for part in parts if isinstance(part, OuterPart)), None)


def leaves_of(capability: AbstractCapability[Any]) -> list[AbstractCapability[Any]]:
    leaves: list[AbstractCapability[Any]] = []
    capability.apply(leaves.append)
    return leaves


@dataclass
class Gates:
    """Makes one gate per run, and hands it to each of the two parts once."""

    settings: Settings
    resumed: Resumed | None = None
    """The stored run that goes on; None: every run is a new one."""
    _of_runs: dict[int, RunGate] = field(default_factory=dict[int, "RunGate"])
    """Id of a run's first context, which both parts get -> the gate of that run, until the second part has it."""

    def of_run(self, ctx: RunContext[Any]) -> RunGate:
        if made := self._of_runs.pop(id(ctx), None):
            return made
        made = self._of_runs[id(ctx)] = RunGate(self.settings.gate(self.resumed), rests=is_inside())
        weakref.finalize(ctx, self._of_runs.pop, id(ctx), None)  # the run may fail before the second part asks
        return made


@dataclass
class RunGate:
    """The gate of one run."""

    gate: InlineGate
    rests: bool = False
    """Whether another gate is in charge of this run, such as the bot's: then this one must not ask a second time.

    In a run inside a tool, the gate of the tool's call is in charge.
    """


@dataclass
class Part(AbstractCapability[Any]):
    """One of the two parts of a `Signoff`, before the run."""

    gates: Gates

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        raise UserError("An agent has one Signoff, and this one got two. Put all settings into one of them.")


@dataclass
class OuterPart(Part):
    id: str | None = field(default="signoff", kw_only=True)

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def for_agent(self, agent: AbstractAgent[Any, Any]) -> AbstractCapability[Any]:
        # Only for the agent's own Signoff: a single run may have another output type.
        is_own = any(leaf is self for leaf in leaves_of(agent.root_capability))
        if self.gates.settings.store and is_own and not may_wait(agent.output_type):
            raise UserError(
                "Signoff(store=...) lets a run end before its result, with the requests that wait. "
                "Add DeferredToolRequests to the agent's output_type: output_type=[str, DeferredToolRequests]."
            )
        return self

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        own = self.gates.of_run(ctx)
        return OuterOfRun(AbstractCapability[Any]() if own.rests else own.gate, own=own)


@dataclass
class InnerPart(Part):
    id: str | None = field(default="signoff-seal", kw_only=True)

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        return InnerOfRun(self.gates.of_run(ctx))


@dataclass
class OuterOfRun(PassesEvents, WrapperCapability[Any]):
    """The gate of one run, as the framework calls it."""

    own: RunGate = field(kw_only=True)
    # A run that gets its own Signoff uses that one instead of the agent's: the framework keeps the later of two parts
    # with the same id.
    id: str | None = field(default="signoff", kw_only=True)
    combine: ClassVar[Any] = Part.combine

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        if is_gated(toolset):
            level = logging.WARNING if self.own.gate.policy != Policy() else logging.INFO
            log.log(level, "the agent's own Signoff and its rules rest: another gate is in charge of this run")
            self.own.rests = True
            self.wrapped = AbstractCapability[Any]()
        return super().get_wrapper_toolset(toolset)

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> AgentRunResult[Any]:
        if ctx.root_capability and not self.own.rests:
            _check_order(leaves_of(ctx.root_capability))
        with one_question_at_a_time():
            return await super().wrap_run(ctx, handler=handler)


@dataclass
class InnerOfRun(PassesEvents):
    """The seal of one run."""

    own: RunGate
    id: str | None = field(default="signoff-seal", kw_only=True)
    combine: ClassVar[Any] = Part.combine

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return SealedUnlessResting(toolset, self.own.gate, self.own)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if self.own.rests:
            return request_context
        return await Seal(self.own.gate).before_model_request(ctx, request_context)


@dataclass
class SealedUnlessResting(SealedToolset):
    own: RunGate

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if self.own.rests:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        return await super().call_tool(name, tool_args, ctx, tool)


def may_wait(output_type: Any) -> bool:
    """Whether a run with this output type may end with deferred calls."""
    listed = cast("Sequence[Any]", output_type) if isinstance(output_type, list | tuple) else get_args(output_type)
    return DeferredToolRequests in (*listed, output_type)


def is_gated(toolset: AbstractToolset[Any]) -> bool:
    """Whether a gate already surrounds these tools."""
    while isinstance(toolset, WrapperToolset):
        if isinstance(toolset, GatedToolset):
            return True
        toolset = toolset.wrapped
    return False


def _check_order(leaves: Sequence[AbstractCapability[Any]]) -> None:
    """Refuse capabilities inside the seal: they could change the arguments of an approved call unseen."""
    at = next((place for place, leaf in enumerate(leaves) if isinstance(leaf, InnerOfRun)), len(leaves))
    plain = AbstractCapability.get_wrapper_toolset
    inside = [type(leaf).__name__ for leaf in leaves[at + 1 :] if type(leaf).get_wrapper_toolset is not plain]
    if inside:
        raise UserError(
            f"Nothing was run: {', '.join(inside)} could change a call after its approval. "
            "Put Signoff behind it in the list of capabilities."
        )
