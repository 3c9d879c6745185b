"""Application commands as a bot sends them, checked against Discord's limits.

This module checks only the form: names, sizes, and which fields an option may have. It adds every problem to the form's
errors, so that a bot gets all of them at once, as from Discord. `rest.commands` stores commands.
"""

import re
from typing import Any, cast

from discord_sandbox.apierrors import FormErrors
from discord_sandbox.model import Json
from discord_sandbox.reading import fields, items

Path = tuple[str | int, ...]

CHAT_INPUT, ON_USER, ON_MESSAGE = 1, 2, 3
MOST_COMMANDS = {CHAT_INPUT: 100, ON_USER: 15, ON_MESSAGE: 15}
SUB_COMMAND, GROUP, STRING, INTEGER, CHANNEL, NUMBER, ATTACHMENT = 1, 2, 3, 4, 7, 10, 11
NESTED = (SUB_COMMAND, GROUP)
WITH_CHOICES = (STRING, INTEGER, NUMBER)
MOST_CHARACTERS = 8000
_NAME = re.compile(r"^[-_'\w]+$", re.UNICODE)
_ONLY_FOR = {
    "choices": WITH_CHOICES,
    "min_value": (INTEGER, NUMBER),
    "max_value": (INTEGER, NUMBER),
    "min_length": (STRING,),
    "max_length": (STRING,),
    "channel_types": (CHANNEL,),
    "options": NESTED,
}


def without_nulls(value: Any) -> Any:
    """Return the same JSON without fields that are null. Discord treats a null field as absent."""
    if isinstance(value, dict):
        return {key: without_nulls(entry) for key, entry in cast(Json, value).items() if entry is not None}
    if isinstance(value, list):
        return [without_nulls(entry) for entry in cast(list[Any], value)]
    return value


def check_all(bodies: list[Json], errors: FormErrors) -> None:
    """Check each command of a bot, and that no two commands of the same type have the same name."""
    seen: set[tuple[int, Any]] = set()
    for index, body in enumerate(bodies):
        check(body, errors, (index,))
        key = (kind_of(body), body.get("name"))
        if key in seen:
            errors.add((index,), "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
        seen.add(key)


def kind_of(body: Json) -> int:
    return body.get("type", CHAT_INPUT)


def check(body: Json, errors: FormErrors, path: Path = ()) -> None:
    """Check one command. `path` is its place in the request."""
    kind = kind_of(body)
    if kind not in MOST_COMMANDS:
        errors.add((*path, "type"), "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3}.")
        return
    errors.length((*path, "name"), body.get("name"), 1, 32)
    if kind == CHAT_INPUT:
        _check_name(body, errors, path)
        errors.length((*path, "description"), body.get("description"), 1, 100)
        _check_options(body, errors, path, allowed=range(SUB_COMMAND, ATTACHMENT + 1))
    else:
        if body.get("description"):
            message = "Context menu commands cannot have description"
            errors.add((*path, "description"), "APPLICATION_COMMAND_DESCRIPTION_INVALID", message)
        if body.get("options"):
            message = "Context menu commands cannot have options"
            errors.add((*path, "options"), "APPLICATION_COMMAND_OPTIONS_INVALID", message)
    _check_translations(body, errors, path, name=32)
    if size(body) > MOST_CHARACTERS:
        errors.add(path, "APPLICATION_COMMAND_TOO_LARGE", f"Command exceeds maximum size ({MOST_CHARACTERS})")


def size(part: Json) -> int:
    """Count characters as Discord does: names, descriptions and values, with the longest translation of each field."""
    total = sum(_longest(part, key) for key in ("name", "description"))
    if isinstance(part.get("value"), str):
        total += len(part["value"])
    return total + sum(size(inner) for key in ("options", "choices") for inner in items(part.get(key)))


def _longest(part: Json, key: str) -> int:
    texts = [part.get(key), *fields(part.get(f"{key}_localizations")).values()]
    return max(len(text) if isinstance(text, str) else 0 for text in texts)


def _check_name(part: Json, errors: FormErrors, path: Path) -> None:
    name = part.get("name")
    if isinstance(name, str) and name and (not _NAME.match(name) or name != name.lower()):
        errors.add((*path, "name"), "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")


def _check_translations(part: Json, errors: FormErrors, path: Path, *, name: int) -> None:
    for key, most in (("name_localizations", name), ("description_localizations", 100)):
        for locale, text in fields(part.get(key)).items():
            errors.length((*path, key, locale), text, 1, most)


def _check_options(part: Json, errors: FormErrors, path: Path, *, allowed: range) -> None:
    options = items(part.get("options"))
    if len(options) > 25:
        errors.add((*path, "options"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    names = [option.get("name") for option in options]
    optional_seen = False
    for index, option in enumerate(options):
        where = (*path, "options", index)
        kind = option.get("type")
        if kind not in allowed:
            listed = ", ".join(map(str, allowed))
            message = f'Value of field "type" must be one of ({listed}).'
            errors.add((*where, "type"), "UNION_TYPE_CHOICES", message)
            continue
        _check_option(option, errors, where)
        if option.get("name") in names[:index]:
            errors.add(where, "APPLICATION_COMMAND_OPTIONS_NAME_INVALID", "Option name must be unique")
        if (kind in NESTED) != (options[0].get("type") in NESTED):
            message = "Sub-command and sub-command group option types are mutually exclusive to all other types"
            errors.add(where, "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", message)
        if kind in NESTED:
            continue
        if option.get("required") and optional_seen:
            message = "Required options must be placed before non-required options"
            errors.add(where, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message)
        optional_seen = optional_seen or not option.get("required")


def _check_option(option: Json, errors: FormErrors, path: Path) -> None:
    kind = option["type"]
    errors.length((*path, "name"), option.get("name"), 1, 32)
    _check_name(option, errors, path)
    errors.length((*path, "description"), option.get("description"), 1, 100)
    _check_translations(option, errors, path, name=32)
    for key, kinds in _ONLY_FOR.items():
        if option.get(key) and kind not in kinds:
            message = f"{key} cannot be configured for this type of option"
            errors.add((*path, key), "APPLICATION_COMMAND_OPTIONS_FIELD_INVALID", message)
    _check_autocomplete(option, errors, path)
    _check_bounds(option, errors, path)
    _check_choices(option, errors, path)
    if kind == GROUP:
        _check_options(option, errors, path, allowed=range(SUB_COMMAND, SUB_COMMAND + 1))
    elif kind == SUB_COMMAND:
        _check_options(option, errors, path, allowed=range(STRING, ATTACHMENT + 1))


def _check_autocomplete(option: Json, errors: FormErrors, path: Path) -> None:
    if not option.get("autocomplete"):
        return
    where, code = (*path, "autocomplete"), "APPLICATION_COMMAND_AUTOCOMPLETE_INVALID"
    if option["type"] not in WITH_CHOICES:
        errors.add(where, code, "Autocomplete cannot be configured for this type of option")
    elif option.get("choices"):
        errors.add(where, code, "Autocomplete cannot be used together with choices")


def _check_bounds(option: Json, errors: FormErrors, path: Path) -> None:
    for key, least in (("min_length", 0), ("max_length", 1)):
        value = option.get(key)
        if value is not None and (not isinstance(value, int) or not least <= value <= 6000):
            errors.add((*path, key), "NUMBER_TYPE_RANGE", f"int value should be between {least} and 6000.")
    for low, high in (("min_length", "max_length"), ("min_value", "max_value")):
        least, most = option.get(low), option.get(high)
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            errors.add((*path, low), "BASE_TYPE_BAD_VALUE", f"{low} must not be greater than {high}")


def _check_choices(option: Json, errors: FormErrors, path: Path) -> None:
    choices = items(option.get("choices"))
    if len(choices) > 25:
        errors.add((*path, "choices"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    names = [choice.get("name") for choice in choices]
    for index, choice in enumerate(choices):
        where, value = (*path, "choices", index), choice.get("value")
        errors.length((*where, "name"), choice.get("name"), 1, 100)
        if choice.get("name") in names[:index]:
            code = "APPLICATION_COMMAND_OPTIONS_CHOICE_NAME_EXISTS"
            errors.add((*where, "name"), code, "Option choice name already exists")
        if option["type"] == STRING:
            errors.length((*where, "value"), value, 1, 100)
        elif isinstance(value, bool) or not isinstance(value, int if option["type"] == INTEGER else int | float):
            errors.add((*where, "value"), "NUMBER_TYPE_COERCE", f'Value "{value}" is not a number.')
        _check_translations(choice, errors, where, name=100)
