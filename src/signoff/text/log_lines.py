"""Log lines with named fields: `decision request=67cadc state=approved`. Knows only the standard library's logging.

The fields are part of the message as text, and the record carries them as well, so that a JSON log has them as keys.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping

Value = str | int | float | bool | None

_BARE = re.compile(r"[\w.:/@+*-]+")


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
    words = " ".join([event, *(f"{name}={_written(value)}" for name, value in given.items())])
    log.log(level, "%s", words, exc_info=error, extra={"event": event, "fields": given})


def _rounded(value: Value) -> Value:
    return round(value, 3) if isinstance(value, float) else value


def _written(value: Value) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
