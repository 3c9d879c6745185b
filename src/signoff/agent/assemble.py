"""From configuration to an agent: built-in tools, plugins or a whole imported agent; and what each tool would do."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from signoff.agent.declared import declaration
from signoff.agent.floor import Floor
from signoff.agent.models import choose_model
from signoff.agent.plugins import PluginTool, load_plugins
from signoff.agent.runner import AgentRunner, Limits
from signoff.agent.tools import builtin_tools
from signoff.approvals.model import Verdict
from signoff.approvals.policy import Policy, Rule
from signoff.approvals.ports import Clock
from signoff.config import Config
from signoff.errors import ConfigError
from signoff.turns.ports import TurnStore


@dataclass(frozen=True)
class Brain:
    """The agent and its policy: everything that can be wrong with the configuration is found while building it."""

    agent: AbstractAgent[Any, Any]
    policy: Policy
    verdicts: tuple[str, ...]
    """One line per tool that is known before a run."""

    @classmethod
    def build(cls, config: Config, model_name: str) -> Brain:
        policy = build_policy(config)
        if config.agent.import_:
            return cls(import_agent(config), policy, ())
        tools = build_tools(config)
        agent = Agent(
            choose_model(model_name),
            instructions=config.agent.instructions,
            tools=[tool for tool in tools if isinstance(tool, Tool)],
            toolsets=[toolset for toolset in tools if isinstance(toolset, AbstractToolset)],
        )
        return cls(agent, policy, tuple(verdicts(tools, policy)))

    def runner(self, config: Config, store: TurnStore, clock: Clock) -> AgentRunner:
        asking, limits = config.approvals, config.limits
        return AgentRunner(
            self.agent,
            store,
            clock,
            self.policy,
            asking.approvers,
            asking.timeout,
            asking.batch == "hold",
            Limits(limits.calls_per_response, limits.model_requests_per_turn),
            Floor(limits.tool_seconds),
        )


def build_policy(config: Config) -> Policy:
    rules = tuple(Rule(r.tool, r.verdict, r.when, r.unless, r.approvers, r.timeout, r.reason) for r in config.rules)
    return Policy(rules, Verdict(config.tools.undeclared))


def build_tools(config: Config) -> list[PluginTool]:
    own = builtin_tools(config.tools.enable)
    return [*own, *load_plugins(config.tools.plugins, config.folder, [tool.name for tool in own])]


def import_agent(config: Config) -> AbstractAgent[Any, Any]:
    """An existing agent, as it is: its model, its instructions and its tools, behind our gate."""
    target = config.agent.import_ or ""
    module_name, _, name = target.partition(":")
    folder = str(config.folder.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = getattr(importlib.import_module(module_name), name)
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise ConfigError(f'[agent] import = "{target}" cannot be loaded: {cause}; write "module:agent"') from error
    if not isinstance(found, AbstractAgent):
        raise ConfigError(f'[agent] import = "{target}" is not a PydanticAI agent but a {type(found).__name__}')
    return found  # pyright: ignore[reportUnknownVariableType]


def verdicts(tools: Sequence[PluginTool], policy: Policy) -> list[str]:
    """What a call of each tool would meet, in words."""
    lines: list[str] = []
    for entry in tools:
        if isinstance(entry, Tool):
            lines.append(_verdict(entry, policy))
        elif isinstance(entry, FunctionToolset):
            lines.extend(_verdict(tool, policy) for tool in entry.tools.values())
        else:
            lines.append(f"{entry.label}: its tools are known when it runs; each passes the gate")
    return lines


def _verdict(tool: Tool[Any], policy: Policy) -> str:
    declared = declaration(tool.tool_def)
    rules = [rule for rule in policy.rules if rule.names(tool.name)]
    if any(rule.when or rule.unless for rule in rules) or (not rules and callable(declared)):
        return f"{tool.name}: depends on its arguments"
    strictest = [v for v in (Verdict.DENY, Verdict.ASK, Verdict.ALLOW) if any(rule.verdict is v for rule in rules)]
    if strictest:
        return f"{tool.name}: {strictest[0]} (rule)"
    if isinstance(declared, Verdict):
        return f"{tool.name}: {declared} (declared)"
    return f"{tool.name}: {policy.undeclared} (declares nothing; its own code may still ask)"
