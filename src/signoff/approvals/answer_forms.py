"""Makes the form of an inquiry from a JSON schema: that of a tool's result, or of an MCP server's elicitation.

A form has texts, numbers, yes or no, and choices. A value of another type is typed as JSON. Other people wrote the
schema, so everything may be wrong with it. Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from signoff.approvals.inquiries import AnswerField, FieldKind, Inquiry, Json, Option, text_of
from signoff.approvals.large_values import is_large

MOST_FIELDS = 25
MOST_OPTIONS = 100
LONGEST = 20_000
"""Most characters of a question with its form. Nobody would read more."""
TOO_LONG = f"it has more than {LONGEST:,} characters"
MOST_READ = 5 * LONGEST
"""Most characters of a question and a schema that are read at all. Reading megabytes would stop everybody."""
ONLY = "value"
"""The name of the one field of an answer that is no object."""


class Unaskable(ValueError):
    """This schema cannot be made into a form. The message says why."""


def inquire(words: str, schema: Mapping[str, Json], *, server: str = "", tells_all: bool = False) -> Inquiry:
    """Return the inquiry with a form for this JSON schema. Raises Unaskable."""
    if is_large([words, schema], MOST_READ):
        raise Unaskable(TOO_LONG)
    try:
        only = not _is_object(schema)
        fields = (_read(ONLY, {"title": "Answer", **schema}, schema, required=True),) if only else _fields(schema)
    except (TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        raise Unaskable("its schema cannot be read") from error
    if len({field.name for field in fields}) != len(fields) or len(fields) > MOST_FIELDS:
        raise Unaskable(f"it has more than {MOST_FIELDS} fields")
    inquiry = Inquiry(words, fields, server, only, tells_all)
    if _size(inquiry) > LONGEST:
        raise Unaskable(TOO_LONG)
    return inquiry


def _size(inquiry: Inquiry) -> int:
    """Return how many characters it takes to store the inquiry. Raises Unaskable if it could not be read again."""
    try:
        text = json.dumps(inquiry.dump(), allow_nan=False, ensure_ascii=False)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise Unaskable("its schema cannot be stored") from error
    return len(text)


def _is_object(schema: Mapping[str, Json]) -> bool:
    return isinstance(schema.get("properties"), Mapping) and schema.get("type", "object") == "object"


def _fields(schema: Mapping[str, Json]) -> tuple[AnswerField, ...]:
    required = schema.get("required") or ()
    return tuple(_read(str(name), each, schema, name in required) for name, each in schema["properties"].items())


def _read(name: str, schema: Mapping[str, Json], root: Mapping[str, Json], required: bool) -> AnswerField:
    """Return the field for one value."""
    schema = _plain(schema, root)
    kind, options = _kind(schema, root)
    least, most = (_bound(schema, names) for names in _BOUNDS[kind])
    one = kind is FieldKind.CHOICES and most == 1
    return AnswerField(
        name,
        FieldKind.CHOICE if one else kind,
        str(schema.get("title") or ""),
        str(schema.get("description") or ""),
        required,
        options,
        schema.get("default"),
        least,
        most,
        listed=one,
        shape=str(schema.get("format") or "") if kind is FieldKind.TEXT else "",
    )


def _plain(schema: Mapping[str, Json], root: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the schema without a reference, and without the "or nothing" of an optional value."""
    for _ in range(5):
        if isinstance(reference := schema.get("$ref"), str):
            kept = {name: value for name, value in schema.items() if name != "$ref"}
            schema = {**root["$defs"][reference.removeprefix("#/$defs/")], **kept}
        elif len(some := [one for one in schema.get("anyOf") or () if one.get("type") != "null"]) == 1:
            kept = {name: value for name, value in schema.items() if name != "anyOf"}
            schema = {**some[0], **kept}
    return schema


def _kind(schema: Mapping[str, Json], root: Mapping[str, Json]) -> tuple[FieldKind, tuple[Option, ...]]:
    """Return the kind of the field, and its options if it is a choice."""
    if options := _options(schema):
        return FieldKind.CHOICE, options
    items: Json = schema.get("items")
    if (
        schema.get("type") == "array"
        and isinstance(items, dict)
        and (options := _options(_plain(cast("dict[str, Json]", items), root)))
    ):
        return FieldKind.CHOICES, options
    return _TYPES.get(str(schema.get("type")), FieldKind.JSON), ()


def _options(schema: Mapping[str, Json]) -> tuple[Option, ...]:
    """Return the options of a choice; none if the schema is no choice of texts and numbers."""
    listed: list[Json] = schema.get("oneOf") or schema.get("anyOf") or []
    titled = [
        Option(one["const"], str(one.get("title") or one["const"]), str(one.get("description") or ""))
        for one in listed
        if "const" in one
    ]
    values: Sequence[Json] = [schema["const"]] if "const" in schema else schema.get("enum") or ()
    names = schema.get("enumNames") or ()
    names = names if len(names) == len(values) else values
    options = titled or [Option(value, str(name)) for value, name in zip(values, names, strict=True)]
    is_plain = all(isinstance(one.value, str | int | float) for one in options)
    if not options or len(titled) != len(listed) or not is_plain:
        return ()
    if len(options) > MOST_OPTIONS or len({text_of(one.value) for one in options}) != len(options):
        raise Unaskable(f"a choice has more than {MOST_OPTIONS} options, or one option twice")
    return tuple(options)


def _bound(schema: Mapping[str, Json], names: Sequence[str]) -> float | None:
    given = next((schema[name] for name in names if name in schema), None)
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


_TYPES = {
    "string": FieldKind.TEXT,
    "number": FieldKind.NUMBER,
    "integer": FieldKind.INTEGER,
    "boolean": FieldKind.YES_NO,
}
_NONE: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
_BOUNDS = {
    FieldKind.TEXT: (("minLength",), ("maxLength",)),
    FieldKind.NUMBER: (("minimum",), ("maximum",)),
    FieldKind.INTEGER: (("minimum",), ("maximum",)),
    FieldKind.CHOICES: (("minItems",), ("maxItems",)),
    FieldKind.YES_NO: _NONE,
    FieldKind.CHOICE: _NONE,
    FieldKind.JSON: _NONE,
}
"""Kind -> the schema's words for the least and for the most."""
