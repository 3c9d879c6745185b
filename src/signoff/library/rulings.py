"""What the policy says about the calls of one run, on validated arguments, and which calls of a response ask.

Describes a call as the heart knows it and binds it to its digest. Asks nobody and runs nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse

from signoff.agent.bridge import said
from signoff.agent.declared import declaration
from signoff.agent.layers import as_json
from signoff.approvals.digest import bind, fingerprint
from signoff.approvals.model import Actor, CallKey, Place, Ruling, ToolCall, Verdict
from signoff.approvals.policy import Context, Policy

USER = Actor("user", "user", "local")

Ruled = tuple[ToolCall, Ruling]


@dataclass
class Rulings:
    policy: Policy = field(default_factory=Policy)
    place: Place = field(default_factory=lambda: Place("local", "local", secrets.token_hex(8)))
    declared: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    """The tools as they declare themselves, before the outer layer made plain ones of them."""
    seen: dict[CallKey, Ruled] = field(default_factory=dict[CallKey, Ruled])

    def __post_init__(self) -> None:
        for rule in self.policy.rules:
            if rule.quorum > 1 or rule.four_eyes:
                raise ValueError(
                    f"The rule for {rule.tool} wants more than one person (quorum or four_eyes), and one UI asks one. "
                    "Nothing was run. Take the rule out of this policy, or serve the agent with the bot."
                )

    async def rule(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], call_id: str) -> Ruled:
        """The call with its digest, and the ruling on it. What a declared predicate raises ends the run."""
        call = self._describe(ctx, tool_def, args, call_id)
        declared = declaration(self.declared.get(tool_def.name, tool_def))
        conversation = said(ctx.messages) if callable(declared) else ()
        self.seen[call.key] = call, await self.policy.decide(call, declared, Context(self.place, USER, conversation))
        return self.seen[call.key]

    def is_external(self, tool_def: ToolDefinition) -> bool:
        return self.declared.get(tool_def.name, tool_def).kind == "external"

    def has_asking_sibling(self, call: ToolCall) -> bool:
        return any(
            ruling.verdict is Verdict.ASK and key.position == call.key.position and key != call.key
            for key, (_, ruling) in self.seen.items()
        )

    def key(self, ctx: RunContext[Any], call_id: str) -> CallKey:
        # Models reuse call ids, so the position of the response is part of the key.
        position = sum(isinstance(message, ModelResponse) for message in ctx.messages)
        return CallKey(self.place.conversation, position, call_id)

    def _describe(self, ctx: RunContext[Any], tool_def: ToolDefinition, args: dict[str, Any], call_id: str) -> ToolCall:
        schema = fingerprint({"name": tool_def.name, "parameters": tool_def.parameters_json_schema})
        try:
            return bind(ToolCall(self.key(ctx, call_id), tool_def.name, as_json(args), schema), self.place)
        except (ValueError, TypeError, RecursionError) as error:
            raise ToolFailed(f"Nothing was run: the arguments cannot be shown to a person ({error}).") from error


def response_of(ctx: RunContext[Any]) -> ModelResponse:
    return next(message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))


def has_output_call(ctx: RunContext[Any]) -> bool:
    """Whether the response also calls an output tool: the framework then drops the calls that are deferred."""
    tools = ctx.tool_manager
    found = [tools.get_tool_def(call.tool_name) for call in response_of(ctx).tool_calls] if tools else []
    return any(tool_def is not None and tool_def.kind == "output" for tool_def in found)
