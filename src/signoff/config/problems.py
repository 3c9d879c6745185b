"""Describes the mistakes in signoff.toml: the line, the key, and what to write instead.

Pure: turns the errors of tomllib and pydantic into lines of text. `Hints` say which values each key takes.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence

from pydantic_core import ErrorDetails

from signoff.config.toml_lines import TomlLines

Hints = dict[str, dict[str, str]]
"""Table -> key -> what to write for it."""

_SYNTAX = {
    "Invalid value": "put text in quotes, close lists with ], and write true and false in lower case",
    "Cannot overwrite a value": "this key is written twice, keep one of them",
    "Cannot declare": "this table is written twice, put its keys together (only [[rules]] may repeat)",
    "Expected '=' after a key": 'write key = "value"',
    "Expected newline": "write one key per line, and put text in quotes",
    "Expected ']": "close the bracket",
    "Unclosed array": "close the list with ]",
    "Unclosed inline table": "close the table with } on the same line",
    "Expected \"'": "close the text with its quote",
    "Unterminated string": "close the text with its quote",
    "Illegal character": "close the text with its quote on the same line",
    "Unescaped '\\'": "write \\\\ for a backslash, or put the text in single quotes",
}

_NAMED = {"mcp": "up to 20 of a-z, 0-9 and _, with a letter first"}
"""Table that may appear several times under different names -> the form of such a name."""


def describe_syntax(error: Exception, text: str) -> str:
    """Describe a syntax error as `LINE: problem; hint`.

    tomllib gives the line only inside its message, and gives none for an error at the end of the text.
    """
    message = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    match = re.search(r" \((?:at line (\d+), column \d+|at end of document)\)$", message)
    line = int(match[1]) if match and match[1] else text.rstrip().count("\n") + 1
    what = message[: match.start()] if match else message
    hint = next((hint for start, hint in _SYNTAX.items() if what.startswith(start)), "check the TOML syntax")
    return f"{line}: {what}; {hint}"


def describe_problems(errors: Sequence[ErrorDetails], text: str, hints: Hints) -> list[str]:
    """Return one line of text per problem, in the order of the file."""
    lines = TomlLines(text)
    # A list with a bad entry is reported twice, for the entry and for the list. Keep the entry, which says more.
    inner = {error["loc"][:length] for error in errors for length in range(len(error["loc"]))}
    problems = [(lines.find(e["loc"]), _problem(e, hints)) for e in errors if e["loc"] not in inner]
    return [f"{line}: {what}" for line, what in sorted(problems, key=lambda problem: problem[0])]


def _problem(error: ErrorDetails, hints: Hints) -> str:
    section, rest = str(error["loc"][0]), list(error["loc"][1:])
    where = _table(section)
    if rest and isinstance(rest[0], int):
        where = f"{where} number {rest[0] + 1}"
        rest = rest[1:]
    if rest and section in _NAMED:
        if rest[-1] == "[key]":
            return f"{_show(rest[0])} cannot be the NAME of {where}; write {_NAMED[section]}"
        if len(rest) == 1 and error["type"] == "model_type":
            return f"{_show(rest[0])} is outside of any table; move it under {where}"
        where = f"[{section}.{rest[0]}]"
        rest = rest[1:]
    if error["type"] == "extra_forbidden":
        if len(rest) > 1:
            return f"{where} {rest[0]} has no key {_show(rest[-1])}; write {hints[section][str(rest[0])]}"
        if rest:
            return _unknown_key(str(rest[0]), where, section, hints)
        return _unknown_table(section, hints, is_table=isinstance(error["input"], dict | list))
    if not rest:
        if error["type"] == "value_error":
            return f"{where} {error['msg'].removeprefix('Value error, ')}"
        return f"{section} is {_show(error['input'])}; write a table that starts with {_table(section)}"
    hint = hints[section][str(rest[0])]
    if error["type"] == "missing":
        return f"{where} has no {'.'.join(map(str, rest))}; write {hint}"
    name = ".".join(part for part in rest if isinstance(part, str))
    verb = "has the entry" if isinstance(rest[-1], int) else "is"
    return f"{where} {name} {verb} {_show(error['input'])}; write {hint}"


def _unknown_key(key: str, where: str, section: str, hints: Hints) -> str:
    known = hints[section]
    if home := _home(key, hints):
        return f"{where} has no key {_show(key)}; write it under {_table(home)}"
    if near := difflib.get_close_matches(key, known, n=1):
        return f"{where} has no key {_show(key)}; write {near[0]}"
    return f"{where} has no key {_show(key)}; write one of {', '.join(known)}"


def _unknown_table(name: str, hints: Hints, *, is_table: bool) -> str:
    if not is_table and (home := _home(name, hints)):
        return f"{_show(name)} is outside of any table; move it under {_table(home)}"
    if near := difflib.get_close_matches(name, hints, n=1):
        return f"there is no table {_show(name)}; write {_table(near[0])}"
    return f"there is no table {_show(name)}; write one of {', '.join(_table(section) for section in hints)}"


def _home(key: str, hints: Hints) -> str | None:
    return next((section for section, known in hints.items() if key in known), None)


def _table(section: str) -> str:
    if section in _NAMED:
        return f"[{section}.NAME]"
    return "[[rules]]" if section == "rules" else f"[{section}]"


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
