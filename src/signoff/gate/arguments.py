"""A call's validated arguments as the JSON that people see, that rules match and that a decision is bound to.

Nothing that the tool gets may be missing from it, or one yes would cover many calls: fields that a model leaves out
of its own JSON are in here, and what hides its value or can be read only once is refused. The same arguments give the
same JSON in every process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel, RootModel, Secret, SecretBytes, SecretStr
from pydantic.fields import FieldInfo
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool, WrapperToolset
from pydantic_ai.toolsets.abstract import AbstractToolset
from pydantic_core import to_jsonable_python

from signoff.approvals.digest import canonical


def shown(tool: ToolsetTool[Any], args: dict[str, Any]) -> dict[str, Any]:
    """The arguments under the names that the tool's schema has. Raises ValueError for what cannot be shown whole."""
    found = as_json(args)
    # A function with one model for all of its arguments is offered to the model without that wrapping.
    inner = found.get(_only_argument(tool))
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else found


def as_json(value: Any) -> Any:
    if isinstance(value, SecretStr | SecretBytes | Secret):
        raise ValueError(f"{type(cast(object, value)).__name__} hides its value; take plain text, which cards mask")
    if isinstance(value, Iterator):
        raise ValueError("an iterator can be read only once; take a list")
    if isinstance(value, RootModel):
        return as_json(cast("RootModel[Any]", value).root)
    if isinstance(value, BaseModel):
        fields = {_name(name, field): getattr(value, name) for name, field in type(value).model_fields.items()}
        return as_json(fields | (value.model_extra or {}))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return _object(cast("Mapping[Any, Any]", value))
    if isinstance(value, set | frozenset):
        return sorted((as_json(item) for item in cast("set[Any]", value)), key=canonical)
    if isinstance(value, list | tuple):
        return [as_json(item) for item in cast("list[Any]", value)]
    return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="constants")


def innermost(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    while isinstance(inner := getattr(tool, "source_tool", None), ToolsetTool):
        tool = inner  # pyright: ignore[reportUnknownVariableType]
    return tool


def origin_of(tool: ToolsetTool[Any]) -> AbstractToolset[Any]:
    """The toolset that a tool really comes from."""
    toolset = innermost(tool).toolset
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    return toolset


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    # Keys that are no text become text, and two of them may become the same one.
    found = {str(key if isinstance(key, str) else as_json(key)): as_json(item) for key, item in value.items()}
    if len(found) != len(value):
        raise ValueError("two keys of one table are written alike")
    return found


def _name(name: str, field: FieldInfo) -> str:
    alias = field.validation_alias or field.alias
    return alias if isinstance(alias, str) else name


def _only_argument(tool: ToolsetTool[Any]) -> str | None:
    origin, inner = origin_of(tool), innermost(tool)
    name = getattr(inner, "original_name", None) or inner.tool_def.name
    known = origin.tools.get(name) if isinstance(origin, FunctionToolset) else None
    return known.function_schema.single_arg_name if known else None
