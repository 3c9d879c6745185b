"""Every /signoff command with options that it takes."""

from __future__ import annotations

from typing import Any

COMMANDS: dict[str, dict[str, Any]] = {
    "protect": {"tool": "delete_file"},
    "unprotect": {"rule": "abc123"},
    "policy": {},
    "test": {"tool": "delete_file"},
    "grants": {},
    "revoke": {"grant": "abc123"},
    "pending": {},
    "audit": {},
    "pause": {},
    "resume": {},
    "stop": {},
    "schedule list": {},
    "schedule remove": {"number": 1},
}
