"""Plugins: Python files with a list `tools` of functions, `pydantic_ai.Tool`s or toolsets of PydanticAI.

If a plugin has a function `on_tool_approval(event)`, it is called with every decision, as written to the record.
If it has a list `capabilities` of PydanticAI's capabilities, every run gets them, between the gate and the seal.

Each plugin's folder is a package, so `from . import sibling` works anywhere in the plugin. A plain `import sibling`
works at the top of the file. That sibling belongs to this plugin alone, so two plugins may each have a `helpers.py`.
Every mistake becomes one line with the file, the line and the cause. The gate decides what a tool may do.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pydantic_ai import Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from signoff.agent.imported import check_capabilities
from signoff.agent.own_tools import as_own
from signoff.dataclass import dataclass
from signoff.errors import ConfigError
from signoff.gate.declarations import WORDS

PluginTool = Tool[Any] | AbstractToolset[Any]
Listener = Callable[[dict[str, Any]], None]
LISTENER = "on_tool_approval"
OURSELVES = "Signoff itself"
"""The owner of the built-in tools, in messages."""


@dataclass(frozen=True, slots=True)
class PluginParts:
    """The parts of plugins besides their tools."""

    listeners: list[Listener] = field(default_factory=list[Listener])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    """Tool name -> the plugin that defines it, or "Signoff itself"."""
    capabilities: list[AbstractCapability[Any]] = field(default_factory=list[AbstractCapability[Any]])


def load_plugins(
    paths: Sequence[str],
    base: Path,
    taken: Collection[str] = (),
    listeners: list[Listener] | None = None,
    owners: dict[str, str] | None = None,
    capabilities: list[AbstractCapability[Any]] | None = None,
) -> list[PluginTool]:
    """Return the tools of all files, in order. `taken` holds the tool names in use. Raises ConfigError.

    `owners`, tool name -> the file that defines it, gets the tools of these files, and so do `listeners` and
    `capabilities`.
    """
    owners = {} if owners is None else owners
    owners |= dict.fromkeys(taken, OURSELVES)
    tools: list[PluginTool] = []
    for path in paths:
        source = _Source(path, (base / path).resolve())
        with source.siblings_importable():
            module = source.load()
            if listeners is not None:
                listeners += source.listener(module)
            if capabilities is not None:
                capabilities += source.capabilities(module)
            for number, entry in enumerate(source.tools(module)):
                tool = source.as_tool(number, entry)
                for known in _tools_of(tool):
                    source.check(number, known, owners)
                tools.append(as_own(tool))
    return tools


@dataclass(frozen=True, slots=True)
class _Source:
    name: str
    """The path as written in signoff.toml."""
    path: Path

    def fail(self, line: int | None, cause: str, todo: str) -> ConfigError:
        return ConfigError(f"{self.name}{f':{line}' if line else ''}: {cause}; {todo}")

    def load(self) -> ModuleType:
        """Run the file and return its module. Raises ConfigError."""
        if not self.path.is_file():
            raise self.fail(
                None, "there is no such file", "correct [tools] plugins; paths are relative to signoff.toml"
            )
        try:
            return _run(self.path)
        except SyntaxError as error:
            if error.filename != str(self.path):
                raise self._failed(error) from None
            raise self.fail(error.lineno, f"not valid Python: {error.msg}", "correct this line") from None
        except (Exception, SystemExit) as error:
            raise self._failed(error) from None

    def listener(self, module: ModuleType) -> list[Listener]:
        listener: object = getattr(module, LISTENER, None)
        if listener is None:
            return []
        if not callable(listener) or inspect.iscoroutinefunction(listener):
            raise self.fail(None, f"{LISTENER} is not a plain function", f"write def {LISTENER}(event): ...")
        return [cast("Listener", listener)]

    def tools(self, module: ModuleType) -> Sequence[object]:
        """Return the plugin's list `tools`."""
        if not hasattr(module, "tools"):
            if hasattr(module, "capabilities"):
                return ()
            raise self.fail(None, "there is no list named tools", "write tools = [my_function] at its end")
        tools: object = module.tools
        if not isinstance(tools, list | tuple):
            cause = f"tools is a {type(tools).__name__}"
            raise self.fail(self.line_of(None), cause, "write a list: tools = [my_function]")
        return cast("Sequence[object]", tools)

    def capabilities(self, module: ModuleType) -> list[AbstractCapability[Any]]:
        """Return the plugin's list `capabilities`."""
        if not hasattr(module, "capabilities"):
            return []
        listed: object = module.capabilities
        entries = cast("list[object]", listed) if isinstance(listed, list) else [listed]
        line = self.line_of(None, "capabilities")
        for number, entry in enumerate(entries):
            if not isinstance(listed, list) or not isinstance(entry, AbstractCapability):
                what = f"the class {entry.__name__}" if isinstance(entry, type) else f"a {type(entry).__name__}"
                where = f"entry {number + 1} of capabilities" if isinstance(listed, list) else "capabilities"
                raise self.fail(line, f"{where} is {what}", "write a list: capabilities = [MyCapability()]")
        made = cast("list[AbstractCapability[Any]]", entries)
        check_capabilities(f"{self.name}{f':{line}' if line else ''}:", made)
        return made

    def as_tool(self, number: int, entry: object) -> PluginTool:
        if isinstance(entry, Tool | AbstractToolset):
            return cast("PluginTool", entry)
        if not inspect.isroutine(entry):
            kind = f"the class {entry.__name__}" if isinstance(entry, type) else f"a {type(entry).__name__}"
            todo = "write a function, a pydantic_ai.Tool or a toolset"
            raise self.fail(self.line_of(number), f"entry {number + 1} of tools is {kind}", todo)
        try:
            return Tool(cast("Callable[..., Any]", entry))
        except Exception as error:
            cause = f"the function {entry.__name__} cannot be a tool: {' '.join(str(error).split())}"
            raise self.fail(self.line_of(number), cause, "annotate its parameters with simple types") from None

    def check(self, number: int, tool: Tool[Any], owners: dict[str, str]) -> None:
        if owner := owners.get(tool.name):
            cause = f"the tool {tool.name} is already defined by {owner}"
            raise self.fail(self.line_of(number), cause, "give it another name")
        owners[tool.name] = self.name
        approval = (tool.metadata or {}).get("approval")
        if approval is not None and not callable(approval) and approval not in WORDS:
            cause = f"the tool {tool.name} has metadata approval={approval!r}"
            raise self.fail(self.line_of(number), cause, f"write one of {', '.join(WORDS)}, or a function")

    def line_of(self, number: int | None, name: str = "tools") -> int | None:
        """Return the line where the name is assigned, or the line of the entry `number` if it is a literal list."""
        line: int | None = None
        for node in ast.parse(self.path.read_bytes()).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                line = node.lineno
                value = getattr(node, "value", None)
                if number is not None and isinstance(value, ast.List | ast.Tuple) and number < len(value.elts):
                    line = value.elts[number].lineno
        return line

    def _failed(self, error: BaseException) -> ConfigError:
        """Name the last line of this file that was running, even if the error came from a file that it imports."""
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(self.path)), None)
        cause = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
        missing = isinstance(error, ImportError)
        todo = "install what is missing or correct the import" if missing else "correct this, or remove the plugin"
        return self.fail(line, cause, todo)

    @contextmanager
    def siblings_importable(self) -> Generator[None]:
        # Append to sys.path, so that a sibling never shadows a module that other code imports meanwhile.
        folder, before = str(self.path.parent), set(sys.modules)
        sys.path.append(folder)
        try:
            yield
        finally:
            sys.path.reverse()
            sys.path.remove(folder)
            sys.path.reverse()
            _forget({name for name in set(sys.modules) - before if _lies_in(name, self.path.parent)})


def _lies_in(name: str, folder: Path) -> bool:
    """Check whether a module is a file or package directly in this folder. Not deeper: it may contain a whole .venv."""
    file = getattr(sys.modules[name], "__file__", None)
    home = Path(file).parent if file else None
    return home is not None and (home == folder or (home.parent == folder and Path(str(file)).stem == "__init__"))


def _forget(names: set[str]) -> None:
    tops = {name for name in names if "." not in name}
    for name in list(sys.modules):
        if name.partition(".")[0] in tops:
            del sys.modules[name]


def _run(path: Path) -> ModuleType:
    package_name = f"signoff_plugin_{hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]}"
    if package_name not in sys.modules:
        package = ModuleType(package_name)
        package.__path__ = [str(path.parent)]
        sys.modules[package_name] = package
    name = f"{package_name}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _tools_of(entry: PluginTool) -> Sequence[Tool[Any]]:
    """Return the tools whose names are known before a run. PydanticAI checks other toolsets when they are used."""
    if isinstance(entry, Tool):
        return [entry]
    return list(entry.tools.values()) if isinstance(entry, FunctionToolset) else []
