"""The built-in tools, by the names that signoff.toml's `[tools] enable` uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_ai import Tool

from signoff.agent.tools.asking import asking_tool
from signoff.agent.tools.files import FileTools
from signoff.agent.tools.harmless import current_time, post_announcement, roll_dice, test_discord_approval
from signoff.agent.tools.housekeeping import HousekeepingTools
from signoff.config.schema import BUILTIN_TOOLS, WORKSPACE, BuiltinTool, EnabledTool
from signoff.gate.declarations import OWN
from signoff.servers.tool_names import enabled_tools

if TYPE_CHECKING:
    from signoff.servers.ports import Servers


def builtin_tools(
    enabled: Sequence[EnabledTool] = BUILTIN_TOOLS,
    workspace: Path = Path(WORKSPACE),
    servers: Servers | None = None,
) -> list[Tool[Any]]:
    """Return the enabled tools, in the order of the table. `workspace` is the root folder of the file tools.

    `servers` is the way to Discord's servers, for the Discord tools.
    """
    files, housekeeping = FileTools(workspace), HousekeepingTools(workspace)
    tools: dict[BuiltinTool, Tool[Any]] = {
        "test_discord_approval": Tool(test_discord_approval, requires_approval=True),
        "post_announcement": Tool(post_announcement, metadata={"acts": True, OWN: True}),
        "roll_dice": Tool(roll_dice, metadata={"read_only": True}),
        "current_time": Tool(current_time, metadata={"read_only": True}),
        "ask_user": asking_tool(),
        "read_file": files.reading(),
        "write_file": files.writing(),
        "delete_file": housekeeping.deleting(),
        "rotate_log": housekeeping.rotating(),
    }
    chosen = [tool for name, tool in tools.items() if name in enabled]
    if not enabled_tools(enabled):
        return chosen
    from signoff.agent.tools.servers import discord_tools  # here, because few need it

    return chosen + discord_tools(enabled, servers)
