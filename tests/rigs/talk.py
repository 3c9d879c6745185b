"""Short builders for tests of the library: an agent that plays a script, and deferred and external calls."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, ToolDefinition
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import ExternalToolset

from signoff.approvals.approvers import ASKER
from signoff.approvals.digest import bind
from signoff.approvals.model import ApprovalRequest, CallKey, ToolCall
from signoff.gate.inline import LOCAL
from signoff.gate.pending_call import PendingCall
from signoff.library.collect import DEFERRED
from tests.rigs.scripted import Answer, Script


def play(*answers: Answer, tools: list[Any], **options: Any) -> tuple[Agent[Any, Any], Script]:
    script = Script(list(answers))
    return Agent(script.model(), tools=tools, **options), script


def deferred(*parts: tuple[str, Any], calls: tuple[str, ...] = (), **metadata: dict[str, Any]) -> DeferredToolRequests:
    return DeferredToolRequests(
        approvals=[ToolCallPart(tool, args, f"call_{n}") for n, (tool, args) in enumerate(parts)],
        calls=[ToolCallPart(tool, {}, f"external_{n}") for n, tool in enumerate(calls)],
        metadata=metadata,
    )


def request(tool: str = "delete", /, **args: Any) -> ApprovalRequest:
    call = bind(ToolCall(CallKey("", 0, "call_0"), tool, args, ""), LOCAL)
    return PendingCall(call, DEFERRED).request(DEFERRED, (ASKER,))


def external(name: str) -> ExternalToolset[Any]:
    return ExternalToolset([ToolDefinition(name=name, parameters_json_schema={"type": "object", "properties": {}})])
