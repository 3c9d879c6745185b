"""Shortens a tool's result that is too long to store and to send to a model: a tool or a server may return anything.

The model gets the beginning and the end, and a line that says how much is missing. Only called for long results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic_ai import ToolReturn
from pydantic_ai.messages import BinaryContent
from pydantic_core import to_json

from signoff.gate.book import LONG

LONGEST_TEXT = LONG
"""Most characters of a result. `read_file` returns fewer."""
LONGEST_FILE = 10_000_000
"""Most characters of a result with images or other files, which are stored as base64."""


def shortened(result: Any, size: int) -> Any:
    """Return the result as it may be passed on; `size` is how many characters it takes in the store."""
    if isinstance(result, ToolReturn):
        full = cast("ToolReturn[Any]", result)
        return replace(full, return_value=shortened(full.return_value, size))
    if has_files(result):
        return result if size <= LONGEST_FILE else f"[The result was left out: it has {size} characters.]"
    text = result if isinstance(result, str) else to_json(result, fallback=str).decode()
    half, missing = LONGEST_TEXT // 2, len(text) - LONGEST_TEXT
    return f"{text[:half]}\n[{missing} characters left out]\n{text[-half:]}" if missing > 0 else result


def has_files(result: Any) -> bool:
    parts = cast("list[Any]", result) if isinstance(result, list) else [result]
    return any(isinstance(part, BinaryContent) for part in parts)
