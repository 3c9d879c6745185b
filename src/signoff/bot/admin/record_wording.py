"""Rows of the record, worded for people: what happened, and who or what did it (a person, a deadline, a grant, a mode).

Others wrote the names, notes and arguments in a row, so these are quoted as code, and a cut is marked. A row of a kind
that this version does not know is still shown. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from signoff.approvals.audit import AuditRow
from signoff.bot import quoting
from signoff.bot.split import size
from signoff.dataclass import dataclass
from signoff.text.visible import one_line

NOTE_SPACE = 80
NAME_SPACE = 32
TOOL_SPACE = 48
ID_SPACE = 24
ARGUMENTS_SPACE = 90
PRUNED_TEXT = "arguments no longer kept"
LATEST = 8.64e12
"""Discord shows no times later than this."""
ITSELF = "signoff"
"""The actor of a row that no person caused."""


@dataclass(frozen=True, slots=True)
class Kind:
    letter: str
    """The letter of the kind in the ids of posted buttons. Never reuse a letter for another kind."""
    label: str
    """Its name in Discord's list of choices."""
    wording: Callable[[AuditRow], str]


def row_text(row: AuditRow, arguments: str | None, space: int = ARGUMENTS_SPACE) -> str:
    """Write one row as two lines of markdown. `arguments` is its masked text, or None if that was pruned."""
    about = [quoted(row.tool, TOOL_SPACE)] if row.tool else []
    if row.text and space > 0:
        about.append(PRUNED_TEXT if arguments is None else quoted(arguments, space))
    if row.subject:
        about.append(f"{_subject(row)} {quoted(row.subject, ID_SPACE)}")
    return f"{_time(row.at)} {what(row)}\n-# {' · '.join([*about, f'row {row.seq}'])}"


def what(row: AuditRow) -> str:
    """Say in one clause what happened and who did it."""
    kind = KINDS.get(row.kind)
    if row.kind in _UNLISTED:
        return _UNLISTED[row.kind](row)
    return kind.wording(row) if kind else f"**{quoted(row.kind, NAME_SPACE)}**{_by(row)}{_note(row)}"


def quoted(text: str, space: int) -> str:
    """Quote text that others wrote as inline code of at most about `space` characters. A cut is marked."""
    head, mark = (text, "") if len(text) <= space else (text[: space - 1], "…")
    while size(shown := quoting.code(one_line(head) + mark)) > space + 2:
        head, mark = head[: len(head) * 3 // 4], "…"
    return shown


def _time(at: float) -> str:
    return f"<t:{int(at)}:f>" if math.isfinite(at) and 0 <= at < LATEST else "(no time)"


def _subject(row: AuditRow) -> str:
    if row.kind in ("rule_added", "rule_removed"):
        return "rule"
    if row.kind.startswith("schedule_"):
        return "about"
    if row.kind in ("started", "withdrawn", "ran", "failed") and not _detail(row, "request"):
        return "run"  # the call needed no approval
    return {"revoked": "grant", "paused": "server", "resumed": "server", "stopped": "run"}.get(row.kind, "request")


def _detail(row: AuditRow, name: str) -> str:
    detail = row.details.get(name)
    return detail if isinstance(detail, str) else ""


def _by(row: AuditRow, word: str = "by") -> str:
    """` by @Ada`; empty if no person did it."""
    if not row.actor or row.actor == ITSELF:
        return ""
    name = _detail(row, "who")
    if row.actor.isdecimal() and row.actor.isascii() and len(row.actor) <= 20:
        return f" {word} <@{row.actor}>" + (f" ({quoted(name, NAME_SPACE)})" if name else "")
    return f" {word} {quoted(name or row.actor, NAME_SPACE)}"


def _note(row: AuditRow, name: str = "note") -> str:
    note = _detail(row, name)
    return f": {quoted(note, NOTE_SPACE)}" if note else ""


def _asked(row: AuditRow) -> str:
    if _detail(row, "kind") == "may_have_run":
        return f"**Asked again after a restart**{_by(row, 'for')}: the call may have run"
    what = "Asked for an answer" if _detail(row, "kind") == "answer" else "Asked"
    return f"**{what}**{_by(row, 'for')}{_note(row, 'why')}"


def _decided(verb: str) -> Callable[[AuditRow], str]:
    def wording(row: AuditRow) -> str:
        choice = {"ran": "Confirmed as run", "rerun": "Run again", "skip": "Skipped"}.get(_detail(row, "choice"), verb)
        if by := _by(row):
            scope = {"session": ", remembered for the conversation", "always": ", always remembered"}
            return f"**{choice}**{by}{scope.get(_detail(row, 'remember'), '')}{_note(row)}"
        note = _detail(row, "note")
        if note.startswith("remembered: "):
            return f"**{choice} by a remembered decision**{_note(row)}"
        if " of schedule " in note and note.startswith("mode "):
            return f"**{choice} by the mode of a schedule** {quoted(note.removeprefix('mode '), NAME_SPACE)}"
        if note.startswith("mode "):
            return f"**{choice} by the operator's mode** {quoted(note.removeprefix('mode '), NAME_SPACE)}"
        return f"**{choice} automatically**{_note(row)}"

    return wording


def _answered(row: AuditRow) -> str:
    answer = _detail(row, "answer")
    return f"**Answered**{_by(row) or ' automatically'}" + (f": {quoted(answer, NOTE_SPACE)}" if answer else "")


def _edited(row: AuditRow) -> str:
    void = row.details.get("votes_void")
    count = len(void) if isinstance(void, list) else 0  # pyright: ignore[reportUnknownArgumentType]
    return f"**Arguments edited**{_by(row)}" + (f", {count} earlier vote{'s' if count > 1 else ''} void" * bool(count))


def _granted(row: AuditRow) -> str:
    scope = {"session": " for the conversation", "always": " for all conversations"}.get(_detail(row, "scope"), "")
    grant = _detail(row, "grant")
    return f"**Remembered**{_by(row)}{scope}" + (f": grant {quoted(grant, ID_SPACE)}" if grant else "")


def _plain(headline: str, note: str = "note", *, after: str = "") -> Callable[[AuditRow], str]:
    return lambda row: f"**{headline}**{_by(row)}{after}{_note(row, note)}"


def _failed(row: AuditRow) -> str:
    lost = "**Call may have run**: the connection to its server was lost"
    return lost if _detail(row, "outcome") == "unknown" else _plain("Call failed")(row)


_UNLISTED: dict[str, Callable[[AuditRow], str]] = {
    "schedule_added": _plain("Schedule added"),
    "schedule_removed": _plain("Schedule removed"),
    "schedule_paused": _plain("Schedule paused"),
    "answered": _answered,
    "declined": _decided("Declined"),
}
"""Kind of row -> its wording, for kinds that do not fit into Discord's list of choices."""

KINDS: dict[str, Kind] = {
    "asked": Kind("a", "asked: a card was posted", _asked),
    "vote": Kind(
        "b", "vote: accepted, more votes are needed", _plain("Voted to accept", after=", more votes are needed")
    ),
    "vote_void": Kind("c", "vote void: may no longer decide", _plain("Vote void", after=", who may no longer decide")),
    "edited": Kind("d", "edited before the decision", _edited),
    "approved": Kind("e", "approved", _decided("Approved")),
    "rejected": Kind("f", "rejected", _decided("Rejected")),
    "expired": Kind("g", "timed out", lambda row: f"**Timed out**: nobody decided in time{_note(row)}"),
    "cancelled": Kind("h", "cancelled: stopped, paused or deleted", _plain("Cancelled")),
    "granted": Kind("i", "remembered: a grant was made", _granted),
    "revoked": Kind("j", "grant revoked", _plain("Grant revoked")),
    "rule_added": Kind("k", "rule added", _plain("Rule added", "rule")),
    "rule_removed": Kind("l", "rule removed", _plain("Rule removed", "rule")),
    "paused": Kind("m", "server paused", _plain("Server paused")),
    "resumed": Kind("n", "server resumed", _plain("Server resumed")),
    "stopped": Kind("o", "run stopped", _plain("Run stopped")),
    "started": Kind("p", "call started", _plain("Call started")),
    "ran": Kind("q", "call completed", _plain("Call completed")),
    "failed": Kind("r", "call failed", _failed),
    "arguments_changed": Kind(
        "s", "not run: arguments changed", lambda row: "**Not run**: the arguments differ from the approved ones"
    ),
    "operands_changed": Kind(
        "t", "not run: its target changed", lambda row: "**Not run**: its target changed after the approval"
    ),
    "chain_broken": Kind(
        "u", "record damaged", lambda row: "**Record damaged**: earlier rows were removed or changed. Tell the operator"
    ),
    "texts_pruned": Kind(
        "v", "old arguments removed", lambda row: "**Old arguments removed** from the record, as configured"
    ),
    "escalated": Kind("y", "escalated", _plain("Escalated", "to")),
    "approver_gone": Kind("x", "approver missing while it was open", _plain("An approver is missing", "gone")),
    "withdrawn": Kind(
        "w",
        "withdrawn: not started after all",
        lambda row: "**Withdrawn**: the call did not start, because it asks first or waits",
    ),
}
"""Kind of row -> how it is shown. Discord's list of choices takes 25."""
