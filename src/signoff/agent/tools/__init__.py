"""The built-in tools, by the names that signoff.toml's `[tools] enable` uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Tool

from signoff.agent.tools.harmless import current_time, post_announcement, roll_dice, test_discord_approval
from signoff.config import BUILTIN_TOOLS, BuiltinTool


def builtin_tools(enabled: Sequence[BuiltinTool] = BUILTIN_TOOLS) -> list[Tool[Any]]:
    """The named tools, in the order of the table."""
    tools: dict[BuiltinTool, Tool[Any]] = {
        "test_discord_approval": Tool(test_discord_approval, requires_approval=True),
        "post_announcement": Tool(post_announcement),
        "roll_dice": Tool(roll_dice, metadata={"read_only": True}),
        "current_time": Tool(current_time, metadata={"read_only": True}),
    }
    return [tool for name, tool in tools.items() if name in enabled]
