"""MCP servers: Signoff connects to them itself, instead of the model's provider, so that their tools pass the gate.

Every tool of an MCP server asks for approval, no matter whether the server comes from `[mcp.NAME]`, a plugin or an
imported agent. A server's hints about its tools count only if the operator trusts it. If a server does not respond, the
turn goes on without its tools. Knows nothing of people and cards.
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import os
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Self

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, PrefixedToolset, ToolsetTool, WrapperToolset

from signoff.agent.mcp_output import ServerOutput
from signoff.approvals.digest import fingerprint
from signoff.approvals.tool_description import Marks
from signoff.config.schema import Config, McpConfig
from signoff.dataclass import dataclass
from signoff.errors import ConfigError
from signoff.gate.declarations import MAY_ASK, MCP_ASKS, MCP_READS, TITLE, TRUSTED, WHY, hinted_marks, saying
from signoff.gate.lost_calls import is_lost
from signoff.text.patterns import lazy_pattern

if TYPE_CHECKING:
    from fastmcp import Client
    from pydantic_ai.mcp import MCPToolset

    from signoff.agent.mcp_elicitation import ServerCalls
    from signoff.agent.mcp_sampling import Sampling

log = logging.getLogger(__name__)

READ_SHARE = 0.95
"""The part of a tool's time limit that a server has for its answer. The rest is for closing a silent connection."""
READ_SECONDS = 366 * 86400.0
"""The client's own time limit. It would also count the time in which people answer a server's question."""
_VARIABLE = lazy_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def build_servers(config: Config, environment: Mapping[str, str] = os.environ) -> list[AbstractToolset[Any]]:
    """Build the servers of signoff.toml without starting them. Raises ConfigError if a variable is not set."""
    built: list[AbstractToolset[Any]] = []
    for name, server in config.mcp.items():
        from signoff.agent.mcp_elicitation import ServerCalls  # it takes a second or two, as in `_connection`

        output = ServerOutput(name)
        toolset = _connection(name, server, config, environment, output)
        # End before the gate gives the call up: then the silent connection is closed, and the next call gets a new one.
        calls = ServerCalls(name, config.limits.tool_seconds * READ_SHARE)
        if server.elicitation:
            calls.listen(toolset.client)
        connected = McpServer(toolset, name, server, toolset.client, output, calls)
        if server.sampling:
            from signoff.agent.mcp_sampling import Sampling

            connected.sampling = Sampling(name)
            toolset.set_sampling_model(connected.sampling)
        built.append(connected.prefixed(connected.prefix) if connected.prefix else connected)
    return built


def server_in(toolset: AbstractToolset[Any]) -> McpServer | None:
    """Return the server of signoff.toml that this toolset is; None if it is another toolset."""
    inner = toolset.wrapped if isinstance(toolset, PrefixedToolset) else toolset
    return inner if isinstance(inner, McpServer) else None


def _connection(
    name: str, server: McpConfig, config: Config, environment: Mapping[str, str], output: ServerOutput
) -> MCPToolset[Any]:
    # Import here: it takes a second or two, and most installations have no MCP server.
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset

    client, headers = server.url, _filled(f"[mcp.{name}] headers", server.headers, environment) or None
    if server.command:
        command, *arguments = server.command
        # Our environment holds our token, so the server gets only the variables that a program needs to start.
        env = _filled(f"[mcp.{name}] env", server.env, environment)
        client = StdioTransport(command, arguments, env, str(config.folder.resolve()), log_file=output.pipe())
    return MCPToolset(
        client,
        # This id is part of every call's digest, so that another server under the same name inherits no decision.
        id=f"{name} {fingerprint({'source': server.command or server.url})[:16]}",
        headers=headers,
        tool_error_behavior="failed",
        init_timeout=server.start,
        read_timeout=READ_SECONDS,
    )


def _filled(where: str, texts: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    def value(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise ConfigError(f"{where} names ${{{match[1]}}}, which is not set; set it in .env or remove it")
        return environment[match[1]]

    return {name: _VARIABLE.sub(value, text) for name, text in texts.items()}


@dataclass
class McpServer(WrapperToolset[Any]):
    """One server of signoff.toml, connected for the duration of a run."""

    name: str
    server: McpConfig
    client: Client[Any]
    """The connection, which all runs share."""
    output: ServerOutput
    calls: ServerCalls
    """The calls that are running at the server. All runs share it."""
    connected: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """All runs share it: one of them at a time closes or opens the connection."""
    known: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, "ToolsetTool[Any]"])
    """Tool name -> the tool, as of the server's last response. All runs share it."""
    forgetting: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    """The tasks that close a lost connection. All runs share it."""
    report: Callable[[str], None] = log.warning
    """Gets one line each time the server does not answer."""
    sampling: Sampling | None = None
    """Lets the server use the model, if the operator allows it. All runs share it."""
    begun: bool = False
    """Whether this run has tried to connect."""

    @property
    def prefix(self) -> str:
        return self.name if self.server.prefix is None else self.server.prefix

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        # Connect here, because the framework does this for all toolsets at once, but enters them one after the other.
        server = replace(self, connected=False, begun=False)
        await server._connect()
        return server

    async def __aenter__(self) -> Self:
        if not self.begun:
            await self._connect()
        return self

    async def _connect(self) -> None:
        self.begun = True
        try:
            async with asyncio.timeout(self.server.start):
                await super().__aenter__()
            self.connected = True
        except Exception as error:
            self._warn(error)
            await self.end()

    async def __aexit__(self, *args: Any) -> bool | None:
        self.begun = False
        if self.connected:
            try:
                await super().__aexit__(*args)
            except Exception as error:  # the server is gone, which must not end the turn
                log.debug("leaving the MCP server %s: %s", self.name, error)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        if self.connected:
            try:
                async with asyncio.timeout(self.server.start):
                    tools, titles = await super().get_tools(ctx), await self._titles()
            except Exception as error:
                self._warn(error)
            else:
                wanted = {name: tool for name, tool in tools.items() if self._is_wanted(name)}
                self.known.clear()
                self.known |= {name: self._declared(tool, titles.get(name)) for name, tool in wanted.items()}
        # Keep the known tools if the server does not respond: running an approved call then reports that.
        return dict(self.known)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if not self.connected:
            raise ToolFailed(f"Not run: the MCP server {self.name} does not answer.")
        session = await self._session()
        try:
            with self.sampling.permitted(ctx) if self.sampling else nullcontext():
                async with self.calls.call(session):
                    return await super().call_tool(name, tool_args, ctx, tool)
        except Exception as error:
            if is_lost(error):
                # In a task of its own, which goes on when the call is given up. The next call waits for it.
                forgetting = asyncio.create_task(self._forget(session))
                self.forgetting.add(forgetting)
                forgetting.add_done_callback(self.forgetting.discard)
                await asyncio.shield(forgetting)
            raise

    async def _session(self) -> object:
        """Return the session for a call. If the server died in an earlier call, start it again."""
        async with self.lock:
            if self.client.is_connected() and self.calls.is_spoilt(self.client.session):
                log.warning("the MCP server %s still asks in a call that was given up; it is started again", self.name)
                await self.end()
            if not self.client.is_connected():
                try:
                    async with asyncio.timeout(self.server.start):
                        await self.client.__aenter__()
                except Exception as error:
                    self._warn(error)
                    raise ToolFailed(f"Not run: the MCP server {self.name} does not answer.") from error
            return self.client.session

    async def _forget(self, session: object) -> None:
        """End a server that died or fell silent during a call, unless another call has already replaced it."""
        async with self.lock:
            if self.client.is_connected() and self.client.session is session:
                log.warning("the connection to the MCP server %s was lost during a call", self.name)
                await self.end()

    def definitions(self) -> list[ToolDefinition]:
        """Return its tools under their full names, or one entry that stands for all if none are known yet."""
        known = [tool.tool_def for tool in self.known.values()] or [_any_tool(trusted=self.server.trusted)]
        start = f"{self.prefix}_" if self.prefix else ""
        return [replace(tool_def, name=f"{start}{tool_def.name}") for tool_def in known]

    async def end(self) -> None:
        """End the server's process or connection. The next run starts a new one."""
        try:
            async with asyncio.timeout(self.server.start):
                await self.client.close()
        except Exception as error:
            log.debug("ending the MCP server %s: %s", self.name, error)

    def _is_wanted(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.server.tools)

    async def _titles(self) -> dict[str, str | None]:
        """Return tool name -> the title that the server gives it. The framework does not pass it on."""
        toolset: Any = self.wrapped
        return {tool.name: tool.title for tool in await toolset.list_tools()}

    def _declared(self, tool: ToolsetTool[Any], title: str | None) -> ToolsetTool[Any]:
        hints = hinted_marks(tool.tool_def) if self.server.trusted else {}
        reads = Marks.read(hints).read_only
        words = ("never_require", MCP_READS) if reads else ("always_require", MCP_ASKS)
        return saying(
            tool,
            *words,
            **hints,
            **{TRUSTED: self.server.trusted, TITLE: title, MAY_ASK: self.server.elicitation},
        )

    def _warn(self, error: Exception) -> None:
        said = f"; its last line was: {self.output.last_line}" if self.output.last_line else ""
        cause = f"{type(error).__name__}: {error}".rstrip(": ")
        self.report(f"the MCP server {self.name} does not answer: {cause}{said}")


def _any_tool(*, trusted: bool) -> ToolDefinition:
    why = f"{MCP_ASKS}, or it only reads" if trusted else MCP_ASKS
    return ToolDefinition(name="*", metadata={"approval": "always_require", WHY: why})
