"""Reads JSON from outside: a value of the wrong shape counts as absent, the right shape comes out typed.

It does not know what the values mean.
"""

from typing import Any, cast

from discord_sandbox.model import Json


def fields(value: Any) -> Json:
    """An object, or an empty one."""
    return cast(Json, value) if isinstance(value, dict) else {}


def entries(value: Any) -> list[Any]:
    """A list, or an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def items(value: Any) -> list[Json]:
    """The objects in a list."""
    return [cast(Json, entry) for entry in entries(value) if isinstance(entry, dict)]


def numbers(value: Any) -> list[int]:
    """The ids in a list, which come as strings."""
    return [int(entry) for entry in entries(value) if str(entry).isdecimal()]
