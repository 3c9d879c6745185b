"""Edit arguments as JSON text: in the person's editor, with a file that only they can read, or on one line."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from pathlib import Path

from signoff.cards.forms import written


def on_one_line(text: str) -> str:
    """Return the same JSON on one line. Text that is not JSON stays unchanged."""
    try:
        return " ".join(line.strip() for line in written(json.loads(text)).split("\n"))
    except (ValueError, TypeError):
        return text


def editor_command() -> list[str]:
    """Return the command of the person's editor, or an empty list if none is set or installed."""
    for name in ("VISUAL", "EDITOR"):
        try:
            command = shlex.split(os.environ.get(name, ""))
        except ValueError:
            continue
        if command and shutil.which(command[0]):
            return command
    return []


class Draft:
    """A file with the text, in its own folder. It exists only while the editor is open."""

    def __init__(self, text: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="signoff-")
        self.path = Path(self._folder.name) / "arguments.json"
        self.path.write_text(text + "\n", encoding="utf-8")

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def read(self) -> str:
        """Return the current text of the file; empty if the file was deleted or is not text."""
        try:
            return self.path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""
