"""What a tool says of itself, read from its PydanticAI definition.

`requires_approval=True` asks always. `metadata={"approval": ...}` takes `"always_require"`, `"never_require"` or a
predicate `f(args, context) -> bool`, sync or async, that is true where the call must ask.
`metadata={"read_only": True}` promises that running the call twice does no harm.
"""

from __future__ import annotations

from typing import cast

from pydantic_ai import ToolDefinition

from signoff.approvals.model import Verdict
from signoff.approvals.policy import Declaration, Predicate

WORDS = {"always_require": Verdict.ASK, "never_require": Verdict.ALLOW}


def declaration(tool_def: ToolDefinition) -> Declaration:
    if tool_def.kind == "unapproved":
        return Verdict.ASK
    said = (tool_def.metadata or {}).get("approval")
    if callable(said):
        return cast(Predicate, said)
    if said is None:
        return None
    # A word that we do not know is a mistake of the tool's author: ask rather than guess.
    return WORDS.get(str(said), Verdict.ASK)


def is_read_only(tool_def: ToolDefinition) -> bool:
    return (tool_def.metadata or {}).get("read_only") is True
