"""The command line that a person types to run Signoff, for hints in messages."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

IN_A_CHECKOUT = ".venv/bin/signoff"
"""The program that `make run` installs, from the folder of the checkout. The docs use this form."""


def command_line(words: str, folder: Path | None = None) -> str:
    """Return a command that works as typed in `folder`, or in the present one.

    That is `signoff WORDS` if the program is on the PATH, else the program beside this Python, else `main.py`.
    """
    if shutil.which("signoff"):
        return f"signoff {words}"
    here = folder or Path.cwd()
    program = Path(sys.executable).with_name("signoff.exe" if os.name == "nt" else "signoff")
    if program.exists():
        return f"{_as_typed(program, here)} {words}"
    if Path(sys.argv[0]).name == "main.py":
        return f"{_as_typed(Path(sys.executable), here)} {_as_typed(Path(sys.argv[0]), here)} {words}"
    return f"{IN_A_CHECKOUT} {words}"


def _as_typed(path: Path, here: Path) -> str:
    """Return the path as seen from a folder. Links are kept: the Python of a .venv is a link."""
    full, here = os.path.abspath(path), Path(os.path.abspath(here))
    if not Path(full).is_relative_to(here):
        return shlex.quote(full)
    near = str(Path(full).relative_to(here))
    return shlex.quote(near if os.sep in near else f".{os.sep}{near}")
