"""Run an agent, ask about what must be asked, and hand back its own result.

The whole conversation is one run of the framework: the agent keeps its output type, validators, limits and streaming
handlers. This adds the gate and knows nothing of how the gate works.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic_ai import AgentRunResult
from pydantic_ai.agent import AbstractAgent, EventStreamHandler
from pydantic_ai.capabilities import AgentCapability
from pydantic_ai.messages import ModelMessage, UserContent
from pydantic_ai.models import Model
from pydantic_ai.output import OutputDataT
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage, UsageLimits

from signoff.approvals.policy import Policy
from signoff.gate.toolsets import Seal
from signoff.library.decider import ApprovalMode, Asker, OnNoApprover, Subscriber, one_question_at_a_time
from signoff.library.gate import RunGate
from signoff.library.memory import ApprovalMemory
from signoff.library.rulings import Rulings
from signoff.library.ui import AnyApprovalUI

BatchRule = Literal["hold", "split"]
NativeTools = Literal["refuse", "allow"]


async def run_with_approval(
    agent: AbstractAgent[AgentDepsT, OutputDataT],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    ui: AnyApprovalUI | None = None,
    mode: ApprovalMode = "interactive",
    memory: ApprovalMemory | None = None,
    policy: Policy | None = None,
    on_no_approver: OnNoApprover = "reject",
    on_event: Subscriber | Sequence[Subscriber] = (),
    batch: BatchRule = "hold",
    native_tools: NativeTools = "refuse",
    max_rounds: int = 25,
    deps: AgentDepsT = None,
    message_history: Sequence[ModelMessage] | None = None,
    usage_limits: UsageLimits | None = None,
    usage: RunUsage | None = None,
    model: Model | str | None = None,
    model_settings: ModelSettings | None = None,
    conversation_id: str | None = None,
    toolsets: Sequence[AbstractToolset[AgentDepsT]] | None = None,
    capabilities: Sequence[AgentCapability[AgentDepsT]] | None = None,
    event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
) -> AgentRunResult[OutputDataT]:
    """Run the agent to its end, asking about each call that needs approval. A sync UI is called in a thread.

    What decides: a deny rule of `policy`, then a remembered decision, then `mode`, then the `ui`. `batch="hold"` makes
    all calls of a response wait, and asks about each, if a person is asked about one; with `"split"` the others run.
    After `max_rounds` responses that had to ask, nobody is asked again and further calls that would ask are rejected.
    The other parameters are those of `agent.run`.
    """
    asker = Asker(ui, mode, memory, on_no_approver, on_event)
    gate = _gate(asker, policy, batch, native_tools, max_rounds)
    with one_question_at_a_time():
        return await agent.run(
            prompt,
            deps=deps,
            message_history=message_history,
            usage_limits=usage_limits,
            usage=usage,
            model=model,
            model_settings=model_settings,
            conversation_id=conversation_id,
            toolsets=toolsets,
            capabilities=[gate, *(capabilities or ()), Seal(gate)],
            event_stream_handler=event_stream_handler,
        )


def run_with_approval_sync(
    agent: AbstractAgent[AgentDepsT, OutputDataT],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    ui: AnyApprovalUI | None = None,
    mode: ApprovalMode = "interactive",
    memory: ApprovalMemory | None = None,
    policy: Policy | None = None,
    on_no_approver: OnNoApprover = "reject",
    on_event: Subscriber | Sequence[Subscriber] = (),
    batch: BatchRule = "hold",
    native_tools: NativeTools = "refuse",
    max_rounds: int = 25,
    deps: AgentDepsT = None,
    message_history: Sequence[ModelMessage] | None = None,
    usage_limits: UsageLimits | None = None,
    usage: RunUsage | None = None,
    model: Model | str | None = None,
    model_settings: ModelSettings | None = None,
    conversation_id: str | None = None,
    toolsets: Sequence[AbstractToolset[AgentDepsT]] | None = None,
    capabilities: Sequence[AgentCapability[AgentDepsT]] | None = None,
    event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
) -> AgentRunResult[OutputDataT]:
    """The same for programs without an event loop: a sync UI is called in this thread, so that `input()` works."""
    asker = Asker(ui, mode, memory, on_no_approver, on_event, in_thread=False)
    gate = _gate(asker, policy, batch, native_tools, max_rounds)
    with one_question_at_a_time():
        return agent.run_sync(
            prompt,
            deps=deps,
            message_history=message_history,
            usage_limits=usage_limits,
            usage=usage,
            model=model,
            model_settings=model_settings,
            conversation_id=conversation_id,
            toolsets=toolsets,
            capabilities=[gate, *(capabilities or ()), Seal(gate)],
            event_stream_handler=event_stream_handler,
        )


def _gate(asker: Asker, policy: Policy | None, batch: str, native_tools: str, max_rounds: int) -> RunGate:
    # What is misspelt must not turn a safeguard off.
    if batch not in ("hold", "split"):
        raise ValueError(f"unknown batch {batch!r}: use hold or split")
    if native_tools not in ("refuse", "allow"):
        raise ValueError(f"unknown native_tools {native_tools!r}: use refuse or allow")
    rulings = Rulings(policy or Policy())
    return RunGate(asker, rulings, hold=batch == "hold", native_allowed=native_tools == "allow", max_rounds=max_rounds)
