"""What people are told about a turn, other than its answer. Plain text: what a front end must quote, it quotes."""

from __future__ import annotations

from signoff.approvals.approvers import can_be_met
from signoff.approvals.model import Batch

STORE_FAILED = "My database failed several times, so I gave up. What has run is kept. Mention me again."
STORE_FAILS = "My database fails, so I cannot go on. What has run is kept. I will say here when it works again."


def broken(error: Exception) -> str:
    return (
        f"Something failed on my side ({type(error).__name__}). What has run is kept. Mention me again; "
        "if that fails as well, do so in another thread and tell the operator."
    )


def not_asked(why: str) -> str:
    """Others of the same answer may have run by then, so nothing is said of them."""
    return f"I could not ask for approval: {why}. What needed it was not run."


def missing_approvers_notice(batch: Batch) -> str:
    """What the admins are told where a role or a person who may decide is gone; empty if nobody is."""
    gone = sorted({spec for request in batch.questions for spec in request.missing})
    if not gone:
        return ""
    named = f"For the admins: {', '.join(gone)} may decide here by a rule, and is gone."
    return f"{named} {_who_is_left(batch)} Change the rule with /signoff protect, or in signoff.toml."


def _who_is_left(batch: Batch) -> str:
    """By number, in the order of the card: calls on one card may be decided by different people."""
    calls = len(batch.questions)
    stuck = [str(number) for number, r in enumerate(batch.questions, 1) if r.missing and not can_be_met(r, batch)]
    if not stuck:
        return "Others still may decide."
    if len(stuck) == calls:
        return "So nobody may decide."
    return f"So nobody may decide {'calls' if len(stuck) > 1 else 'call'} {', '.join(stuck)} of {calls}."
