"""Reads JSON from outside: a value of the wrong shape counts as absent, and one of the right shape gets its type.

This module does not know the meaning of the values.
"""

from typing import Any, cast

from discord_sandbox.model import Json


def fields(value: Any) -> Json:
    """Return an object, or an empty one if the value is none."""
    return cast(Json, value) if isinstance(value, dict) else {}


def entries(value: Any) -> list[Any]:
    """Return a list, or an empty one if the value is none."""
    return cast(list[Any], value) if isinstance(value, list) else []


def items(value: Any) -> list[Json]:
    """Return the objects in a list."""
    return [cast(Json, entry) for entry in entries(value) if isinstance(entry, dict)]


def numbers(value: Any) -> list[int]:
    """Return the ids in a list, which arrive as strings."""
    return [int(entry) for entry in entries(value) if str(entry).isdecimal()]
