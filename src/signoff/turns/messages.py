"""Notices about a turn, other than its reply. Plain text: a front end escapes what its medium would interpret."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.approvals.approvers import can_be_met
from signoff.approvals.model import Actor, Batch, RequestState, RunState
from signoff.text.patterns import lazy_pattern
from signoff.text.visible import plain

STORE_FAILED = "My database failed several times, so I stopped this run. Completed calls are kept. Mention me again."
STORE_FAILS = (
    "My database is failing, so I cannot go on. Completed calls are kept. I will say here when it works again."
)


def rejected(cards: int) -> str:
    """Tell the asker that the run has ended because nobody accepted anything."""
    return (
        f"I stopped: nothing was accepted on {cards} cards in a row. None of those calls was run. "
        "Mention me again and say what to do instead."
    )


SILENT = "Done. The model gave no reply text."
_MODES = {
    "auto_approve": "Mode auto_approve: calls that ask run without a person.",
    "auto_deny": "Mode auto_deny: calls that ask are rejected without a person.",
}


BY_GRANT = "By a remembered decision of "
TOOL = 40
NAMED = 4
"""The most calls that a line names."""
GIVERS = 3
"""The most people whose remembered decisions a reply names."""
_CALLS = NAMED * (TOOL + len("`` rejected, ")) + len(" and 9999 more")
"""The most characters for the calls in a line."""
_BY_GRANT = lazy_pattern(rf"{BY_GRANT}(?:<@\d{{1,20}}>|[^<>\n]{{1,{TOOL}}}): [^<>\n]{{1,{_CALLS}}}\.")
_RAN = frozenset({RunState.DONE, RunState.FAILED, RunState.MAY_HAVE_RUN})


def under_mode(text: str, mode: str, *, markup: bool) -> str:
    """Return a reply with a line about the mode, if people are not asked. With `markup`, Discord shows it small."""
    return with_lines(text, mode_lines(mode), markup=markup)


def with_lines(text: str, lines: Sequence[str], *, markup: bool) -> str:
    """Return a reply with our own lines below it. With `markup`, Discord shows them small."""
    if not lines:
        return text
    return "\n".join([text.strip() or SILENT, *(f"{'-# ' if markup else ''}{line}" for line in lines)])


def mode_lines(mode: str) -> list[str]:
    return [_MODES[mode]] if mode in _MODES else []


def grant_lines(batches: Sequence[Batch], *, markup: bool) -> list[str]:
    """Name the calls that remembered decisions settled, and whose decisions these were: one line for each person."""
    calls: dict[str, dict[str, None]] = {}
    for request in (request for batch in batches for request in batch.requests):
        end = request.settlement
        if end is None or end.grant is None or end.by is not None:
            continue
        ran = request.run is not None and request.run.state in _RAN
        done = "ran" if ran else "not run" if request.state is RequestState.APPROVED else "rejected"
        tool = plain(request.shown_tool, TOOL)
        calls.setdefault(_giver(end.grant.by, markup), {})[f"{f'`{tool}`' if markup else tool} {done}"] = None
    return [f"{BY_GRANT}{giver}: {_listed(list(several))}." for giver, several in list(calls.items())[:GIVERS]]


def _listed(calls: Sequence[str]) -> str:
    more = f" and {len(calls) - NAMED} more" if len(calls) > NAMED else ""
    return ", ".join(calls[:NAMED]) + more


def _giver(person: Actor, markup: bool) -> str:
    return f"<@{person.id}>" if markup and person.id.isdecimal() else plain(person.name, TOOL, prose=True)


def apart(text: str) -> tuple[str, str]:
    """Return a reply and the lines that `with_lines` added below it. They are empty if there are none."""
    lines = text.split("\n")
    start = len(lines)
    while start > max(1, len(lines) - GIVERS - 1) and _is_ours(lines[start - 1].removeprefix("-# ")):
        start -= 1
    return "\n".join(lines[:start]), "\n".join(lines[start:])


def _is_ours(line: str) -> bool:
    return line in _MODES.values() or _BY_GRANT.fullmatch(line) is not None


def broken(error: Exception) -> str:
    return (
        f"Something failed on my side ({type(error).__name__}). Completed calls are kept. Mention me again; "
        "if it fails again, start a new thread and tell the operator."
    )


def not_asked(why: str) -> str:
    """Do not mention other calls of the same model response: they may have run by then."""
    return f"I could not ask for approval: {why.removesuffix('.')}. The calls that needed it were not run."


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
