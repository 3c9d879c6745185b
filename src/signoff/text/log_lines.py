"""Log lines with named fields: `decision request=67cadc state=approved`. Knows only the standard library's logging.

The message of such a record is a `Line`: as text it has all fields, and a JSON log has them as keys.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Value = str | int | float | bool | None

_BARE = re.compile(r"[\w.:/@+*-]+")


@dataclass(frozen=True, slots=True)
class Line:
    event: str
    fields: Mapping[str, Value]
    text: str | None = None
    """The line as text, if it is not made from the event and the fields."""

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        return " ".join([self.event, *(f"{name}={_written(value)}" for name, value in self.fields.items())])

    def changed(self, change: Callable[[str], str]) -> Line:
        """Return the line with each text changed."""
        fields = {name: change(value) if isinstance(value, str) else value for name, value in self.fields.items()}
        return Line(self.event, fields)


def note(
    log: logging.Logger,
    event: str,
    fields: Mapping[str, Value],
    *,
    level: int = logging.INFO,
    error: BaseException | None = None,
) -> None:
    """Log one event. A field that is None is left out; `error` adds its traceback."""
    given = {name: _rounded(value) for name, value in fields.items() if value is not None}
    log.log(level, Line(event, given), exc_info=error)


def _rounded(value: Value) -> Value:
    return round(value, 3) if isinstance(value, float) else value


def _written(value: Value) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
