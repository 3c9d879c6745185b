"""A call on its way to a card: its preview, its terms, and the request that people will see.

A tool offers a preview with `metadata={"preview": f}`, where `f(ctx, **arguments)`, sync or async, returns text or a
`Preview`. Operands are the things that the call would touch, each with a digest of its state. The gate compares them
before the call runs, and asks again if one of them has changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic_ai import RunContext, ToolDefinition

from signoff.approvals.containment import answered
from signoff.approvals.model import (
    Actor,
    ApprovalRequest,
    Edit,
    JsonObject,
    Place,
    RequestKind,
    Ruling,
    ToolCall,
)

CallTool = Callable[[RunContext[Any], dict[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Preview:
    text: str
    operands: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name of each thing that the call would touch -> digest of its state."""


@dataclass(frozen=True, slots=True)
class CallInfo:
    """A tool finds this in `ctx.tool_call_metadata`: where the call comes from, and the operands of its preview."""

    place: Place
    asker: Actor
    operands: Mapping[str, str] = field(default_factory=dict[str, str])


Previewer = Callable[..., str | Preview | Awaitable[str | Preview]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call with everything that its tool would run with."""

    ctx: RunContext[Any]
    tool_def: ToolDefinition
    args: dict[str, Any]
    run: CallTool
    call: ToolCall
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that cannot run before somebody has decided."""

    call: ToolCall
    ruling: Ruling
    kind: RequestKind = RequestKind.CALL
    metadata: JsonObject = field(default_factory=dict[str, Any])
    """The metadata of the tool's `ApprovalRequired(metadata=...)`."""
    preview: str = ""
    edit: Edit | None = None
    """Set if a person had already changed the arguments."""

    def request(self, ruling: Ruling, approvers: tuple[str, ...]) -> ApprovalRequest:
        """Return the request that people see, with the terms of this ruling."""
        return ApprovalRequest(
            id=secrets.token_hex(8),
            call=self.call,
            why=ruling.reason,
            approvers=approvers,
            kind=self.kind,
            metadata=self.metadata,
            quorum=ruling.quorum,
            four_eyes=ruling.four_eyes,
            message=ruling.message,
            preview=self.preview,
            edit=self.edit and replace(self.edit, voided=()),
            held=ruling.held,
            by_server=ruling.by_server,
        )


def call_info(ctx: RunContext[Any]) -> CallInfo | None:
    """Return the CallInfo of the running tool; None if it does not run behind Signoff's gate."""
    return ctx.tool_call_metadata if isinstance(ctx.tool_call_metadata, CallInfo) else None


async def preview(tool_def: ToolDefinition, ctx: RunContext[Any], args: Mapping[str, Any]) -> Preview:
    """Return the tool's own preview; an empty one if it offers none. If the preview function raises, so does this."""
    previewer = (tool_def.metadata or {}).get("preview")
    if not callable(previewer):
        return Preview("")
    shown = await answered(cast(Previewer, previewer), ctx, **args)
    made = shown if isinstance(shown, Preview) else Preview(shown)
    texts: list[object] = [made.text, *made.operands, *made.operands.values()]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a preview is text, and so are its operands and their digests")
    return made
