"""`signoff init`: writes a commented signoff.toml, .env and an example plugin. It never overwrites a file."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from signoff.commands.invocation import command_line
from signoff.commands.starter_files import FILES
from signoff.errors import ConfigError

MODES = {".env": 0o600}
"""Name -> mode of a file that only its owner may read: .env will hold the token."""


def write_starter(folder: Path) -> list[str]:
    """Write the files that do not exist yet. Return what was done, and what to do next, one line each."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lines = [_written(folder / name, text) for name, text in FILES.items()]
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror}; name a folder that you may write") from None
    inside = folder.resolve() == Path.cwd().resolve()
    before = "" if inside else f"cd {shlex.quote(str(folder))} && "
    return [*lines, f"Next: edit them, then run `{before}{command_line('check', folder)}`."]


def _written(path: Path, text: str) -> str:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODES.get(path.name, 0o666))
    except FileExistsError:
        return f"kept {path}, which exists already"
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return f"wrote {path}"
