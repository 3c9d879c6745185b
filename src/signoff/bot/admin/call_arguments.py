"""The arguments that somebody types for `/signoff test`: strict JSON, since what no tool could get tells nothing."""

from __future__ import annotations

import json
from typing import Any, cast

from signoff.approvals.errors import Refused
from signoff.approvals.model import JsonObject


def read_arguments(text: str) -> JsonObject:
    """The arguments of a call as JSON. Raises Refused."""
    example = 'Write an object such as {"path": "a.txt"}.'
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)
        json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise Refused(f"arguments is not JSON: {error.msg} at character {error.pos + 1}. {example}") from None
    except (ValueError, RecursionError, TypeError):
        raise Refused(
            f"arguments cannot be used: too deep, a name twice, or no text or number as JSON has them. {example}"
        ) from None
    if not isinstance(found, dict):
        raise Refused(f"arguments is not a JSON object. {example}")
    return cast(JsonObject, found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _finite(written: str) -> float:
    value = float(written)
    if value - value != 0:
        raise ValueError("not a number")
    return value
