"""Checks the arguments of an MCP call against the server's own JSON schema, before anybody is asked.

The server wrote the schema, so it may be hostile. Nothing is fetched for a `$ref`, patterns run in an engine whose time
grows only with the text, and a check ends after a number of steps. If a schema cannot be checked in this way, the call
passes and the server decides: the check saves people a useless card, and is no defence. The library for it comes with
that for MCP.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema_specifications import REGISTRY  # pyright: ignore[reportMissingTypeStubs]
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import SchemaError, SchemaValidator, core_schema
from pydantic_core import ValidationError as Mismatch

from signoff.approvals.digest import canonical

log = logging.getLogger(__name__)

STEPS = 20_000
"""How many keywords of a schema are applied before the check is given up."""
PROBLEMS = 3
"""Most problems that the model is told."""
LENGTH = 300
"""Most characters of one problem: it quotes the value."""


class TooManySteps(Exception):
    """The schema takes too long to check."""


_left: ContextVar[int] = ContextVar("_left")
"""How many steps the running check may still take."""


def fitting(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    """Return the tool with a validator that sends arguments that do not fit its schema back to the model."""
    schema, name = tool.tool_def.parameters_json_schema, tool.tool_def.name

    # Not async: the gate then runs it in a thread of its own, with a time limit.
    def fits(ctx: RunContext[Any], /, **args: Any) -> None:
        if problems := misfits(schema, args, name):
            listed = "\n".join(f"- {problem}" for problem in problems)
            raise ModelRetry(f"The arguments do not fit the schema of {name}:\n{listed}\nCorrect them and try again.")

    return replace(tool, args_validator_func=fits)


def misfits(schema: Mapping[str, Any], args: Mapping[str, Any], name: str = "") -> list[str]:
    """Return why the arguments do not fit; nothing if they fit or if that cannot be found out."""
    problems: list[str] = []
    try:
        dialect = validators.validator_for(schema, default=Draft202012Validator)
        _left.set(STEPS)
        checking = _bounded(dialect)(schema, registry=REGISTRY)
        problems.extend(_described(problem) for problem in islice(checking.iter_errors(args), PROBLEMS))
    except Exception as error:  # other people's schema: everything may be wrong with it
        log.warning("not all arguments of %s are checked, because of its schema: %s", name, type(error).__name__)
    return problems


Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


@lru_cache(maxsize=20)
def _bounded(dialect: Any) -> Any:
    """Return the dialect with keywords that count their steps, and without those that could take forever."""
    keywords: dict[str, Keyword] = dialect.VALIDATORS
    counted = {name: _counted(_HARMLESS.get(name, keyword)) for name, keyword in keywords.items()}
    return cast("Any", validators).extend(dialect, counted)


def _counted(keyword: Keyword) -> Keyword:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:
        _left.set(_left.get() - 1)
        if _left.get() < 0:
            raise TooManySteps
        return keyword(validator, value, instance, schema)

    return counted


@lru_cache(maxsize=1000)
def _expression(pattern: str) -> SchemaValidator | None:
    """Return the pattern for Rust's engine, which does not backtrack; None if that engine does not know its syntax."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def _matches(pattern: str, text: str) -> bool | None:
    """Return whether a text matches; None if that cannot be found out."""
    expression = _expression(pattern)
    if expression is None:
        return None
    try:
        expression.validate_python(text)
    except Mismatch:
        return False
    return True


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and _matches(pattern, instance) is False:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    members = cast("dict[str, Any]", instance)
    for pattern, inner in value.items():
        for name, item in members.items():
            if _matches(pattern, name):
                yield from validator.descend(item, inner, path=name, schema_path=pattern)


def _additional(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    patterns = list(schema.get("patternProperties", {}))
    for name, item in cast("dict[str, Any]", instance).items():
        if name in schema.get("properties", {}) or any(_matches(pattern, name) is not False for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError(f"{name!r} is not an argument of it")
        else:
            yield from validator.descend(item, allowed, path=name)


def _unchecked(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    return None


def _unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        items = cast("list[Any]", instance)
        if len({canonical(item) for item in items}) < len(items):
            yield ValidationError("the list has an item twice")


_HARMLESS: dict[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "uniqueItems": _unique,
    # These two look at the same values again and again, with patterns and without counting.
    "unevaluatedProperties": _unchecked,
    "unevaluatedItems": _unchecked,
}
"""Keyword -> what is done in its place."""


def _described(problem: ValidationError) -> str:
    where = ".".join(str(part) for part in problem.absolute_path)
    text = f"{where}: {problem.message}" if where else problem.message
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}..."
