"""The standard error of MCP servers: their banners and log lines go to our log at DEBUG, not to the terminal.

Each server has one pipe for the whole life of the process, because every run may start the server again. The last line
is kept: if the server ends, it usually says why.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TextIO

from signoff.dataclass import dataclass

log = logging.getLogger(__name__)

LONGEST = 500


@dataclass
class ServerOutput:
    name: str
    last_line: str = ""
    _pipe: TextIO | None = None

    def pipe(self) -> TextIO:
        """Return the file to which the server writes. A thread reads it."""
        if self._pipe is None:
            reading, writing = os.pipe()
            self._pipe = os.fdopen(writing, "w", encoding="utf-8", errors="backslashreplace")
            threading.Thread(target=self._read, args=(reading,), name=f"mcp-{self.name}", daemon=True).start()
        return self._pipe

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, encoding="utf-8", errors="backslashreplace") as lines:
            for line in lines:
                if text := line.strip()[:LONGEST]:
                    self.last_line = text
                    log.debug("%s: %s", self.name, text)
