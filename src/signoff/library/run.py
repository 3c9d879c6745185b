"""Runs an agent behind the gate, asks for the approvals that it needs, and returns the agent's own result.

The whole conversation is one run of the framework, so the agent keeps its output type, validators, limits and streaming
handlers. This module adds the gate and does not know how the gate works.
"""

from __future__ import annotations

import secrets
import sys
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

from signoff.approvals.model import Place
from signoff.approvals.policy import Policy
from signoff.gate.book import MemoryBook
from signoff.gate.inline import USER, InlineGate
from signoff.gate.tool_slots import ToolShares, ToolSlots
from signoff.library.decider import ApprovalMode, Decider, OnNoApprover, Subscriber, one_question_at_a_time
from signoff.library.memory import ApprovalMemory
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

    A deny rule of `policy` decides first, then a remembered decision, then `mode`, then the `ui`. With `batch="hold"`,
    calls that need no approval wait while a person is asked about others of the same response, and run if one of those
    is accepted; with `"split"` they run at once. After `max_rounds` responses that needed approval, nobody is asked
    again and further calls that would ask are rejected. The other parameters are those of `agent.run`.
    """
    decider = Decider(ui, mode, memory, on_no_approver, on_event)
    gate = _gate(decider, policy, batch, native_tools, max_rounds)
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
            capabilities=[gate, *(capabilities or ()), gate.seal()],
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
    """Do the same as `run_with_approval` without an event loop. A sync UI is called in this thread: `input()` works."""
    decider = Decider(ui, mode, memory, on_no_approver, on_event, in_thread=False)
    gate = _gate(decider, policy, batch, native_tools, max_rounds)
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
            capabilities=[gate, *(capabilities or ()), gate.seal()],
            event_stream_handler=event_stream_handler,
        )


def _gate(decider: Decider, policy: Policy | None, batch: str, native_tools: str, max_rounds: int) -> InlineGate:
    # A misspelt option must not turn a safeguard off.
    if batch not in ("hold", "split"):
        raise ValueError(f"unknown batch {batch!r}: use hold or split")
    if native_tools not in ("refuse", "allow"):
        raise ValueError(f"unknown native_tools {native_tools!r}: use refuse or allow")
    policy = policy or Policy()
    for rule in policy.rules:
        if rule.quorum > 1 or rule.four_eyes:
            raise ValueError(
                f"The rule for {rule.subject} wants more than one person (quorum or four_eyes), and one UI asks one. "
                "Nothing was run. Take the rule out of this policy, or serve the agent with the bot."
            )
    book = MemoryBook()
    return InlineGate(
        policy,
        book,
        place=Place("local", "local", secrets.token_hex(8)),
        asker=USER,
        slots=ToolSlots(None, ToolShares(sys.maxsize), threads=None),
        hold=batch == "hold",
        contains_failures=False,
        native_allowed=native_tools == "allow",
        max_rounds=max_rounds,
        decider=decider,
        decisions=book,
    )
