"""The command line that a person types to run Signoff, for hints in messages."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

IN_A_CHECKOUT = ".venv/bin/signoff"
"""The program that `make run` installs, from the folder of the checkout. The docs use this form."""


def command_line(words: str) -> str:
    """Return a command that works as typed in the present folder.

    That is `signoff WORDS` if the program is on the PATH, else the program beside this Python, else `main.py`.
    """
    if shutil.which("signoff"):
        return f"signoff {words}"
    program = Path(sys.executable).with_name("signoff.exe" if os.name == "nt" else "signoff")
    if program.exists():
        return f"{_as_typed(program)} {words}"
    if Path(sys.argv[0]).name == "main.py":
        return f"{_as_typed(Path(sys.executable))} {_as_typed(Path(sys.argv[0]))} {words}"
    return f"{IN_A_CHECKOUT} {words}"


def _as_typed(path: Path) -> str:
    """Return the path as seen from the present folder. Links are kept: the Python of a .venv is a link."""
    full, here = Path(os.path.abspath(path)), Path.cwd()
    return shlex.quote(str(full.relative_to(here) if full.is_relative_to(here) else full))
