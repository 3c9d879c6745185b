"""Examines a call before it may run: its description, the ruling on it, its tool's own check and preview.

Each of them may run other people's code, so each has a time limit and may fail. A failure never lets the call run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, Protocol

from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import to_jsonable_python

from signoff.approvals.containment import answered, described
from signoff.approvals.digest import bind
from signoff.approvals.large_values import off_loop_if_large
from signoff.approvals.model import Actor, CallKey, JsonObject, Place, Ruling, ToolCall, Verdict
from signoff.approvals.policy import Context, Declaration, Said
from signoff.dataclass import dataclass
from signoff.gate import wording
from signoff.gate.arguments import Fixed, fix
from signoff.gate.declarations import declaration, marks_of, shell_arguments
from signoff.gate.pending_call import Preview, preview_of
from signoff.gate.tool_slots import ToolSlots
from signoff.gate.toolsets import schema_of
from signoff.gate.transcript import said

Validator = Callable[..., Any]
Described = tuple[ToolCall, Fixed]


class Judge(Protocol):
    """The policy as the gate needs it. If it raises, the call does not run."""

    async def decide(self, call: ToolCall, declaration: Declaration, context: Context) -> Ruling: ...


@dataclass
class Examiner:
    policy: Judge
    place: Place
    asker: Actor
    slots: ToolSlots
    heard: Sequence[Said] | None
    """The conversation for predicates; None: read it from the run's own messages."""
    tools: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, "ToolsetTool[Any]"])
    """Tool name -> the tool as its toolset declares it."""
    asked_early: dict[CallKey, JsonObject] = field(default_factory=dict[CallKey, JsonObject])
    """Key of each call whose validator asked for approval -> the metadata that it raised."""

    async def describe(self, ctx: RunContext[Any], name: str, args: dict[str, Any], key: CallKey) -> Described:
        """Return the call as people see it, bound to its digest, and the arguments that its tool would get."""

        def read() -> Described:
            fixed = fix(tool := self.tools[name], args, ctx.validation_context)
            return bind(ToolCall(key, name, fixed.json, schema_of(name, tool)), self.place), fixed

        try:
            return await off_loop_if_large(args, read) if self.slots.threads else read()
        except (ValueError, TypeError, RecursionError) as error:
            raise wording.unshowable(name, error) from error

    async def rule(self, call: ToolCall, ctx: RunContext[Any]) -> Ruling:
        tool_def = self.tools[call.tool].tool_def
        declared = declaration(tool_def)
        heard = said(ctx.messages) if self.heard is None and callable(declared) else self.heard or ()
        context = Context(self.place, self.asker, heard, marks_of(tool_def), shell_arguments(tool_def))
        ruling = await self.slots.in_time("its condition", self.policy.decide(call, declared, context), call.tool)
        if ruling.verdict is Verdict.ALLOW and call.key in self.asked_early:
            return replace(ruling, verdict=Verdict.ASK, reason=wording.ASKED)
        return ruling

    def words(self, key: CallKey, ruling: Ruling) -> JsonObject:
        """Return the words of the tool's validator or of its condition about this call, for the card."""
        return self.asked_early.get(key) or ({"reason": ruling.words} if ruling.words else {})

    async def preview(self, tool_def: ToolDefinition, ctx: RunContext[Any], args: dict[str, Any]) -> Preview:
        try:
            return await self.slots.in_time("its preview", preview_of(tool_def, ctx, args), tool_def.name)
        except (ModelRetry, ToolFailed):
            raise
        except Exception as error:
            raise ToolFailed(f"Nothing was run: its preview failed ({described(error)}).") from error

    async def check(
        self, ctx: RunContext[Any], key: CallKey, validate: Validator, args: dict[str, Any], *, approved: bool
    ) -> None:
        """Run the tool's own validator. If it asks, note that, since raising would defer the call before the gate.

        If the call is approved, run the validator once more and tell it so.
        """
        what = "the check of its arguments"
        try:
            await self.slots.in_time(what, answered(validate, ctx, **args), ctx.tool_name or "")
        except CallDeferred as raised:
            raise ToolFailed(wording.NOT_AVAILABLE) from raised
        except ApprovalRequired as raised:
            self.asked_early[key] = to_jsonable_python(raised.metadata or {}, fallback=str)
            if approved:
                with suppress(ApprovalRequired):
                    approved_ctx = replace(ctx, tool_call_approved=True)
                    await self.slots.in_time(what, answered(validate, approved_ctx, **args), ctx.tool_name or "")
