"""Writes one log line for each decision. It subscribes to the desk; see `events`. No names, no notes, no arguments."""

from __future__ import annotations

import logging
from typing import Any

from signoff.text.log_lines import note

log = logging.getLogger("signoff.approvals")


def log_decision(event: dict[str, Any]) -> None:
    fields = {
        "request": event["request"],
        "turn": event.get("turn"),
        "server": event["server"],
        "person": event["by"],
        "tool": event["tool"],
        "state": event["state"],
        "how": event["how"],
        "edited": event["override_args"] is not None,
        "waited": event.get("waited"),
    }
    note(log, "decision", fields)
