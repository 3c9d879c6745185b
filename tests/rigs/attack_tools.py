"""More tools for the attack tests, loaded as a second plugin beside recording_tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic_ai import Tool

TRACE = Path(os.environ.get("SIGNOFF_TEST_TRACE", "trace.txt"))


def note(line: str) -> None:
    with TRACE.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def tick() -> str:
    """Leave a mark, without asking."""
    note("tick")
    return "ticked"


def listing() -> list[str]:
    """List files, one of which has a name that is not UTF-8."""
    note("listing")
    return [os.fsdecode(b"caf\xe9.txt"), "notes.txt"]


def spend(amount: float = 100, purpose: str | None = None) -> str:
    """Spend money. Declares nothing: a rule of the test asks."""
    note(f"spend {amount:g} {purpose}")
    return f"spent {amount:g}"


def odd(value: str) -> str:
    """Its own condition cannot be found out."""
    note(f"odd {value}")
    return f"odd {value}"


def broken(args: Any, context: Any) -> bool:
    raise KeyError("surprise")


tools = [tick, listing, spend, Tool(odd, metadata={"approval": broken})]
