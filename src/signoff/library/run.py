"""`run_with_approval`: runs any agent with a `Signoff`, and returns the agent's own result.

The whole conversation is one run of the framework, so the agent keeps its output type, validators, limits and streaming
handlers. This module only passes the parameters on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from pydantic_ai import AgentRunResult
from pydantic_ai.agent import AbstractAgent, EventStreamHandler
from pydantic_ai.capabilities import AgentCapability
from pydantic_ai.messages import ModelMessage, UserContent
from pydantic_ai.models import Model
from pydantic_ai.output import OutputDataT
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RunUsage, UsageLimits

from signoff.library.capability import parts_of, settings_of
from signoff.library.settings import Options, Settings

Deps = TypeVar("Deps")


class RunOptions(TypedDict, Generic[Deps], total=False):
    """Parameters of `agent.run`, passed on as they are."""

    deps: Deps
    usage_limits: UsageLimits | None
    usage: RunUsage | None
    model: Model | str | None
    model_settings: ModelSettings | None
    toolsets: Sequence[AbstractToolset[Deps]] | None
    capabilities: Sequence[AgentCapability[Deps]] | None
    event_stream_handler: EventStreamHandler[Deps] | None


class AllOptions(Options, RunOptions[Deps], total=False):
    """Everything that `run_with_approval` takes: the settings of `Signoff`, and parameters of `agent.run`."""

    message_history: Sequence[ModelMessage] | None
    conversation_id: str | None


async def run_with_approval(
    agent: AbstractAgent[Deps, OutputDataT],
    prompt: str | Sequence[UserContent] | None = None,
    **options: Unpack[AllOptions[Deps]],
) -> AgentRunResult[OutputDataT]:
    """Run the agent to its end, asking about each call that needs approval. A sync UI is called in a thread.

    A deny rule of `policy` decides first, then a remembered decision, then `mode`, then the `ui`. With `batch="hold"`,
    calls that need no approval wait while a person is asked about others of the same response, and run if one of those
    is accepted; with `"split"` they run at once. After `max_rounds` responses that needed approval, nobody is asked
    again and further calls that would ask are rejected. The other parameters are those of `agent.run`. If the agent has
    a `Signoff` of its own, the settings that are not given here are taken from it.
    """
    return await agent.run(prompt, **_with_parts(agent, options))


def run_with_approval_sync(
    agent: AbstractAgent[Deps, OutputDataT],
    prompt: str | Sequence[UserContent] | None = None,
    **options: Unpack[AllOptions[Deps]],
) -> AgentRunResult[OutputDataT]:
    """Do the same as `run_with_approval` without an event loop. A sync UI is called in this thread: `input()` works."""
    return agent.run_sync(prompt, **_with_parts(agent, options))


def _with_parts(agent: AbstractAgent[Any, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters for `agent.run`, with a Signoff for this run among the capabilities."""
    given = {name: value for name, value in options.items() if name in Options.__annotations__}
    passed = {name: value for name, value in options.items() if name not in given}
    if given.get("ui"):
        given = {"store": None, "timeout": None, **given}  # the agent's own store would let people decide later
    settings = replace(settings_of(agent) or Settings(), **given)
    return {**passed, "capabilities": [*parts_of(settings), *(passed.get("capabilities") or ())]}
