"""Finds the line of each key in a TOML text, for error messages: tomllib does not report it.

Works only for text that tomllib has accepted. Does not know what the keys mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

from signoff.text.patterns import lazy_pattern

Path = tuple[str | int, ...]

_BLANK = lazy_pattern(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = lazy_pattern(r"""[ \t]*("(?:\\.|[^"\\])*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*""")
_STRING = lazy_pattern(
    r'"""(?:\\.|[^\\])*?"{3,5}(?!")' r"|'''.*?'{3,5}(?!')" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = lazy_pattern(r"[^,\]}\n#]*")


class TomlLines:
    """`find(("rules", 1, "when"))` returns the line of the second rule's `when`, or of the nearest table around it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        """Path of an array of tables -> number of its `[[...]]` headers so far."""
        self._read()

    def find(self, path: Sequence[str | int]) -> int:
        for length in range(len(path), 0, -1):
            if line := self._lines.get(tuple(path[:length])):
                return line
        return 1

    def _read(self) -> None:
        table: Path = ()
        while self._skip_blank():
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        many = self._text.startswith("[[", self._at)
        line = self._line()
        self._at += 2 if many else 1
        names = self._key()
        self._at += 2 if many else 1
        path: Path = ()
        for number, name in enumerate(names):
            path += (name,)
            if many and number == len(names) - 1:
                self._tables[path] = self._tables.get(path, 0) + 1
            self._lines.setdefault(path, line)
            if path in self._tables:
                path += (self._tables[path] - 1,)
        self._lines.setdefault(path, line)
        return path

    def _pair(self, table: Path) -> None:
        line, path = self._line(), table
        for name in self._key():
            path += (name,)
            self._lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip_blank()
        opening = self._text[self._at]
        if opening in "[{":
            self._at += 1
            self._members(path, inline_table=opening == "{")
        elif match := _STRING.match(self._text, self._at):
            self._at = match.end()
        else:
            self._at = _match(_SCALAR, self._text, self._at).end()

    def _members(self, path: Path, *, inline_table: bool) -> None:
        index = 0
        while self._skip_blank():
            mark = self._text[self._at]
            if mark in "]},":
                self._at += 1
                if mark != ",":
                    return
            elif inline_table:
                self._pair(path)
            else:
                self._lines.setdefault((*path, index), self._line())
                self._value((*path, index))
                index += 1

    def _key(self) -> list[str]:
        names: list[str] = []
        while True:
            match = _match(_KEY, self._text, self._at)
            self._at = match.end()
            name = match[1]
            names.append(tomllib.loads(f"k = {name}")["k"] if name[0] in "\"'" else name)
            if not self._text.startswith(".", self._at):
                return names
            self._at += 1

    def _skip_blank(self) -> bool:
        self._at = _match(_BLANK, self._text, self._at).end()
        return self._at < len(self._text)

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1


def _match(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = pattern.match(text, at)
    if match is None:
        raise ValueError(f"not TOML at character {at}")
    return match
