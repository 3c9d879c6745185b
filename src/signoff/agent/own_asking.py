"""Whether a tool's own code asks for approval: it raises `ApprovalRequired` for some arguments, without declaring it.

For the lines that sum up what asks, before anything runs. The code is only read: the tool's function, the functions
inside it, and the functions of the same module that it calls. This module decides nothing: the gate asks when the tool
raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from pydantic_ai import ApprovalRequired, Tool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool

RAISED = ApprovalRequired.__name__


def asks_by_itself(function: object) -> bool:
    """Whether the code of this function names `ApprovalRequired`."""
    function = getattr(function, "__func__", function)
    waiting = [function] if isinstance(function, FunctionType) else []
    read: set[FunctionType] = set()
    while waiting:
        one = waiting.pop()
        read.add(one)
        for name in _names(one.__code__):
            if name == RAISED:
                return True
            called = one.__globals__.get(name)
            if isinstance(called, FunctionType) and called.__module__ == one.__module__ and called not in read:
                waiting.append(called)
    return False


def asking_tools(tools: Iterable[Tool[Any] | ToolsetTool[Any]]) -> frozenset[str]:
    """Return the names of the tools whose own code asks."""
    return frozenset(tool.tool_def.name for tool in tools if asks_by_itself(_function(tool)))


def asking_tools_of(entry: Tool[Any] | AbstractToolset[Any]) -> frozenset[str]:
    """Return the same for a tool or for a toolset whose tools are known before it runs."""
    if isinstance(entry, Tool):
        return asking_tools([entry])
    return asking_tools(entry.tools.values()) if isinstance(entry, FunctionToolset) else frozenset()


def _function(tool: Tool[Any] | ToolsetTool[Any]) -> object:
    if isinstance(tool, Tool):
        return tool.function
    # A tool of a function toolset calls its function through a bound method of the function's schema.
    schema = getattr(getattr(tool, "call_func", None), "__self__", None)
    return getattr(schema, "function", None)


def _names(code: CodeType) -> Iterator[str]:
    """Yield every global name and attribute in the code, functions inside it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
