"""How the log is written: as text, or as one JSON object per line. Other libraries write into the same log.

In text, a record is one line; a traceback follows it, and each of its lines is indented. So no text that somebody else
chose can begin a line of its own. In JSON, a record is exactly one line, with its traceback as a field.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal

from signoff.text.log_lines import Line

Format = Literal["text", "json"]

CHATTY = ("aiohttp", "anthropic", "discord.http", "fastmcp", "httpcore", "httpx", "httpx2", "mcp", "openai", "urllib3")
"""Loggers that write a line for each HTTP request and the like. Such lines appear only at the level DEBUG."""
WITH_OWN_OUTPUT = ("fastmcp", "mcp")
"""Loggers that print to the terminal by themselves, past the format and the masking of this log."""

_CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}


class TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s")  # for this, `format` asks for the time; `formatMessage` writes the line
        self._second = (0, "")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Write the time. All lines of a second share what takes long to write of it."""
        second, written = self._second
        if second != int(record.created):
            written = time.strftime(self.default_time_format, time.localtime(record.created))
            self._second = int(record.created), written
        return f"{written},{int(record.msecs):03d}"

    def formatMessage(self, record: logging.LogRecord) -> str:
        return _without_controls(f"{record.asctime} {record.levelname} {record.name}: {record.message}")

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if "\n" not in text:
            return text
        first, *rest = text.split("\n")
        return "\n".join([first, *(f"  {_without_controls(line)}" for line in rest)])


def _without_controls(text: str) -> str:
    return text if text.isprintable() else text.translate(_CONTROLS)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if isinstance(record.msg, Line):
            line |= {"event": record.msg.event, **record.msg.fields}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["traceback"] = record.exc_text
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line, default=repr)


def set_up_log(level: str, form: Format, handlers: Iterable[logging.Handler] | None = None) -> None:
    """Write everything to these handlers; the default is standard error."""
    chosen = list(handlers) if handlers is not None else [logging.StreamHandler()]
    # No format of ours has these, and looking them up takes nearly a third of the time to make a record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    for handler in chosen:
        handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=chosen, force=True)
    logging.captureWarnings(True)
    for change in (_on_one_line, _without_signs):
        logging.getLogger("discord.client").addFilter(change)
    for name in CHATTY:
        _quiet(name)


def take_over_loggers() -> None:
    """Bring loggers that print by themselves into our log. Call this after plugins and MCP libraries are loaded."""
    for name in WITH_OWN_OUTPUT:
        logger = logging.getLogger(name)
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
        logger.propagate = True
        _quiet(name)


def _quiet(name: str) -> None:
    level = logging.getLogger().level
    logging.getLogger(name).setLevel(logging.NOTSET if level <= logging.DEBUG else max(level, logging.WARNING))


def _on_one_line(record: logging.LogRecord) -> bool:
    """Log only the cause of a lost connection: discord.py adds a traceback, but reconnects by itself."""
    if record.exc_info and record.exc_info[1] and "reconnect" in record.getMessage():
        record.msg = f"{record.getMessage()}: {record.exc_info[1]}"
        record.args = ()
        record.exc_info = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


def _without_signs(record: logging.LogRecord) -> bool:
    """Leave out the word "token": for it, the masker would load all that it searches for secrets with."""
    if record.msg == "logging in using static token":
        record.msg = "logging in"
    return True
