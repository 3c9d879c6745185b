"""The tools for work in a workspace that `[tools] enable` names, made as the configuration says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Tool

from signoff.agent.tools.commands import CommandTools
from signoff.agent.tools.editing import EditTools
from signoff.agent.tools.isolation import Isolation, choose_isolation
from signoff.agent.tools.looking import LookingTools
from signoff.agent.tools.todo import todo_tool
from signoff.agent.tools.web import WebTools
from signoff.config.schema import WORKSPACE_TOOLS, Config
from signoff.errors import ConfigError


def workspace_tools(config: Config) -> list[Tool[Any]]:
    """Return the enabled tools, in the order of WORKSPACE_TOOLS. Raises ConfigError."""
    enabled, root = config.tools.workspace_tools, config.workspace
    if "diagnostics" in enabled and not config.tools.diagnostics:
        raise ConfigError(
            "[tools] enable names diagnostics, but no checker is named; "
            'write for example diagnostics = ["ruff", "check"]'
        )
    tools: list[Tool[Any]] = [*LookingTools(root).tools(), todo_tool(), *EditTools(root).tools(), WebTools().fetching()]
    if running := sorted(enabled & {"bash", "diagnostics"}):
        commands = CommandTools(root, _isolation(config, running), config.limits.tool_seconds, config.tools.diagnostics)
        tools += [commands.running(), commands.checking()]
    known = {tool.name: tool for tool in tools}
    return [known[name] for name in WORKSPACE_TOOLS if name in enabled]


def _isolation(config: Config, needed_by: Sequence[str]) -> Isolation:
    tools = f"the tool {needed_by[0]}" if len(needed_by) == 1 else f"each of the tools {' and '.join(needed_by)}"
    reason = f"{config.where('tools', 'enable')}: {tools}"
    return choose_isolation(config.tools, config.hidden_folders, reason)
