"""What happens after a decision, in words: how each approved call is doing, and what a run is doing now.

The lines are trusted text; a result is quoted as code. This module knows no medium, and it decides nothing about runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.approvals.model import ApprovalRequest, Batch, CallRun, RunState
from signoff.cards.model import Code, Line, Moment, Tone
from signoff.text.visible import clip, plain

RESULT = 100
"""Characters of a result on a card."""
PROGRESS_BUDGET = RESULT + 40
"""The most characters of a call's progress, with its result."""
NOTICEABLE = 0.1
"""Seconds. The card does not say how long a quicker call took."""
_TITLES = {
    RunState.RUNNING: "running",
    RunState.MAY_HAVE_RUN: "may have run",
    RunState.FAILED: "failed",
    RunState.NOT_RUN: "not run",
    RunState.DONE: "done",
}
"""How a call did -> the word in the card's title. The first that applies is shown."""
_WENT_WRONG = frozenset({RunState.MAY_HAVE_RUN, RunState.FAILED, RunState.NOT_RUN})
TOOL = 40
NAMED = 8
"""The most tools that a status message names at a time."""


def progress_lines(request: ApprovalRequest) -> list[Line]:
    """Say how the approved call is doing; empty before it starts, and for an inquiry, whose answer is the result."""
    return [_progress(request.run)] if request.run and request.inquiry is None else []


def title_with_progress(batch: Batch, tone: Tone, title: Line | None) -> tuple[Tone, Line | None]:
    """Return the tone and the title of an approved card with how its calls did: running, done, failed."""
    if tone is not Tone.APPROVED or title is None:
        return tone, title
    calls = [r for r in batch.questions if r.inquiry is None]
    runs = [r.run.state for r in calls if r.run]
    if not runs:
        return tone, title
    for state, word in _TITLES.items():
        if count := runs.count(state):
            some = "" if count == len(calls) else f"{count} of {len(calls)} "
            return Tone.MIXED if state in _WENT_WRONG else tone, (*title, f" · {some}{word}")
    return tone, title


def held_progress(batch: Batch) -> list[Line]:
    """Say which held calls have not simply run, since the card shows no more of them than their names."""
    words = {RunState.FAILED: "failed", RunState.MAY_HAVE_RUN: "may have run", RunState.NOT_RUN: "not run"}
    ends = [f"{plain(r.shown_tool, TOOL)} {words[r.run.state]}" for r in batch.held if r.run and r.run.state in words]
    if not ends:
        return []
    more = f" and {len(ends) - NAMED} more" if len(ends) > NAMED else ""
    return [(f"Of these: {', '.join(ends[:NAMED])}{more}",)]


def duration(seconds: float) -> str:
    """Format how long a call took: 0.4 s, 12 s, 3 min 5 s."""
    seconds = max(seconds, 0.0)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def status_line(ran: Sequence[str], failed: Sequence[str], running: Sequence[tuple[str, float]], since: float) -> Line:
    """Say what a run is doing. `running`: tools and when they started. `since`: when the model was asked last."""
    parts: list[str | Moment] = ["Working. "]
    if ran:
        parts.append(f"Ran {_tools(ran)}. ")
    if failed:
        parts.append(f"Failed: {_tools(failed)}. ")
    if not running:
        return (*parts, "Thinking, since ", Moment(since))
    names = _tools([tool for tool, _ in running])
    return (*parts, f"Running {names}, started ", Moment(min(started for _, started in running)))


def writing_line(characters: int) -> Line:
    """Say that the model is writing its reply, and how much it has written."""
    return (f"Writing: {characters:,} characters so far",)


def _tools(tools: Sequence[str]) -> str:
    """List tools by name, each once, with how often it was called."""
    counts: dict[str, int] = {}
    for tool in tools:
        counts[tool] = counts.get(tool, 0) + 1
    names = [plain(tool, TOOL) + (f" ({times} times)" if times > 1 else "") for tool, times in counts.items()]
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _progress(run: CallRun) -> Line:
    match run.state:
        case RunState.RUNNING:
            return ("Running, started ", Moment(run.started)) if run.started else ("Running",)
        case RunState.DONE:
            return _ended("Done", "in", run)
        case RunState.FAILED:
            return _ended("Failed", "after", run)
        case RunState.MAY_HAVE_RUN:
            return _ended("May have run", "after", run) if run.line else ("May have run: it was interrupted",)
        case RunState.NOT_RUN:
            return ("Not run",)


def _ended(what: str, how: str, run: CallRun) -> Line:
    seconds = run.ended - run.started if run.started and run.ended else 0.0
    took = f" {how} {duration(seconds)}" if seconds >= NOTICEABLE else ""
    return (f"{what}{took}: ", Code(clip(run.line, RESULT)[0])) if run.line else (f"{what}{took}",)
