"""Builds the agent from the configuration, with built-in tools and plugins, or imports one. Lists tool verdicts."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from pydantic_ai import Agent, Tool, ToolDefinition
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, PrefixedToolset

from signoff.agent.demo.model import demo_model
from signoff.agent.mcp import McpServer, build_servers
from signoff.agent.models import choose_model
from signoff.agent.own_asking import asking_tools_of
from signoff.agent.plugins import OURSELVES, Listener, PluginTool, load_plugins
from signoff.agent.runner import AgentRunner, Limits
from signoff.agent.tools import builtin_tools
from signoff.approvals.model import JsonObject, Ruling, Terms, Verdict
from signoff.approvals.notify import ways_of_card
from signoff.approvals.policy import Policy, Rule
from signoff.approvals.ports import Clock
from signoff.config.schema import Config
from signoff.errors import ConfigError, StartupError
from signoff.gate.declarations import declaration
from signoff.gate.examiner import Judge
from signoff.gate.tool_slots import ToolShares, ToolSlots
from signoff.servers.ports import Servers
from signoff.turns.administration import ToolFacts
from signoff.turns.ports import TurnStore

Mask = Callable[[JsonObject], JsonObject]
T = TypeVar("T")
Problem = tuple[tuple[str | int, ...], StartupError]
"""The path of a key in signoff.toml, and what is wrong with the part that it names."""


@dataclass(frozen=True)
class Brain:
    """The agent and its policy. Building it finds every mistake in the configuration."""

    agent: AbstractAgent[Any, Any]
    policy: Policy
    verdicts: tuple[str, ...]
    """One line per tool that is known before a run."""
    listeners: tuple[Listener, ...] = ()
    """Functions of plugins that are called with every decision."""
    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tool name -> the plugin that defines it, or "Signoff itself"."""

    @property
    def tools(self) -> tuple[ToolFacts, ...]:
        """The tools known now: an MCP server's tools are known only after its first run."""
        return tuple(facts(self.agent, self.policy))

    @classmethod
    def build(
        cls,
        config: Config,
        model_name: str,
        problems: list[Problem] | None = None,
        servers: Servers | None = None,
    ) -> Brain:
        """Build everything. Raises StartupError; if `problems` is given, it gets the parts that were left out.

        `servers` is the way to Discord's servers, for the tools that need it.
        """
        policy = build_policy(config)
        if config.agent.import_:
            imported = _attempt(problems, ("agent", "import"), lambda: _import_alone(config), None)
            if imported is not None:
                return cls(imported, policy, tuple(verdicts(imported.toolsets, policy)))
        listeners: list[Listener] = []
        owners: dict[str, str] = {}
        tools = build_tools(config, listeners, owners, problems, servers)
        for name in config.mcp:
            only = config.model_copy(update={"mcp": {name: config.mcp[name]}})
            tools += _attempt(problems, ("mcp", name), partial(build_servers, only), [])
        agent = Agent(
            _attempt(problems, ("agent", "model"), partial(choose_model, model_name), demo_model()),
            instructions=config.agent.instructions,
            tools=[tool for tool in tools if isinstance(tool, Tool)],
            toolsets=[toolset for toolset in tools if isinstance(toolset, AbstractToolset)],
        )
        return cls(agent, policy, tuple(verdicts(tools, policy)), tuple(listeners), owners)

    def runner(self, config: Config, store: TurnStore, clock: Clock, policy: Judge, mask: Mask) -> AgentRunner:
        limits = config.limits
        ModelMessagesTypeAdapter.dump_json([])  # builds it now: later it would stop the event loop for a moment
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


def _attempt(problems: list[Problem] | None, path: tuple[str | int, ...], build: Callable[[], T], otherwise: T) -> T:
    """Build a part. If that fails, note the problem and return `otherwise`; without a list of problems, raise."""
    try:
        return build()
    except StartupError as error:
        if problems is None:
            raise
        problems.append((path, error))
        return otherwise


def build_policy(config: Config) -> Policy:
    rules = tuple(
        Rule(
            **{name: getattr(rule, name) for name in type(rule).model_fields if name != "escalate"},
            escalate=rule.escalate and rule.escalate.terms,
        )
        for rule in config.rules
    )
    asking, written = config.approvals, config.approvals.model_fields_set
    return Policy(
        rules,
        Verdict(config.tools.undeclared),
        asking.approvers if "approvers" in written else None,
        asking.timeout if "timeout" in written else None,
        asking.escalate and asking.escalate.terms,
    )


def build_terms(config: Config) -> Terms:
    asking = config.approvals
    return Terms(
        asking.approvers,
        asking.timeout,
        asking.quorum,
        asking.four_eyes,
        asking.reminder,
        asking.ping,
        ways_of_card([(asking.notify,)]) or None,
        asking.escalate and asking.escalate.terms,
    )


def facts(agent: AbstractAgent[Any, Any], policy: Policy) -> list[ToolFacts]:
    """Return the agent's function tools and the known tools of MCP servers. Others are known only when it runs."""
    return [
        ToolFacts(
            tool_def.name,
            tuple(tool_def.parameters_json_schema.get("properties", {})),
            verdict_of(tool_def, policy),
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


def build_tools(
    config: Config,
    listeners: list[Listener] | None = None,
    owners: dict[str, str] | None = None,
    problems: list[Problem] | None = None,
    servers: Servers | None = None,
) -> list[PluginTool]:
    """Return the built-in tools and those of the plugins. See `Brain.build` for `problems`."""
    owners = {} if owners is None else owners
    tools: list[PluginTool] = [*builtin_tools(config.tools.enable, config.workspace, servers)]
    owners |= {tool.name: OURSELVES for tool in tools if isinstance(tool, Tool)}
    for number, path in enumerate(config.tools.plugins):
        load = partial(load_plugins, [path], config.folder, (), listeners, owners)
        tools += _attempt(problems, ("tools", "plugins", number), load, [])
    return tools


def _import_alone(config: Config) -> AbstractAgent[Any, Any]:
    if config.mcp or config.tools.plugins:
        unused = "[mcp.NAME]" if config.mcp else "[tools] plugins"
        cause = f"[agent] import brings its own tools, so {unused} would not be used"
        raise ConfigError(f"{cause}; remove one of them")
    return import_agent(config)


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


DEPENDS = "depends on its arguments"


def verdicts(tools: Iterable[PluginTool], policy: Policy) -> list[str]:
    """Return one line per tool with the verdict on its calls."""
    lines: list[str] = []
    for entry in tools:
        known = [entry.tool_def] if isinstance(entry, Tool) else _definitions(entry)
        asking = asking_tools_of(entry)
        lines += [f"{one.name}: {verdict_of(one, policy, asks_itself=one.name in asking)}" for one in known]
        if not known and not isinstance(entry, Tool):
            lines.append(f"{entry.label}: its tools are known when it runs; each passes the gate")
    return lines


def verdict_of(tool: ToolDefinition, policy: Policy, *, asks_itself: bool = False) -> str:
    """Return the verdict on a call of this tool, as text that begins with the verdict if it is certain.

    `asks_itself`: whether the tool's own code asks for some arguments.
    """
    rules = [rule for rule in policy.rules if rule.names(tool.name)]
    always = [rule.verdict for rule in rules if not rule.when and not rule.unless]
    certain, why = (_strictest(always), "rule") if always else _without_rules(tool, policy)
    # Each rule with a condition may match or not, and beside it the rules without a condition hold.
    conditional = {_strictest([rule.verdict, *always]) for rule in rules if rule.when or rule.unless}
    possible = {certain, *conditional}
    why += "; rules on its arguments apply too" if conditional else ""
    if asks_itself and Verdict.ALLOW in possible:
        possible |= {Verdict.ASK}
    if None in possible or (len(possible) > 1 and Verdict.ASK in possible):
        return DEPENDS
    return f"{certain} ({why})" if len(possible) == 1 else "allow or deny, by its arguments"


def _strictest(verdicts: Iterable[Verdict]) -> Verdict:
    return min(verdicts, key=[Verdict.DENY, Verdict.ASK, Verdict.ALLOW].index)


def _without_rules(tool: ToolDefinition, policy: Policy) -> tuple[Verdict | None, str]:
    """Return the verdict on a call that no rule matches, and why; None if it depends on the arguments."""
    declared = declaration(tool)
    if callable(declared):
        return None, ""
    if isinstance(declared, Ruling):
        return declared.verdict, declared.reason
    if isinstance(declared, Verdict):
        return declared, "declared"
    return policy.undeclared, "declares nothing; its own code may still ask"
