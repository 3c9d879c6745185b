"""A call on its way to a card, and what is said of calls, to people and to the model, whoever asks about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext, ToolDefinition, ToolDenied

from signoff.approvals.model import Edit, JsonObject, RequestKind, Ruling, ToolCall
from signoff.gate.toolsets import CallTool


@dataclass(frozen=True, slots=True)
class Draft:
    """A call that must be asked about, on its way to a card."""

    call: ToolCall
    ruling: Ruling
    kind: RequestKind = RequestKind.CALL
    metadata: JsonObject = field(default_factory=dict[str, Any])
    preview: str = ""
    edit: Edit | None = None
    """Set where a person had changed the arguments already."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call with everything that its tool would run with."""

    ctx: RunContext[Any]
    tool_def: ToolDefinition
    args: dict[str, Any]
    run: CallTool
    call: ToolCall
    edit: Edit | None = None


class Refusal(ToolDenied):
    """Said of this attempt alone: whether an earlier one has run is another matter."""
