"""The program `signoff`. Errors are one line.

The bot and `version` need no parser of command lines. Everything else is left to `commands/parser.py`.
"""

from __future__ import annotations

import sys

from signoff import __version__
from signoff.errors import StartupError


def main() -> None:
    try:
        _run(sys.argv[1:])
    except StartupError as error:
        raise SystemExit(f"signoff: {error}") from None


def _run(arguments: list[str]) -> None:
    if arguments == ["version"]:
        print(__version__)
    elif arguments in ([], ["discord"]):
        from signoff.commands.starting import start_bot, start_default

        start_bot() if arguments else start_default()
    else:
        from signoff.commands.parser import commands

        commands()
