"""Notices about a turn, other than its reply. Plain text: a front end escapes what its medium would interpret."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.approvals.approvers import can_be_met
from signoff.approvals.model import Batch

STORE_FAILED = "My database failed several times, so I stopped this run. Completed calls are kept. Mention me again."
STORE_FAILS = (
    "My database is failing, so I cannot go on. Completed calls are kept. I will say here when it works again."
)


SILENT = "Done. The model gave no reply text."
_MODES = {
    "auto_approve": "Mode auto_approve: calls that ask run without a person.",
    "auto_deny": "Mode auto_deny: calls that ask are rejected without a person.",
}


def under_mode(text: str, mode: str, *, markup: bool) -> str:
    """Return a reply with a line about the mode, if people are not asked. With `markup`, Discord shows it small."""
    if mode not in _MODES:
        return text
    return f"{text.strip() or SILENT}\n{'-# ' if markup else ''}{_MODES[mode]}"


def apart(text: str) -> tuple[str, str]:
    """Return a reply and its line about the mode, which `under_mode` added. The line is empty if there is none."""
    body, _, line = text.rpartition("\n")
    return (body, line) if line.removeprefix("-# ") in _MODES.values() else (text, "")


def broken(error: Exception) -> str:
    return (
        f"Something failed on my side ({type(error).__name__}). Completed calls are kept. Mention me again; "
        "if it fails again, start a new thread and tell the operator."
    )


def not_asked(why: str) -> str:
    """Do not mention other calls of the same model response: they may have run by then."""
    return f"I could not ask for approval: {why}. The calls that needed it were not run."


def expired_unseen(why: str) -> str:
    return f"The request expired before I could post its card: {why}. The calls that needed approval were not run."


def missing_approvers_notice(batch: Batch) -> str:
    """Tell the admins which approvers of a batch are missing. Empty if none are."""
    missing = sorted({part for request in batch.questions for part in request.missing})
    if not missing:
        return ""
    remedy = "Change the rule with /signoff protect, or in signoff.toml."
    return f"For the admins: {_missing(missing)} {_who_can_decide(batch)} {remedy}"


def _missing(parts: Sequence[str]) -> str:
    """Name the missing approvers. `parts` have the form `role:ID` or `user:ID`."""
    names = ", ".join(part.replace(":", " ", 1) for part in parts)
    if len(parts) > 1:
        return f"rules name {names} as approvers, but they no longer exist."
    what = "role no longer exists" if parts[0].startswith("role:") else "person is no longer in this server"
    return f"a rule names {names} as approver, but that {what}."


def _who_can_decide(batch: Batch) -> str:
    """Say which calls nobody can decide. They are numbered as on the card; each may have different approvers."""
    calls = len(batch.questions)
    stuck = [str(number) for number, r in enumerate(batch.questions, 1) if r.missing and not can_be_met(r, batch)]
    if not stuck:
        return "Other approvers can still decide."
    if len(stuck) == calls:
        return "So nobody can decide."
    return f"So nobody can decide {'calls' if len(stuck) > 1 else 'call'} {', '.join(stuck)} of {calls}."
