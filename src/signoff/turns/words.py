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
    return f"I could not ask for approval: {why}. Nothing was run."


def gone_approvers(batch: Batch) -> str:
    """What the admins are told where a role or a person who may decide is gone; empty if nobody is."""
    gone = sorted({spec for request in batch.requests for spec in request.missing})
    if not gone:
        return ""
    named = f"For the admins: {', '.join(gone)} may decide here by a rule, and is gone."
    if not all(can_be_met(request, batch) for request in batch.requests):
        return f"{named} So nobody may decide. Change the rule with /signoff protect, or in signoff.toml."
    return f"{named} Others still may decide. Change the rule with /signoff protect, or in signoff.toml."
