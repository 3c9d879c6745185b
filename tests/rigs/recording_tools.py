"""Tools for end-to-end tests, loaded by the bot as a plugin. Each writes a line to a file that outlives the process."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from pydantic_ai import ApprovalRequired, RunContext, Tool

TRACE = Path(os.environ.get("SIGNOFF_TEST_TRACE", "trace.txt"))


def note(line: str) -> None:
    with TRACE.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def written(line: str) -> int:
    return TRACE.read_text(encoding="utf-8").splitlines().count(line)


def record(value: str) -> str:
    """Record a value. Always asks."""
    note(f"record {value}")
    return f"recorded {value}"


def free(value: str) -> str:
    """Record a value without asking."""
    note(f"free {value}")
    return f"free {value}"


def guarded(ctx: RunContext[Any], path: str) -> str:
    """Change a file, which asks for protected ones."""
    if path.endswith(".env") and not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"reason": "protected file", "path": path})
    note(f"guarded {path}")
    return f"changed {path}"


def broken(value: str) -> str:
    """Fail."""
    note(f"broken {value}")
    raise ValueError(f"{value} does not work")


async def slow(value: str, seconds: float) -> str:
    """Take a while between two lines."""
    note(f"slow start {value}")
    await asyncio.sleep(seconds)
    note(f"slow end {value}")
    return f"slow {value}"


def blocking(value: str, seconds: float) -> str:
    """Take a while in a thread that nobody can interrupt."""
    note(f"blocking start {value}")
    time.sleep(seconds)
    note(f"blocking end {value}")
    return f"blocking {value}"


async def held(value: str) -> str:
    """Take as long as a test wants: until it has written the file `release`."""
    note(f"held start {value}")
    while not TRACE.with_name("release").exists():  # noqa: ASYNC110 - only the file tells
        await asyncio.sleep(0.02)
    note(f"held end {value}")
    return f"held {value}"


def brief(value: str) -> str:
    """Record a value. Always asks; tests give it a short deadline with a rule."""
    note(f"brief {value}")
    return f"brief {value}"


async def peek(value: str, seconds: float = 0) -> str:
    """Read only, and slow if asked to be."""
    note(f"peek {value}")
    await asyncio.sleep(seconds)
    return f"peeked {value}"


async def stuck(value: str) -> str:
    """Hang the first time, be quick afterwards."""
    note(f"stuck start {value}")
    await hang_once(f"stuck start {value}")
    note(f"stuck end {value}")
    return f"stuck {value}"


async def glance(value: str) -> str:
    """Read only. Hangs the first time, is quick afterwards."""
    note(f"glance {value}")
    await hang_once(f"glance {value}")
    return f"glanced {value}"


async def hang_once(line: str) -> None:
    if written(line) == 1:
        await asyncio.sleep(600)


tools = [
    Tool(record, requires_approval=True),
    Tool(broken, requires_approval=True),
    Tool(slow, requires_approval=True),
    Tool(blocking, requires_approval=True),
    Tool(held, requires_approval=True),
    Tool(brief, requires_approval=True),
    Tool(stuck, requires_approval=True),
    Tool(glance, metadata={"read_only": True}),
    Tool(peek, metadata={"read_only": True}),
    free,
    guarded,
]
