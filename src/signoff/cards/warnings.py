"""Warnings about one call, gathered from every foreign text in it, and kept short.

The words are trusted; they name the argument they speak of in plain ASCII. Knows nothing of batches or any medium.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from signoff.text.lookalikes import lookalikes
from signoff.text.visible import plain, visible

PADDING = 40
"""Spaces or tabs in a row that may push the rest of a line out of sight."""
SUMMARY_ROOM = 72
_RUN_OF_SPACES = re.compile(rf"[ \t]{{{PADDING},}}")
_NAME_ROOM = 32


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    """A few words that still fit when the finding itself does not."""
    text: str


def findings_in(where: str, texts: Iterable[str]) -> list[Finding]:
    """What is odd about these texts, which the reader knows as `where`. Each thing is said once."""
    found: dict[Finding, None] = {}
    for text in texts:
        for words in visible(text).findings:
            found[Finding("hidden characters", f"{where}: {words}")] = None
        for words in lookalikes(text):
            found[Finding("look-alikes", f"{where}: {words}")] = None
        widest = max((len(run) for run in _RUN_OF_SPACES.findall(text)), default=0)
        if widest:
            found[Finding("padding", f"{where}: contains a run of {widest} spaces or tabs")] = None
    return list(found)


def argument_place(name: str) -> str:
    return f"argument {plain(name, _NAME_ROOM)}"


def fit_findings(found: Sequence[Finding], room: int) -> tuple[tuple[str, ...], bool]:
    """The warnings that fit, a summary of the others, and whether there are others."""
    if sum(len(f.text) for f in found) <= room:
        return tuple(f.text for f in found), False
    shown: list[str] = []
    left = room - SUMMARY_ROOM
    for finding in found:
        if len(finding.text) > left:
            break
        shown.append(finding.text)
        left -= len(finding.text)
    others = found[len(shown) :]
    kinds = ", ".join(dict.fromkeys(f.kind for f in others))
    more = " more" if shown else ""
    return (*shown, f"{len(others)}{more} warnings about {kinds}"), True
