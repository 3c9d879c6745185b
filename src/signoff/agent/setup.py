"""Builds the agent from the configuration, with built-in tools and plugins, or imports one. Lists tool verdicts."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, Tool, ToolDefinition
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, PrefixedToolset

from signoff.agent.mcp import McpServer, build_servers
from signoff.agent.models import choose_model
from signoff.agent.plugins import Listener, PluginTool, load_plugins
from signoff.agent.runner import AgentRunner, Limits
from signoff.agent.tools import builtin_tools
from signoff.approvals.model import JsonObject, Ruling, Terms, Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.approvals.ports import Clock
from signoff.config.schema import Config
from signoff.errors import ConfigError
from signoff.gate.declarations import declaration
from signoff.gate.gate import Judge
from signoff.gate.tool_slots import ToolShares, ToolSlots
from signoff.turns.administration import ToolFacts
from signoff.turns.ports import TurnStore

Mask = Callable[[JsonObject], JsonObject]


@dataclass(frozen=True)
class Brain:
    """The agent and its policy. Building it finds every mistake in the configuration."""

    agent: AbstractAgent[Any, Any]
    policy: Policy
    verdicts: tuple[str, ...]
    """One line per tool that is known before a run."""
    listeners: tuple[Listener, ...] = ()
    """Functions of plugins that are called with every decision."""

    @property
    def tools(self) -> tuple[ToolFacts, ...]:
        """The tools known now: an MCP server's tools are known only after its first run."""
        return tuple(facts(self.agent, self.policy))

    @classmethod
    def build(cls, config: Config, model_name: str) -> Brain:
        policy = build_policy(config)
        if config.agent.import_:
            if config.mcp or config.tools.plugins:
                unused = "[mcp.NAME]" if config.mcp else "[tools] plugins"
                cause = f"[agent] import brings its own tools, so {unused} would not be used"
                raise ConfigError(f"{cause}; remove one of them")
            imported = import_agent(config)
            return cls(imported, policy, tuple(verdicts(imported.toolsets, policy)))
        listeners: list[Listener] = []
        tools = [*build_tools(config, listeners), *build_servers(config)]
        agent = Agent(
            choose_model(model_name),
            instructions=config.agent.instructions,
            tools=[tool for tool in tools if isinstance(tool, Tool)],
            toolsets=[toolset for toolset in tools if isinstance(toolset, AbstractToolset)],
        )
        return cls(agent, policy, tuple(verdicts(tools, policy)), tuple(listeners))

    def runner(self, config: Config, store: TurnStore, clock: Clock, policy: Judge, mask: Mask) -> AgentRunner:
        limits = config.limits
        return AgentRunner(
            self.agent,
            store,
            clock,
            policy,
            build_terms(config),
            config.approvals.batch == "hold",
            Limits(limits.calls_per_response, limits.model_requests_per_turn),
            ToolSlots(limits.tool_seconds, ToolShares(limits.tools_per_person)),
            mask,
        )


def build_policy(config: Config) -> Policy:
    rules = tuple(Rule(**{name: getattr(rule, name) for name in type(rule).model_fields}) for rule in config.rules)
    asking, written = config.approvals, config.approvals.model_fields_set
    return Policy(
        rules,
        Verdict(config.tools.undeclared),
        asking.approvers if "approvers" in written else None,
        asking.timeout if "timeout" in written else None,
    )


def build_terms(config: Config) -> Terms:
    asking = config.approvals
    return Terms(asking.approvers, asking.timeout, asking.quorum, asking.four_eyes, asking.reminder, asking.ping)


def facts(agent: AbstractAgent[Any, Any], policy: Policy) -> list[ToolFacts]:
    """Return the agent's function tools and the known tools of MCP servers. Others are known only when it runs."""
    return [
        ToolFacts(
            tool_def.name,
            tuple(tool_def.parameters_json_schema.get("properties", {})),
            _verdict(tool_def, policy),
        )
        for toolset in agent.toolsets
        for tool_def in _definitions(toolset)
    ]


def _definitions(toolset: AbstractToolset[Any]) -> list[ToolDefinition]:
    if isinstance(toolset, FunctionToolset):
        return [tool.tool_def for tool in toolset.tools.values()]
    if isinstance(toolset, PrefixedToolset) and isinstance(server := toolset.wrapped, McpServer):
        return server.definitions()
    return []


def build_tools(config: Config, listeners: list[Listener] | None = None) -> list[PluginTool]:
    own = builtin_tools(config.tools.enable, config.workspace)
    names = [tool.name for tool in own]
    return [*own, *load_plugins(config.tools.plugins, config.folder, names, listeners)]


def import_agent(config: Config) -> AbstractAgent[Any, Any]:
    """Load an existing agent and keep its model, instructions and tools. The tools pass our gate."""
    target = config.agent.import_ or ""
    module_name, _, name = target.partition(":")
    folder = str(config.folder.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = getattr(importlib.import_module(module_name), name)
    except (Exception, SystemExit) as error:
        cause = f"{type(error).__name__}: {error}"
        raise ConfigError(f'[agent] import = "{target}" cannot be loaded: {cause}; write "module:agent"') from error
    if not isinstance(found, AbstractAgent):
        raise ConfigError(f'[agent] import = "{target}" is not a PydanticAI agent but a {type(found).__name__}')
    return found  # pyright: ignore[reportUnknownVariableType]


def verdicts(tools: Iterable[PluginTool], policy: Policy) -> list[str]:
    """Return one line per tool with the verdict on its calls."""
    lines: list[str] = []
    for entry in tools:
        known = [entry.tool_def] if isinstance(entry, Tool) else _definitions(entry)
        lines += [f"{tool_def.name}: {_verdict(tool_def, policy)}" for tool_def in known]
        if not known and not isinstance(entry, Tool):
            lines.append(f"{entry.label}: its tools are known when it runs; each passes the gate")
    return lines


def _verdict(tool: ToolDefinition, policy: Policy) -> str:
    declared = declaration(tool)
    rules = [rule for rule in policy.rules if rule.names(tool.name)]
    if any(rule.when or rule.unless for rule in rules) or (not rules and callable(declared)):
        return "depends on its arguments"
    strictest = [v for v in (Verdict.DENY, Verdict.ASK, Verdict.ALLOW) if any(rule.verdict is v for rule in rules)]
    if strictest:
        return f"{strictest[0]} (rule)"
    if isinstance(declared, Ruling):
        return f"{declared.verdict} ({declared.reason})"
    if isinstance(declared, Verdict):
        return f"{declared} (declared)"
    return f"{policy.undeclared} (declares nothing; its own code may still ask)"
