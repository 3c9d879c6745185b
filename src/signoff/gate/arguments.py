"""The arguments of a call as people and rules see them, and as the tool gets them: both come from one JSON text.

`fix` dumps the validated arguments, validates that JSON with the tool's own validator, and gives the *second* result
to the tool. So a tool never gets anything that the card and the rules did not see. If dumping the second result gives
other JSON, the call is refused.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, cast

from pydantic import AliasChoices, BaseModel, RootModel, Secret, SecretBytes, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool, WrapperToolset
from pydantic_ai.toolsets.abstract import AbstractToolset
from pydantic_core import to_jsonable_python

from signoff.approvals.digest import canonical, fingerprint
from signoff.dataclass import dataclass

BytesMode = Literal["utf8", "base64"]


@dataclass(frozen=True, slots=True)
class Fixed:
    """Arguments that survive a round trip through JSON unchanged."""

    json: dict[str, Any]
    """People see this, rules match it and digests bind it. Nested keys are sorted, and the tool gets that order too."""
    args: dict[str, Any]
    """The tool gets this: `json`, validated."""


def fix(tool: ToolsetTool[Any], args: dict[str, Any], context: Any = None) -> Fixed:
    """Make sure that the tool runs with exactly the JSON that is shown. Raises ValueError if that is not possible."""
    problem = ""
    tried: list[str] = []
    for mode in cast("tuple[BytesMode, ...]", ("utf8", "base64")):
        text = _dump(tool, args, mode)
        if text is None or text in tried:
            continue
        tried.append(text)
        shown = _in_order(tool, json.loads(text))
        # A default need not fit its argument's type (`name: str = None`), so also try to leave defaults to the tool.
        for leave_defaults in (False, True):
            given = _without_defaults(shown, tool.tool_def.parameters_json_schema) if leave_defaults else shown
            try:
                again = tool.args_validator.validate_json(json.dumps(given), context=context)
            except ValidationError as error:
                problem = problem or f"the tool does not accept them as JSON: {first_problem(error)}"
                continue
            if _is_same(_dump(tool, again, mode), text):
                return Fixed(shown, again)
            problem = "validating them a second time gives other arguments"
    raise ValueError(problem or "bytes that are not text")


def as_json(value: Any, mode: BytesMode = "base64") -> Any:
    """Return the value as plain JSON. Raises ValueError for values that hide something or can be read only once."""
    if value is None or type(value) in (bool, int) or (type(value) is str and value.isascii()):
        return value
    if isinstance(value, SecretStr | SecretBytes | Secret):
        raise ValueError(f"{type(cast(object, value)).__name__} hides its value; take plain text, which cards mask")
    if isinstance(value, Iterator):
        raise ValueError("an iterator can be read only once; take a list")
    if isinstance(value, bytes | bytearray):
        return value.decode() if mode == "utf8" else base64.urlsafe_b64encode(value).decode()
    if isinstance(value, RootModel):
        return as_json(cast("RootModel[Any]", value).root, mode)
    if isinstance(value, BaseModel):
        fields = {_name(name, field): getattr(value, name) for name, field in type(value).model_fields.items()}
        return as_json(fields | (value.model_extra or {}), mode)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        known: dict[str, FieldInfo] = getattr(type(value), "__pydantic_fields__", {})
        names = {field.name: field.name for field in dataclasses.fields(value)}
        names |= {name: _name(name, field) for name, field in known.items()}
        return {shown: as_json(getattr(value, name), mode) for name, shown in names.items()}
    if isinstance(value, Mapping):
        return _object(cast("Mapping[Any, Any]", value), mode)
    if isinstance(value, AbstractSet):
        return sorted((as_json(item, mode) for item in cast("AbstractSet[Any]", value)), key=canonical)
    if isinstance(value, list | tuple | deque) or (isinstance(value, Sequence) and not isinstance(value, str | range)):
        return [as_json(item, mode) for item in cast("Sequence[Any]", value)]
    return to_jsonable_python(value, inf_nan_mode="constants")


def seal_of(args: dict[str, Any]) -> str:
    """Return a fingerprint of arguments on their way from the gate to the tool."""
    return fingerprint(as_json(args))


def innermost(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    while isinstance(inner := getattr(tool, "source_tool", None), ToolsetTool):
        tool = inner  # pyright: ignore[reportUnknownVariableType]
    return tool


def origin_of(tool: ToolsetTool[Any]) -> AbstractToolset[Any]:
    """Return the toolset that a tool really comes from, without wrappers."""
    toolset = innermost(tool).toolset
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    return toolset


def _dump(tool: ToolsetTool[Any], args: dict[str, Any], mode: BytesMode) -> str | None:
    """Return canonical JSON with the names of the tool's schema; None if bytes are not text in this mode."""
    try:
        dumped = as_json(args, mode)
    except UnicodeDecodeError:
        return None
    # If a function's only argument is an object, its schema offers that object's fields as the arguments.
    inner = dumped.get(_only_argument(tool))
    return canonical(inner if isinstance(inner, dict) else dumped)


def _in_order(tool: ToolsetTool[Any], args: dict[str, Any]) -> dict[str, Any]:
    """Put the arguments into the schema's order, then the rest by name, so that the model cannot choose the order."""
    own = [name for name in tool.tool_def.parameters_json_schema.get("properties", {}) if name in args]
    return {name: args[name] for name in [*own, *(name for name in args if name not in own)]}


def _is_same(one: str | None, other: str) -> bool:
    """Whether two texts are the same JSON. 1 and 1.0 count as the same number."""
    if one is None or one == other:
        return one == other
    return canonical(_numbers(json.loads(one))) == canonical(_numbers(json.loads(other)))


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_numbers(item) for item in cast("list[Any]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _without_defaults(value: Any, schema: Any, definitions: Any = None) -> Any:
    """Return the JSON without values that equal their default in the schema, at any depth."""
    if not isinstance(schema, dict):
        return value  # `true` and `false` are schemas, too
    schema = cast("dict[str, Any]", schema)
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    schema = definitions.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    if isinstance(value, list):
        items = schema.get("items")
        plain = isinstance(items, dict)
        return [_without_defaults(item, items, definitions) if plain else item for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    schema = next((option for option in _options(schema, definitions) if "properties" in option), schema)
    known: dict[str, Any] = schema.get("properties", {})
    kept: dict[str, Any] = {}
    for name, item in cast("dict[str, Any]", value).items():
        field = known.get(name, {})
        if not isinstance(field, dict) or "default" not in field or canonical(field["default"]) != canonical(item):
            kept[name] = _without_defaults(item, field, definitions)
    return kept


def _options(schema: Any, definitions: Any) -> list[Any]:
    options = [cast("dict[str, Any]", one) for one in schema.get("anyOf", ()) if isinstance(one, dict)]
    return [definitions.get(str(one.get("$ref", "")).rpartition("/")[2], one) for one in options]


def _object(value: Mapping[Any, Any], mode: BytesMode) -> dict[str, Any]:
    # Keys that are not text become text, and two different keys may become the same text.
    texts = {str(key if isinstance(key, str) else as_json(key, mode)): as_json(v, mode) for key, v in value.items()}
    if len(texts) != len(value):
        raise ValueError("two keys of one table are written alike")
    return texts


def _name(name: str, field: FieldInfo) -> str:
    """Return the name of the field in the tool's schema."""
    alias = field.validation_alias or field.alias
    if isinstance(alias, AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), None)
    return alias if isinstance(alias, str) else name


def _only_argument(tool: ToolsetTool[Any]) -> str | None:
    origin, inner = origin_of(tool), innermost(tool)
    name = getattr(inner, "original_name", None) or inner.tool_def.name
    known = origin.tools.get(name) if isinstance(origin, FunctionToolset) else None
    return known.function_schema.single_arg_name if known else None


def first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else problem["msg"]
