"""A finding: one thing that is wrong with the set-up, as one line with its place and its remedy.

Pure data and its wording. The checks that make findings are in other files; commands print them or log them.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Sequence
from enum import StrEnum

from signoff.dataclass import dataclass
from signoff.errors import StartupError
from signoff.text.visible import visible

log = logging.getLogger("signoff.check")


class Severity(StrEnum):
    ERROR = "error"
    """Something cannot work."""
    WARNING = "warning"
    """It works, but probably not as it was meant."""
    NOTE = "note"
    """Something could not be checked."""


LEVELS = {Severity.ERROR: logging.ERROR, Severity.WARNING: logging.WARNING, Severity.NOTE: logging.INFO}


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    problem: str
    remedy: str = ""
    """Empty only if the problem is the text of an error, which ends with its own remedy."""
    place: str = ""
    """The file and the line, for example `signoff.toml:12`. Empty if the problem is in no file."""

    def __str__(self) -> str:
        """One line. It may quote names of tools, channels and servers, so nothing in it acts on a terminal."""
        text = f"{self.problem}; {self.remedy}" if self.remedy else self.problem
        placed = f"{self.place}: {text}" if self.place and not text.startswith(f"{self.place}:") else text
        return visible(" ".join(placed.split())).text

    @property
    def line(self) -> str:
        return f"{self.severity}: {self}"


def error(place: str, problem: str, remedy: str) -> Finding:
    return Finding(Severity.ERROR, problem, remedy, place)


def warning(place: str, problem: str, remedy: str) -> Finding:
    return Finding(Severity.WARNING, problem, remedy, place)


def of_error(failure: StartupError, place: str = "") -> list[Finding]:
    """Return a finding for each line of an error that would stop the start."""
    return [Finding(Severity.ERROR, line, place=place) for line in str(failure).splitlines()]


def log_findings(findings: Iterable[Finding]) -> None:
    """Log one line for each finding, at the level of its severity."""
    for finding in findings:
        log.log(LEVELS[finding.severity], "%s", finding)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` was probably meant to be, or None."""
    by_lower_case = {one.lower(): one for one in known}
    close: Sequence[str] = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return by_lower_case[close[0]] if close else None
