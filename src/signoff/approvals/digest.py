"""Canonical JSON and the digest that ties a decision to exactly one call.

Two calls have the same digest only if server, conversation, tool, schema and final arguments are the same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from signoff.approvals.model import Place, ToolCall


def canonical(value: Any) -> str:
    """One text per JSON value: sorted keys, no spaces, plain ASCII. Raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def fingerprint(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def bind(call: ToolCall, place: Place) -> ToolCall:
    """The same call with its binding digest filled in."""
    digest = fingerprint(
        {
            "version": 1,
            "server": place.server,
            "conversation": place.conversation,
            "tool": call.tool,
            "schema": call.schema,
            "args": call.args,
        }
    )
    return replace(call, digest=digest)
