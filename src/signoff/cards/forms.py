"""Turn arguments into a form, and the submitted form back into arguments.

Few and simple arguments get one field each, in the tool's own order; otherwise one field holds their JSON. A text
field would change hidden characters, or blanks at either end of a value. Such values go into the JSON, where hidden
characters are escapes. Line breaks at the end of a text, which most files have, are left out of the field and put
back. Pure functions: this module knows limits, but no modals.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from signoff.approvals.model import ApprovalRequest, JsonObject
from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import is_hidden

FIELDS = 5
FIELD_BUDGET = 4000
LABEL_BUDGET = 45
WHOLE = "arguments"
"""The one field that holds the JSON of all arguments."""
_ONE_WORD = lazy_pattern(r"\S{0,30}")
_PROSE = lazy_pattern(
    r"(?i)content|text|body|message|comment|description|note|reason|summary|prompt|script|code|query|sql"
)
"""Names of arguments that may have several lines, even if this value has only one word."""


class NotReadable(Exception):
    """The typed text is not a set of arguments. The message says why, without repeating the text."""


@dataclass(frozen=True, slots=True)
class Field:
    key: str
    """Our own text, without the argument's name: the name's position in the alphabet identifies the argument."""
    label: str
    text: str
    hint: str = ""
    long: bool = False
    """Whether the field has several lines."""


@dataclass(frozen=True, slots=True)
class Form:
    fields: tuple[Field, ...]
    names: tuple[str, ...]
    """The arguments in the order of the fields; empty if one field holds them all."""

    def read(self, typed: Mapping[str, str], before: JsonObject) -> JsonObject:
        """Return the arguments that were typed. Raises NotReadable."""
        if set(typed) != {field.key for field in self.fields}:
            raise NotReadable("The form does not fit the call.")
        if not self.names:
            return _object(typed[WHOLE])
        return {
            name: _value(typed[field.key], before[name], field.label)
            for name, field in zip(self.names, self.fields, strict=True)
        }


def form_of(request: ApprovalRequest) -> Form | None:
    """Build the form for the arguments of a call; None if they are too long for any form."""
    return form_for(request.call.args, request.description.ordered(request.call.args), request.diffed)


def form_for(args: JsonObject, order: Sequence[str] = (), file: str = "") -> Form | None:
    """Build the form for these arguments; None if they are too long for any form.

    `order`: all names in the tool's own order, or none for alphabetical order. `file`: the argument that is a file's
    content.
    """
    names = tuple(order) or tuple(sorted(args))
    if 0 < len(names) <= FIELDS and all(_simple(name, args[name]) for name in names):
        keys = {name: f"{WHOLE}-{number}" for number, name in enumerate(sorted(names))}
        fields = [_field(keys[name], name, args[name], is_prose=bool(file) and name == file) for name in names]
        return Form(tuple(fields), names)
    try:
        text = _json_text(args)
        # Check the length before sorting, which is slow for long arguments.
        if order and len(text) <= FIELD_BUDGET:
            values = json.loads(text)
            text = json.dumps({name: values[name] for name in names}, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError):
        return None
    # Check the length before escaping, which is slow and only makes the text longer.
    if len(text) > FIELD_BUDGET or not _fits(text := _escaped(text), FIELD_BUDGET):
        return None
    return Form((Field(WHOLE, "Arguments", text, "All arguments, as one JSON object", long=True),), ())


def written(args: JsonObject) -> str:
    """Return the arguments as JSON with hidden characters escaped, so that a field or an editor does not change it."""
    return _escaped(_json_text(args))


def _field(key: str, name: str, value: Any, *, is_prose: bool) -> Field:
    if isinstance(value, str):
        text = value.rstrip("\n")
        is_long = is_prose or not _ONE_WORD.fullmatch(value) or bool(_PROSE.search(name))
        return Field(key, name, text, _kept(len(value) - len(text)), is_long)
    return Field(key, name, json.dumps(value), "true or false" if isinstance(value, bool) else "A number")


def _kept(breaks: int) -> str:
    if not breaks:
        return ""
    return "The line break at its end is kept" if breaks == 1 else f"The {breaks} line breaks at its end are kept"


def _simple(name: str, value: Any) -> bool:
    """Whether a text field returns this argument unchanged."""
    if (
        not name.strip()
        or name != name.strip()
        or not _fits(name, LABEL_BUDGET)
        or any(map(_odd, name))
        or "\n" in name
    ):
        return False
    if isinstance(value, str):
        text = value.rstrip("\n")
        is_plain = text == text.strip() and bool(text or not value)
        return is_plain and _fits(value, FIELD_BUDGET) and not any(map(_odd, set(value)))
    return isinstance(value, int | float) and len(str(value)) <= 100


def _odd(char: str) -> bool:
    return char in "\r\t" or is_hidden(char)


def _value(typed: str, before: Any, label: str) -> Any:
    if isinstance(before, str):
        text, breaks = typed.replace("\r\n", "\n"), len(before) - len(before.rstrip("\n"))
        return text.rstrip("\n") + "\n" * breaks if breaks else text
    wanted = "true or false" if isinstance(before, bool) else "a number"
    try:
        value = _parsed(typed)
    except (ValueError, RecursionError):
        value = None
    if isinstance(before, bool) != isinstance(value, bool) or not isinstance(value, int | float):
        raise NotReadable(f"{label} must be {wanted}.")
    return value


def _object(typed: str) -> JsonObject:
    try:
        value = _parsed(typed)
    except json.JSONDecodeError as error:
        raise NotReadable(f"This is not JSON: {error.msg}, line {error.lineno}, column {error.colno}.") from error
    except (ValueError, RecursionError) as error:
        raise NotReadable(f"This JSON cannot be used: {str(error) or 'it is nested too deep'}.") from error
    if not isinstance(value, dict):
        raise NotReadable("The arguments must be one JSON object, in braces.")
    return cast("JsonObject", value)


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_members, parse_constant=_constant)


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        # Nobody can see which of two values with one name would run.
        raise ValueError("a name appears twice")
    return members


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _json_text(args: JsonObject) -> str:
    return json.dumps(dict(args), sort_keys=True, ensure_ascii=False, indent=2, allow_nan=False)


def _escaped(text: str) -> str:
    return "".join(json.dumps(char)[1:-1] if is_hidden(char) else char for char in text)


def _fits(text: str, budget: int) -> bool:
    """Whether the text fits, counted as Discord's clients do: a code point above U+FFFF counts as two."""
    return len(text) <= budget and len(text) + sum(1 for char in text if ord(char) > 0xFFFF) <= budget
