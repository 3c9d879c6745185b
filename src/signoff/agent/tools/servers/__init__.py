"""The tools that read and change a Discord server. They are off unless `[tools] enable` names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Tool

from signoff.agent.tools.servers.acting import ActingTools
from signoff.agent.tools.servers.reading import ReadingTools
from signoff.servers.ports import Servers
from signoff.servers.tool_names import enabled_tools


def discord_tools(enabled: Sequence[str], servers: Servers | None) -> list[Tool[Any]]:
    """Return the enabled tools. Without `servers`, each of them says that it needs Discord."""
    tools = [*ReadingTools(servers).tools(), *ActingTools(servers).tools()]
    wanted = enabled_tools(enabled)
    return [tool for tool in tools if tool.name in wanted]
