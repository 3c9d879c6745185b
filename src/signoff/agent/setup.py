"""Builds the agent from the configuration, with built-in tools and plugins, or imports one. Lists tool verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pydantic_ai
from pydantic_ai import Agent, Tool, ToolDefinition
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from signoff.agent.imported import import_agent, load_deps, model_for
from signoff.agent.models import choose_model
from signoff.agent.own_asking import asking_tools_of
from signoff.agent.plugins import OURSELVES, Listener, PluginParts, PluginTool, load_plugins
from signoff.agent.runner import AgentRunner, Extras, Limits
from signoff.approvals.model import JsonObject, Ruling, Terms, Verdict
from signoff.approvals.notify import ways_of_card
from signoff.approvals.policy import Policy
from signoff.approvals.ports import Clock
from signoff.config.schema import Config
from signoff.dataclass import dataclass
from signoff.errors import StartupError
from signoff.gate.book import returned
from signoff.gate.declarations import declaration, marks_of
from signoff.gate.examiner import Judge
from signoff.gate.tool_slots import ToolShares, ToolSlots
from signoff.settings import DEMO_MODEL
from signoff.text.patterns import compile_patterns
from signoff.turns.administration import ToolFacts
from signoff.turns.ports import TurnStore

if TYPE_CHECKING:
    from signoff.servers.ports import Servers

pydantic_ai.BANNER_ENABLED = False  # its first run would print advertising between the lines of a chat

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
    extras: Extras = field(default_factory=Extras)

    @property
    def tools(self) -> tuple[ToolFacts, ...]:
        """The tools known now: an MCP server's tools are known only after its first run."""
        return tuple(facts([*self.agent.toolsets, *self.extras.toolsets], self.policy))

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
        policy, parts = build_policy(config), PluginParts()
        deps, imported = None, None
        if config.agent.deps:
            deps = _attempt(problems, ("agent", "deps"), partial(load_deps, config), None, config)
        if config.agent.import_:
            imported = _attempt(problems, ("agent", "import"), partial(import_agent, config), None, config)
        own = [] if imported else build_own_tools(config, problems, servers)
        parts.owners.update((tool.name, OURSELVES) for tool in own)
        plugins = build_plugins(config, parts, problems)
        mcp_servers = build_all_servers(config, problems)
        extras = Extras(deps=deps, capabilities=tuple(parts.capabilities))
        if imported is not None:
            load_model = partial(model_for, imported, model_name)
            model = _attempt(problems, ("agent", "model"), load_model, None)
            toolsets = as_toolsets([*plugins, *mcp_servers])
            extras = replace(extras, model=model, toolsets=toolsets, own_output=True)
            lines = verdicts([*imported.toolsets, *toolsets], policy)
            return cls(imported, policy, tuple(lines), tuple(parts.listeners), parts.owners, extras)
        tools: list[PluginTool] = [*own, *plugins, *mcp_servers]
        model = _attempt(problems, ("agent", "model"), partial(choose_model, model_name), None)
        agent = Agent(
            model or choose_model(DEMO_MODEL),
            instructions=config.agent.instructions,
            tools=[tool for tool in tools if isinstance(tool, Tool)],
            toolsets=[toolset for toolset in tools if isinstance(toolset, AbstractToolset)],
        )
        return cls(agent, policy, tuple(verdicts(tools, policy)), tuple(parts.listeners), parts.owners, extras)

    def runner(self, config: Config, store: TurnStore, clock: Clock, policy: Judge, mask: Mask) -> AgentRunner:
        limits = config.limits
        return AgentRunner(
            self.agent,
            store,
            clock,
            policy,
            build_terms(config),
            config.approvals.batch == "hold",
            Limits(
                limits.calls_per_response, limits.model_requests_per_turn, limits.model_retries, limits.history_tokens
            ),
            ToolSlots(limits.tool_seconds, ToolShares(limits.tools_per_person)),
            mask,
            extras=self.extras,
        )


def warm_up() -> None:
    """Build what the first run would build. It stops the event loop for a moment, so call it before there is work."""
    ModelMessagesTypeAdapter.dump_json([])
    returned()
    compile_patterns()


def _attempt(
    problems: list[Problem] | None,
    path: tuple[str | int, ...],
    build: Callable[[], T],
    otherwise: T,
    config: Config | None = None,
) -> T:
    """Build a part. If that fails, note the problem and return `otherwise`; without a list of problems, raise.

    With `config`, the raised error begins with the file and the line of the key.
    """
    try:
        return build()
    except StartupError as error:
        if problems is None:
            raise type(error)(f"{config.where(*path)}: {error}") if config else error from error.__cause__
        problems.append((path, error))
        return otherwise


def build_policy(config: Config) -> Policy:
    asking, written = config.approvals, config.approvals.model_fields_set
    undeclared = config.tools.undeclared
    return Policy(
        tuple(rule.as_rule() for rule in config.rules),
        Verdict(undeclared or Verdict.ALLOW),
        asking.approvers if "approvers" in written else None,
        asking.timeout if "timeout" in written else None,
        asking.escalate and asking.escalate.terms,
        undeclared_by_others=Verdict.ASK if undeclared is None else None,
        shell=config.tools.shell,
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
        asking.answerers,
    )


def facts(toolsets: Iterable[AbstractToolset[Any]], policy: Policy) -> list[ToolFacts]:
    """Return the function tools and the known tools of MCP servers. Others are known only when they run."""
    return [
        ToolFacts(
            tool_def.name,
            tuple(tool_def.parameters_json_schema.get("properties", {})),
            verdict_of(tool_def, policy),
            marks_of(tool_def),
        )
        for toolset in toolsets
        for tool_def in _definitions(toolset)
    ]


def _definitions(toolset: AbstractToolset[Any]) -> list[ToolDefinition]:
    if isinstance(toolset, FunctionToolset):
        return [tool.tool_def for tool in toolset.tools.values()]
    from signoff.agent.mcp import server_in  # here, because few have such servers

    server = server_in(toolset)
    return server.definitions() if server else []


def build_own_tools(
    config: Config, problems: list[Problem] | None = None, servers: Servers | None = None
) -> list[Tool[Any]]:
    """Return the tools of Signoff itself that are enabled. See `Brain.build` for the parameters."""
    from signoff.agent.tools import builtin_tools  # here, because an imported agent has tools of its own

    tools = builtin_tools(config.tools.enable, config.workspace, servers)
    if config.tools.workspace_tools:
        from signoff.agent.tools.workspace_set import workspace_tools  # most bots need none of them

        tools += _attempt(problems, ("tools", "enable"), partial(workspace_tools, config), [])
    return tools


def build_plugins(config: Config, parts: PluginParts, problems: list[Problem] | None = None) -> list[PluginTool]:
    """Return the tools of the plugins; `parts` gets everything else. See `Brain.build` for `problems`."""
    tools: list[PluginTool] = []
    for number, path in enumerate(config.tools.plugins):
        load = partial(load_plugins, [path], config.folder, (), parts.listeners, parts.owners, parts.capabilities)
        tools += _attempt(problems, ("tools", "plugins", number), load, [])
    return tools


def build_all_servers(config: Config, problems: list[Problem] | None = None) -> list[AbstractToolset[Any]]:
    """Return the MCP servers of signoff.toml. See `Brain.build` for `problems`."""
    if not config.mcp:
        return []
    from signoff.agent.mcp import build_servers  # here, because few have such servers

    servers: list[AbstractToolset[Any]] = []
    for name in config.mcp:
        only = config.model_copy(update={"mcp": {name: config.mcp[name]}})
        servers += _attempt(problems, ("mcp", name), partial(build_servers, only), [])
    return servers


def as_toolsets(tools: Sequence[PluginTool]) -> tuple[AbstractToolset[Any], ...]:
    """Return the same tools as toolsets, which a run takes besides those of the agent."""
    functions = [tool for tool in tools if isinstance(tool, Tool)]
    toolsets = [tool for tool in tools if isinstance(tool, AbstractToolset)]
    return (*([FunctionToolset(functions, id="plugins")] if functions else []), *toolsets)


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
    rules = [rule for rule in policy.rules if rule.concerns(tool.name, marks_of(tool))]
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
    ruling = policy.undeclared_ruling(marks_of(tool))
    allowed = "marked read-only" if marks_of(tool).read_only else "declares nothing"
    return ruling.verdict, f"{allowed}; its own code may still ask" if ruling.verdict is Verdict.ALLOW else allowed
