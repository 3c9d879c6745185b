"""Finds out which tools the agent has, before the first run: MCP servers and other toolsets are asked.

Each toolset is asked once and within a time limit. If one does not answer, only its own tools stay unknown.
Two tools of one name make every request of the model fail, so such a collision is found here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.usage import RunUsage

from signoff.agent.imported import capabilities_of
from signoff.agent.own_asking import asking_tools, asking_tools_of
from signoff.agent.setup import Brain, verdict_of
from signoff.config.findings import Finding, Severity, error, warning
from signoff.config.rule_checks import KnownTool, KnownTools
from signoff.config.schema import Config
from signoff.dataclass import dataclass
from signoff.gate.declarations import asking_if_mcp, marks_of

if TYPE_CHECKING:
    from signoff.agent.mcp import McpServer

PATIENCE = 10.0
"""Seconds that a toolset of a plugin or of an imported agent may take to list its tools."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where tools come from."""

    label: str
    path: tuple[str | int, ...]
    """The key of signoff.toml that brings them in."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of one toolset."""

    source: Source
    tools: tuple[ToolDefinition, ...] = ()
    asking: frozenset[str] = frozenset()
    """The names of the tools whose own code asks."""
    others: str | None = None
    """What the names of its unknown tools begin with; None if all its tools are known."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    listings: tuple[Listing, ...]
    owners: Mapping[str, str]
    """Tool name -> the plugin that defines it."""
    verdicts: Mapping[str, str]
    """Tool name -> the verdict on its calls, as text."""
    notes: tuple[Finding, ...] = ()
    """Findings about the agent itself."""

    @property
    def known(self) -> KnownTools:
        tools = (
            KnownTool(one.name, _arguments(one), marks_of(one)) for listing in self.listings for one in listing.tools
        )
        return KnownTools(tuple(tools), tuple(one.others for one in self.listings if one.others is not None))

    @property
    def findings(self) -> list[Finding]:
        return [*self.notes, *(finding for listing in self.listings for finding in listing.findings)]

    def collisions(self, config: Config) -> list[Finding]:
        """Return an error for each name that several tools have."""
        first: dict[str, Source] = {}
        collisions: list[Finding] = []
        for listing in self.listings:
            for tool in listing.tools:
                earlier = first.setdefault(tool.name, listing.source)
                if earlier is not listing.source:
                    collisions.append(self._collision(config, tool.name, earlier, listing.source))
        return collisions

    def _collision(self, config: Config, name: str, one: Source, other: Source) -> Finding:
        owner = self.owners.get(name, one.label) if not one.label.startswith("[mcp.") else one.label
        if other.path[0] == "mcp":
            prefix = config.mcp[str(other.path[1])].prefix
            own = name.removeprefix(f"{other.path[1] if prefix is None else prefix}_")
            remedy = f'give {other.label} another NAME or prefix, or leave "{own}" out of its tools = [...]'
        else:
            remedy = f"rename one of them, or use .prefixed('NAME') on the toolset of {other.label}"
        problem = f"two tools are called {name}: one of {owner}, one of {other.label}, so every request would fail"
        return error(config.where(*other.path), problem, remedy)


async def survey(brain: Brain, config: Config, *, keep_running: bool) -> Survey:
    """Ask every toolset for its tools. With `keep_running`, the MCP servers stay connected for the first run."""
    # A toolset of a capability lists its tools only to a run that has this capability.
    capabilities = {str(number): one for number, one in enumerate(capabilities_of(brain.agent.root_capability))}
    ctx = RunContext[Any](deps=None, model=_model(brain), usage=RunUsage(), capabilities=capabilities)
    own = ("agent", "import") if brain.extras.own_output else ("tools", "plugins")
    label = "[agent] import" if brain.extras.own_output else "Signoff itself or a plugin"
    asking = [_listed(toolset, ctx, config, keep_running, Source(label, own)) for toolset in brain.agent.toolsets]
    added = Source("a plugin", ("tools", "plugins"))
    asking += [_listed(toolset, ctx, config, keep_running, added) for toolset in brain.extras.toolsets]
    asking += [_listed(toolset, ctx, config, keep_running, added) for toolset in _of_capabilities(brain)]
    listings = tuple(await asyncio.gather(*asking))
    verdicts = {
        tool.name: verdict_of(tool, brain.policy, asks_itself=tool.name in listing.asking)
        for listing in listings
        for tool in listing.tools
    }
    return Survey(listings, brain.owners, verdicts, _notes(brain, config))


def _notes(brain: Brain, config: Config) -> tuple[Finding, ...]:
    if not brain.extras.own_output or brain.extras.model is not None or config.agent.model is None:
        return ()
    problem = "[agent] model has no effect, because the imported agent has a model of its own"
    return (warning(config.where("agent", "model"), problem, "remove it, or make the agent without a model"),)


def _of_capabilities(brain: Brain) -> list[AbstractToolset[Any]]:
    """Return the toolsets of plugins' capabilities. Some are made only when a run begins."""
    toolsets = [capability.get_toolset() for capability in brain.extras.capabilities]
    return [toolset for toolset in toolsets if isinstance(toolset, AbstractToolset)]


async def _listed(
    toolset: AbstractToolset[Any], ctx: RunContext[Any], config: Config, keep_running: bool, plain: Source
) -> Listing:
    if isinstance(toolset, FunctionToolset):
        return Listing(plain, tuple(tool.tool_def for tool in toolset.tools.values()), asking_tools_of(toolset))
    from signoff.agent.mcp import server_in  # here, because few have such servers

    if server := server_in(toolset):
        return await _of_server(server, ctx, config, keep_running)
    source = replace(plain, label=toolset.label)
    try:
        async with asyncio.timeout(PATIENCE):
            run = await toolset.for_run(ctx)
            async with run:
                tools = await run.get_tools(ctx)
    except Exception as failure:
        cause = f"{type(failure).__name__}: {failure}".rstrip(": ")
        problem = f"the toolset {toolset.label} does not list its tools ({cause}), so they could not be checked"
        note = Finding(Severity.NOTE, problem, "look at the toolset, unless it needs a run", config.where(*source.path))
        return Listing(source, others="", findings=(note,))
    definitions = tuple(asking_if_mcp(tool, tool.toolset).tool_def for tool in tools.values())
    return Listing(source, definitions, asking_tools(tools.values()))


async def _of_server(server: McpServer, ctx: RunContext[Any], config: Config, keep_running: bool) -> Listing:
    source, place = Source(f"[mcp.{server.name}]", ("mcp", server.name)), config.where("mcp", server.name)
    troubles: list[str] = []
    probe = replace(server, connected=False, report=troubles.append)
    async with probe:
        if not troubles:
            await probe.get_tools(ctx)
    if not keep_running:
        await server.end()
    if troubles:
        remedy = "correct its command, url, env or headers, or give it more time with start"
        start = f"{server.prefix}_" if server.prefix else ""
        return Listing(source, others=start, findings=(error(place, troubles[0], remedy),))
    if not server.known:
        wanted = ", ".join(server.server.tools)
        problem = f"the MCP server {server.name} offers no tool that matches tools = [{wanted}]"
        return Listing(source, findings=(warning(place, problem, "correct tools, or remove the server"),))
    return Listing(source, tuple(server.definitions()))


def _model(brain: Brain) -> Model:
    model = brain.agent.model
    if isinstance(model, Model):
        return model
    from signoff.agent.demo.model import demo_model  # here, because few need it

    return demo_model()


def _arguments(tool: ToolDefinition) -> Mapping[str, Mapping[str, Any]] | None:
    schema = tool.parameters_json_schema
    if schema.get("additionalProperties") or "properties" not in schema:
        return None if schema.get("additionalProperties") is not False else {}
    return cast("Mapping[str, Mapping[str, Any]]", schema["properties"])
