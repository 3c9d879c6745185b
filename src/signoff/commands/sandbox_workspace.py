"""The file that the sandbox's demo works on: a log that has filled the disk. Only the sandbox has it."""

from __future__ import annotations

from pathlib import Path

LOG = "logs/app.log"
_LINES = 400
_NOISE = (
    "DEBUG cache hit for /api/v1/orders",
    "DEBUG pool: 8 idle connections",
    "DEBUG heartbeat sent to balancer",
    "INFO request done in 12 ms",
)
_LAST = "ERROR write failed: No space left on device"


def seed_workspace(workspace: Path, server: int) -> None:
    """Write the log into the server's folder if there is none, or if it was cleaned up in an earlier run."""
    log = workspace / str(server) / LOG
    if log.exists() and log.stat().st_size:
        return
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [f"03:{n // 60 % 60:02d}:{n % 60:02d} web-1 {_NOISE[n % len(_NOISE)]} (request {n})" for n in range(_LINES)]
    log.write_text("\n".join([*lines, f"03:59:59 web-1 {_LAST}", ""]), encoding="utf-8")
    log.chmod(0o600)
