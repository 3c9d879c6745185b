"""Canonical JSON and the digest that ties a decision to exactly one call.

Two calls have the same digest only if server, conversation, tool, schema and final arguments are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from signoff.approvals.model import Place, ToolCall

DEEPEST = 100
"""Arguments nested deeper than this are refused: no person could review them, and no store need keep them."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def canonical(value: Any) -> str:
    """Return the one text of a JSON value: sorted keys, no spaces, only ASCII.

    Raises ValueError or TypeError if the value is not plain JSON.
    """
    _check_depth(value, DEEPEST)
    return _encode(value)


def _check_depth(value: Any, left: int) -> None:
    if left < 0:
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    if isinstance(value, (str, int)):
        return  # most values are: the test for a mapping takes several times as long
    if isinstance(value, (dict, Mapping)):
        for item in cast(Mapping[Any, Any], value).values():
            _check_depth(item, left - 1)
    elif isinstance(value, (list, tuple)):
        for item in cast(Sequence[Any], value):
            _check_depth(item, left - 1)


def fingerprint(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def bind(call: ToolCall, place: Place) -> ToolCall:
    """Return the call with its binding digest filled in."""
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
