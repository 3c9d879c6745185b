"""Log lines with named fields: `decision request=67cadc state=approved`. Knows only the standard library's logging.

The message of such a record is a `Line`: as text it has all fields, and a JSON log has them as keys.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from math import isfinite

from signoff.dataclass import dataclass
from signoff.text.patterns import lazy_pattern

Value = str | int | float | bool | None

_BARE = lazy_pattern(r"[\w.:/@+*-]+")
_as_json = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Line:
    event: str
    fields: Mapping[str, Value]
    text: str | None = None
    """The line as text, if it is not made from the event and the fields."""

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        parts = [self.event]
        for name, value in self.fields.items():
            # Most values are ids and words, which are written as they are.
            is_word = isinstance(value, str) and value.isalnum()
            parts.append(f"{name}={value if is_word else _written(value)}")
        return " ".join(parts)

    @property
    def texts(self) -> list[str]:
        """The fields that are texts."""
        return [value for value in self.fields.values() if isinstance(value, str)]

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
    if not log.isEnabledFor(level):
        return
    given = {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in fields.items()
        if value is not None
    }
    failed = (type(error), error, error.__traceback__) if error else None
    # `log.log` would look up the line of its caller, which is always this one.
    log.handle(log.makeRecord(log.name, level, __file__, 0, Line(event, given), (), failed))


def _written(value: Value) -> str:
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) else _as_json(value)
    is_number = type(value) is int or (type(value) is float and isfinite(value))
    return str(value) if is_number else _as_json(value)
