"""What a tool may show of a call before it runs, and what the gate tells a tool about the call that it let in.

A tool offers a preview with `metadata={"preview": f}`, where `f(ctx, **arguments)`, sync or async, returns text or a
`Preview`. Operands are what the call would touch, each with a digest of how it is now: the gate looks at them again
before the call runs, and asks again if one of them has changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_ai import RunContext, ToolDefinition

from signoff.approvals.containment import answered
from signoff.approvals.model import Actor, Place


@dataclass(frozen=True, slots=True)
class Preview:
    text: str
    operands: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class CallInfo:
    """What a tool finds in `ctx.tool_call_metadata`: where the call comes from, and what its preview saw."""

    place: Place
    asker: Actor
    operands: Mapping[str, str] = field(default_factory=dict[str, str])


Previewer = Callable[..., str | Preview | Awaitable[str | Preview]]


def call_info(ctx: RunContext[Any]) -> CallInfo | None:
    """None where the tool is not run behind Signoff's gate."""
    return ctx.tool_call_metadata if isinstance(ctx.tool_call_metadata, CallInfo) else None


async def preview(tool_def: ToolDefinition, ctx: RunContext[Any], args: Mapping[str, Any]) -> Preview:
    """The tool's own preview; an empty one if it offers none. What it raises passes to the caller."""
    previewer = (tool_def.metadata or {}).get("preview")
    if not callable(previewer):
        return Preview("")
    shown = await answered(cast(Previewer, previewer), ctx, **args)
    found = shown if isinstance(shown, Preview) else Preview(shown)
    texts: list[object] = [found.text, *found.operands, *found.operands.values()]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a preview is text, and so are its operands and their digests")
    return found
