"""Tools that run agents, for end-to-end tests, loaded by the bot as a plugin. Their models leave a trace."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic_ai import Tool

sys.path.insert(0, str(Path(__file__).parents[2]))  # the bot runs in another folder

from tests.rigs.recording_tools import note
from tests.rigs.steady_agents import steady_agent


def leaf(value: str) -> str:
    """Record a value. Always asks."""
    note(f"leaf {value}")
    return f"did {value}"


guarded = Tool(leaf, requires_approval=True)
researcher = steady_agent(
    "researcher",
    [[("leaf", {"value": "research 1"})], [("leaf", {"value": "research 2"})]],
    [guarded],
    lambda name: note(f"model of {name}"),
)
reviewer = steady_agent(
    "reviewer",
    [[("leaf", {"value": "review 1"})], [("leaf", {"value": "review 2"})]],
    [guarded],
    lambda name: note(f"model of {name}"),
)


async def research(topic: str) -> str:
    """Let the researcher work."""
    return (await researcher.run(topic)).output


async def review(topic: str) -> str:
    """Let the reviewer work."""
    return (await reviewer.run(topic)).output


tools = [research, review]
