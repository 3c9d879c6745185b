"""The log of the demo's incident: a service has filled the disk of web-1 with it. Contains text only."""

from __future__ import annotations

MACHINE = "web-1"
LOG = "logs/app.log"
"""Its path in the workspace."""
_LINES = 400
_NOISE = (
    "DEBUG cache hit for /api/v1/orders",
    "DEBUG pool: 8 idle connections",
    "DEBUG heartbeat sent to balancer",
    "INFO request done in 12 ms",
)
_LAST = "ERROR write failed: No space left on device"


def full_log() -> bytes:
    lines = [
        f"03:{n // 60 % 60:02d}:{n % 60:02d} {MACHINE} {_NOISE[n % len(_NOISE)]} (request {n})" for n in range(_LINES)
    ]
    return "\n".join([*lines, f"03:59:59 {MACHINE} {_LAST}", ""]).encode()
