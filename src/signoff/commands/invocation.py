"""The command line that a person types to run Signoff, for hints in messages."""

from __future__ import annotations

import shutil

IN_A_CHECKOUT = ".venv/bin/signoff"
"""The program that `make run` installs. The docs use this form."""


def command_line(words: str) -> str:
    """Return `signoff WORDS` if the program is on the PATH, else `.venv/bin/signoff WORDS`."""
    return f"{'signoff' if shutil.which('signoff') else IN_A_CHECKOUT} {words}"
