"""What the policy says about the calls of one run, on validated arguments, and which calls of a response ask.

Describes a call as the heart knows it and binds it to its digest. Asks nobody and runs nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import ToolsetTool

from signoff.approvals.digest import bind, fingerprint
from signoff.approvals.model import Actor, CallKey, Place, Ruling, ToolCall, Verdict
from signoff.approvals.policy import Context, Policy
from signoff.gate.arguments import shown
from signoff.gate.declarations import declaration
from signoff.gate.transcript import response_of, said

USER = Actor("user", "user", "local")

Ruled = tuple[ToolCall, Ruling]


@dataclass
class Rulings:
    policy: Policy = field(default_factory=Policy)
    place: Place = field(default_factory=lambda: Place("local", "local", secrets.token_hex(8)))
    declared: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, ToolsetTool[Any]])
    """The tools as they declare themselves, before the outer layer made plain ones of them."""
    responses: int = 0
    """How many answers the model has given: an agent may shorten what its run sees of the conversation."""
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
        call = self._describe(tool_def, args, call_id)
        declared = declaration(self.declared[call.tool].tool_def)
        conversation = said(ctx.messages) if callable(declared) else ()
        self.seen[call.key] = call, await self.policy.decide(call, declared, Context(self.place, USER, conversation))
        return self.seen[call.key]

    def is_external(self, tool: str) -> bool:
        return self.declared[tool].tool_def.kind == "external"

    def asking_siblings(self, call: ToolCall) -> list[ToolCall]:
        """The other calls of the same response that need approval by themselves and could run here."""
        return [
            other
            for key, (other, ruling) in self.seen.items()
            if key.position == call.key.position and key != call.key
            if ruling.verdict is Verdict.ASK and not ruling.held and not self.is_external(other.tool)
        ]

    def key(self, call_id: str) -> CallKey:
        # Models reuse call ids, so the number of the response is part of the key.
        return CallKey(self.place.conversation, self.responses, call_id)

    def _describe(self, tool_def: ToolDefinition, args: dict[str, Any], call_id: str) -> ToolCall:
        schema = fingerprint({"name": tool_def.name, "parameters": tool_def.parameters_json_schema})
        try:
            json = shown(self.declared[tool_def.name], args)
            return bind(ToolCall(self.key(call_id), tool_def.name, json, schema), self.place)
        except (ValueError, TypeError, RecursionError) as error:
            raise ToolFailed(f"Nothing was run: the arguments cannot be shown to a person ({error}).") from error


def has_output_call(ctx: RunContext[Any]) -> bool:
    """Whether the response also calls an output tool: the framework then drops the calls that are deferred."""
    tools = ctx.tool_manager
    found = [tools.get_tool_def(call.tool_name) for call in response_of(ctx).tool_calls] if tools else []
    return any(tool_def is not None and tool_def.kind == "output" for tool_def in found)
