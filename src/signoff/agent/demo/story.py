"""The incident that the demo model works on: it reads a log, wants to delete it, and proposes better if told why not.

A small state machine over what happened in this turn, without a script of the outcome: each step follows from the
results and decisions so far. Works on text alone and keeps no state.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from signoff.agent.demo.grammar import LOG, Call, Round

_REASON = re.compile(r"\bReason: (.+)\Z", re.S)
_SIZE = re.compile(r"\A\S+: (?:only the first \d+ of )?(?:(?P<lines>\d+) lines?, )?(?P<bytes>\d+) bytes")
_KEEP = re.compile(
    r"\b(?:keep|need|compress|zip|archiv\w*|rotat\w*|sav(?:e|ed)|backup|back up|evidence|post-?mortem)\b", re.I
)
_LONGEST_LINE = 120
KEEP_IT = "keep the log, but compress it"
"""A request that the grammar understands, for somebody who rejected the deletion without a reason."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One call of this turn and how it ended. `outcome` is one of the words that the demo model reports."""

    tool: str
    outcome: str
    text: str


def go_on(events: Sequence[Happened]) -> Round:
    """Return the next response: a call, or only words if the story is over."""
    if not events:
        return Round((Call("read_file", {"path": LOG}),), f"I look at {LOG} first.")
    last = events[-1]
    if last.tool == "read_file":
        return _after_reading(last)
    if last.tool == "delete_file":
        return _after_deleting(last, events[0])
    return _after_rotating(last)


def _after_reading(read: Happened) -> Round:
    size = _SIZE.match(read.text)
    if read.outcome != "done" or size is None:
        return Round(
            words=f"I cannot read {LOG}: {read.text}\nThe sandbox brings this log along: stop it and start it again."
        )
    if int(size["bytes"]) == 0:
        return Round(words=f"{LOG} is empty, so it is not what fills the disk. Somebody has cleaned up here already.")
    return Round((Call("delete_file", {"path": LOG}),), f"{_finding(read, size)} Deleting it frees the disk at once.")


def _finding(read: Happened, size: re.Match[str]) -> str:
    lines = [line for line in read.text.splitlines()[1:] if line.strip()]
    noise = sum(" DEBUG " in line for line in lines)
    last = lines[-1][:_LONGEST_LINE] if lines else ""
    return f'{LOG} has {size["bytes"]} bytes. {noise} of its {len(lines)} lines are DEBUG, and it ends with "{last}".'


def _after_deleting(deleted: Happened, read: Happened) -> Round:
    if deleted.outcome == "done":
        size = _SIZE.match(read.text)
        summary = _finding(read, size) if size else ""
        return Round(words=f"{deleted.text}\n\nThis is all that is left of it: {summary}")
    if deleted.outcome != "rejected":
        return Round(words=f"{LOG} is still there: {deleted.text} The disk is still full.")
    reason = _reason(deleted)
    if not reason:
        return Round(
            words=f"I did not delete {LOG}, and nobody said why not. What would be better? For example:\n- `{KEEP_IT}`"
        )
    if not _KEEP.search(reason):
        return Round(
            words=f'I did not delete {LOG}: "{reason}" I am only a demo and do not know what follows from this. '
            f"I do know this way:\n- `{KEEP_IT}`"
        )
    words = f'You said: "{reason}" So nothing may be lost: I compress the log into an archive and start it empty.'
    return Round((Call("rotate_log", {"path": LOG}),), words)


def _after_rotating(rotated: Happened) -> Round:
    if rotated.outcome == "done":
        return Round(words=f"{rotated.text}\n\nNothing is lost, and the disk has space again. The incident is over.")
    reason = _reason(rotated)
    why = f' "{reason}"' if reason else ""
    return Round(words=f"{LOG} is as it was ({rotated.outcome}).{why} I know no third way: a person has to take over.")


def _reason(happened: Happened) -> str:
    found = _REASON.search(happened.text)
    return found[1].strip() if found else ""
