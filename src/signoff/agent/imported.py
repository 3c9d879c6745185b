"""Loads what `[agent] import` and `[agent] deps` name, and checks at the start that it can run here.

Every mistake becomes one line with the cause and what to write instead. The agent itself stays unchanged: its model,
instructions, tools, capabilities and output are its own.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, cast, get_args

from pydantic_ai import BinaryImage, PendingModelResponse
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import Model
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.output import NativeOutput, PromptedOutput

from signoff.agent.deps import DepsMaker, takes_info
from signoff.agent.models import choose_model
from signoff.config.schema import Config
from signoff.errors import ConfigError, SettingsError

AnyAgent = AbstractAgent[Any, Any]


def import_agent(config: Config) -> AnyAgent:
    """Load the agent and check that it can run here. Raises ConfigError."""
    target = config.agent.import_ or ""
    named = f'[agent] import = "{target}"'
    agent = _load(named, target, "module:agent", config)
    if not isinstance(agent, AbstractAgent):
        raise ConfigError(f"{named} is not a PydanticAI agent but a {type(agent).__name__}; name the agent itself")
    agent = cast("AnyAgent", agent)
    if needs_deps(agent) and config.agent.deps is None:
        kind = getattr(agent.deps_type, "__name__", str(agent.deps_type))
        raise ConfigError(f'{named} needs deps of the type {kind}; write deps = "module:make_deps" below [agent]')
    check_output(named, agent.output_type)
    for capability in capabilities_of(agent.root_capability):
        if tools := provider_tools(capability):
            raise ConfigError(f"{named} {_refused(tools)}")
    return agent


def load_deps(config: Config) -> DepsMaker | None:
    """Load the function of `[agent] deps`; None if there is none. Raises ConfigError."""
    target = config.agent.deps
    if target is None:
        return None
    named, function = f'[agent] deps = "{target}"', target.partition(":")[2]
    made = _load(named, target, "module:make_deps", config)
    if not callable(made):
        raise ConfigError(f"{named} is not a function but a {type(made).__name__}; write def {function}(info): ...")
    if not takes_info(cast("Callable[..., Any]", made)):
        raise ConfigError(f"{named} cannot be called with one argument; write def {function}(info): ...")
    return DepsMaker(target, made, config.agent.settings)


def model_for(agent: AnyAgent, name: str) -> Model | None:
    """Return the model for an agent that has none, or None if it has one. Raises SettingsError if there is no such."""
    root = agent.root_capability
    if agent.model is None and root.get_model() is None:
        return choose_model(name)
    if isinstance(agent.model, str) and not root.has_resolve_model_id:
        try:
            choose_model(agent.model)  # it would fail at the first mention
        except SettingsError as error:
            raise ConfigError(f"the imported agent: {error}") from None
    return None


def needs_deps(agent: AnyAgent) -> bool:
    """Whether the agent says that its tools use dependencies. Without `deps_type`, its type is `object`."""
    kind: Any = agent.deps_type
    return kind not in (object, Any, NoneType, None) and NoneType not in get_args(kind)


def check_output(named: str, output_type: Any) -> None:
    """Raise ConfigError for an output that has no place in a conversation."""
    kinds = list(_kinds(output_type))
    if PendingModelResponse in kinds:
        raise ConfigError(
            f"{named} may end with a PendingModelResponse, which nobody would pick up; leave it out of its output_type"
        )
    if BinaryImage in kinds:
        raise ConfigError(
            f"{named} may end with an image, which the model's provider makes and nobody would see; "
            "leave BinaryImage out of its output_type"
        )


def capabilities_of(capability: AbstractCapability[Any]) -> list[AbstractCapability[Any]]:
    """Return the capabilities that this one consists of."""
    parts: list[AbstractCapability[Any]] = []
    capability.apply(parts.append)
    return parts


def provider_tools(capability: AbstractCapability[Any]) -> list[str]:
    """Return the names of the tools that only the model's provider can run. Such a tool bypasses every approval."""
    if capability.get_toolset() is not None:
        return []  # it may be the local fallback; the seal looks again at each request
    tools = [tool for tool in capability.get_native_tools() if isinstance(tool, AbstractNativeTool)]
    return [tool.kind for tool in tools if not tool.optional]


def check_capabilities(named: str, capabilities: Sequence[AbstractCapability[Any]]) -> None:
    """Raise ConfigError if one of them brings a tool that only the model's provider can run."""
    for capability in capabilities:
        for part in capabilities_of(capability):
            if tools := provider_tools(part):
                raise ConfigError(f"{named} {_refused(tools)}")


def _refused(tools: Sequence[str]) -> str:
    return (
        f"has a tool that the model's provider runs, past every approval: {', '.join(tools)}; "
        "give it a local fallback with local=..., or remove it"
    )


def _kinds(output_type: Any) -> Iterator[Any]:
    if isinstance(output_type, NativeOutput | PromptedOutput):
        yield from _kinds(cast("Any", output_type).outputs)
    elif isinstance(output_type, Sequence) and not isinstance(output_type, str):
        for kind in cast("Sequence[Any]", output_type):
            yield from _kinds(kind)
    elif isinstance(output_type, type):
        yield output_type
    elif members := get_args(output_type):
        for kind in members:
            yield from _kinds(kind)
    else:
        yield output_type


def _load(named: str, target: str, form: str, config: Config) -> object:
    """Return the object that `module:name` names. Raises ConfigError, which shows the `form` to write."""
    module_name, _, name = target.partition(":")
    folder = config.folder.resolve()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            todo = "with a module that is installed or lies beside signoff.toml"
            raise ConfigError(f'{named}: there is no module {error.name}; write "{form}" {todo}') from None
        raise _failed(named, error, folder) from error
    except (Exception, SystemExit) as error:
        raise _failed(named, error, folder) from error
    if not hasattr(module, name):
        raise ConfigError(f'{named}: {module_name} has no {name}; write "{form}" with a name that it defines')
    return getattr(module, name)


def _failed(named: str, error: BaseException, folder: Path) -> ConfigError:
    """Name the last line of the operator's own files that was running."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{_short(error.filename, folder)}:{error.lineno}: "
    else:
        where = f"{_short(own[-1].filename, folder)}:{own[-1].lineno}: " if own else ""
    cause = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
    return ConfigError(f"{named} cannot be loaded: {where}{cause}; correct that file, or name another")


def _short(file: str, folder: Path) -> str:
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name
