"""How a person types a command of Signoff, for hints in messages."""

from __future__ import annotations

import shutil

IN_A_CHECKOUT = ".venv/bin/signoff"
"""What `make run` installs. The docs use this form."""


def command_line(words: str) -> str:
    """`.venv/bin/signoff WORDS`, or `signoff WORDS` where the program is on the PATH."""
    return f"{'signoff' if shutil.which('signoff') else IN_A_CHECKOUT} {words}"
