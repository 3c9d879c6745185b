"""The incident that the demo model works on: it reads a log, wants to delete it, and proposes better if told why not.

A small state machine over what happened in this turn, without a script of the outcome: each step follows from the
results and decisions so far. Every end says what happened and what to try next. Works on text alone and keeps no state.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from signoff.agent.demo.full_log import LOG, MACHINE
from signoff.agent.demo.grammar import CHECK, INCIDENT, Call, Round
from signoff.dataclass import dataclass

_REASON = re.compile(r"\bReason: (.+)\Z", re.S)
_SIZE = re.compile(r"\A\S+: (?:only the first \d+ of )?(?:(?P<lines>\d+) lines?, )?(?P<bytes>\d+) bytes")
_KEEP = re.compile(
    r"\b(?:keep|need|compress|zip|archiv\w*|rotat\w*|sav(?:e|ed)|backup|back up|evidence|post-?mortem)\b", re.I
)
_LONGEST_LINE = 120
KEEP_IT = "keep the log, but compress it"
"""A request that the grammar understands, for somebody who rejected the deletion without a reason."""
MAKE_A_LOG = f"write {LOG} with 400 lines"
AGAIN = f"To start again:\n- `{INCIDENT}`"


@dataclass(frozen=True, slots=True)
class Happened:
    """One call of this turn and how it ended. `outcome` is one of the words that the demo model reports."""

    tool: str
    outcome: str
    text: str


def go_on(events: Sequence[Happened], tools: Collection[str]) -> Round:
    """Return the next response: a call, or only words if the story is over. `tools` has the names of the tools."""
    if not events:
        return _look(tools)
    last = events[-1]
    if last.tool == CHECK:
        return _after_checking(last)
    if last.tool == "read_file":
        return _after_reading(last, tools)
    if last.tool == "delete_file":
        read = next(event for event in events if event.tool == "read_file")
        return _after_deleting(last, read)
    return _after_rotating(last)


def _look(tools: Collection[str]) -> Round:
    if CHECK in tools:
        return Round((Call(CHECK, {"host": MACHINE}),), f"I look at the disk of {MACHINE} first.")
    return Round((Call("read_file", {"path": LOG}),), f"I look at {LOG} first.")


def _after_checking(checked: Happened) -> Round:
    if checked.outcome != "done":
        return Round(words=f"I could not look at the disk of {MACHINE} ({checked.outcome}): {checked.text}\n\n{AGAIN}")
    return Round((Call("read_file", {"path": LOG}),), f"{LOG} fills the disk. I read it.")


def _after_reading(read: Happened, tools: Collection[str]) -> Round:
    size = _SIZE.match(read.text)
    if read.outcome != "done" or size is None:
        return Round(words=f"I cannot read {LOG}: {read.text}\n\n{_make_a_log(tools)}")
    if int(size["bytes"]) == 0:
        return Round(words=f"{LOG} is empty, so it is not what fills the disk.\n\n{_make_a_log(tools)}")
    return Round((Call("delete_file", {"path": LOG}),), f"{_finding(read, size)} Deleting it frees the disk at once.")


def _make_a_log(tools: Collection[str]) -> str:
    """Return what to do where no simulated machine fills its disk by itself."""
    needed = "This story needs a log with some lines."
    if "write_file" not in tools:
        return f"{needed} Put one into the workspace as {LOG}, then start again."
    return f"{needed} To make one, and then to start again:\n- `{MAKE_A_LOG}`\n- `{INCIDENT}`"


def _finding(read: Happened, size: re.Match[str]) -> str:
    lines = [line for line in read.text.splitlines()[1:] if line.strip()]
    noise = sum(" DEBUG " in line for line in lines)
    last = lines[-1][:_LONGEST_LINE] if lines else ""
    return f'{LOG} has {size["bytes"]} bytes. {noise} of its {len(lines)} lines are DEBUG, and it ends with "{last}".'


def _after_deleting(deleted: Happened, read: Happened) -> Round:
    if deleted.outcome == "done":
        size = _SIZE.match(read.text)
        summary = _finding(read, size) if size else ""
        return Round(
            words=f"{deleted.text} The disk has space again, but nobody can look into the log any more. "
            f"This is all that is left of it: {summary}\n\nTo see what a reason changes, start again and reject the "
            f"deletion. Give as the reason that the log is still needed:\n- `{INCIDENT}`"
        )
    if deleted.outcome != "rejected":
        return Round(words=f"{LOG} is still there: {deleted.text} The disk is still full.\n\n{AGAIN}")
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
    return Round(
        words=f"{LOG} is as it was ({rotated.outcome}).{why} I know no third way: a person has to take over.\n\n{AGAIN}"
    )


def _reason(happened: Happened) -> str:
    found = _REASON.search(happened.text)
    return found[1].strip() if found else ""
