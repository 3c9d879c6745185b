"""Finds settings that do not exist: a misspelled name in `.env` or in the environment is ignored without a word.

No value is ever shown: it may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path

from signoff.config.findings import Finding, nearest, warning
from signoff.settings import Settings

OWN = "SIGNOFF_"
IN_FILE = (OWN, "DISCORD_")
"""In the environment, other programs may have names that begin with DISCORD_. In our own file they are meant for us."""
ENVIRONMENT = "the environment"


def setting_names() -> list[str]:
    return sorted(str(field.validation_alias) for field in Settings.model_fields.values())


def check_settings(environment: Iterable[str], env_file: Path) -> list[Finding]:
    """`environment` holds the names of its variables. An unreadable file has been reported before."""
    known = setting_names()
    lines = _names_in(env_file)
    places = {name: ENVIRONMENT for name in sorted(environment) if name.startswith(OWN) and name not in lines}
    places |= {name: f"{env_file}:{line}" for name, line in lines.items() if name.startswith(IN_FILE)}
    return [_unknown(name, place, known) for name, place in places.items() if name not in known]


def setting_place(name: str, environment: Mapping[str, str], env_file: Path) -> str:
    """Return where a setting comes from: a line of `.env`, or the environment, which wins. Empty if it is not set."""
    if line := _names_in(env_file).get(name):
        from dotenv import dotenv_values

        if dotenv_values(env_file, encoding="utf-8-sig").get(name) == environment.get(name):
            return f"{env_file}:{line}"
    return ENVIRONMENT if name in environment else ""


def _names_in(env_file: Path) -> dict[str, int]:
    """Return name -> line of each entry."""
    try:
        text = env_file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return {}
    from dotenv.parser import parse_stream  # here, because a bot in a container has no such file

    # The parser counts the blank lines before an entry as a part of it.
    return {
        binding.key: binding.original.line + _leading_newlines(binding.original.string)
        for binding in parse_stream(StringIO(text))
        if binding.key
    }


def _leading_newlines(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")


def _unknown(name: str, place: str, known: list[str]) -> Finding:
    near = nearest(name, known)
    remedy = f"write {near}" if near else f"write one of {', '.join(known)}, or remove it"
    return warning(place, f"there is no setting {name}, so it has no effect", remedy)
