"""Failures on request: the next calls that match fail, are delayed, or get no response.

This module chooses and counts; `rest.api` carries the faults out.
"""

import re
from dataclasses import dataclass, field

from discord_sandbox.model import Json
from discord_sandbox.reading import fields


@dataclass
class Fault:
    """One fault. Without a `status` the call is only delayed. `after`: carry the call out, then lose its response."""

    method: str
    path: re.Pattern[str]
    left: int = 1
    status: int | None = None
    body: Json | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    after: bool = False
    drop: bool = False

    def matches(self, method: str, path: str) -> bool:
        return self.left > 0 and self.method in ("*", method) and bool(self.path.search(path))


class Faults:
    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Return the fault for this call, if there is one, and count it as used once."""
        for fault in self._waiting:
            if fault.matches(method, path):
                fault.left -= 1
                self._waiting = [waiting for waiting in self._waiting if waiting.left > 0]
                return fault
        return None

    def as_json(self) -> list[Json]:
        return [
            {"method": f.method, "path": f.path.pattern, "times": f.left, "status": f.status, "delay": f.delay}
            for f in self._waiting
        ]


def from_json(data: Json) -> Fault:
    """Read a fault as the control API describes it. A 429 gets the body and the headers that clients read."""
    status = data.get("status")
    body = data.get("body")
    headers = {str(key): str(value) for key, value in fields(data.get("headers")).items()}
    if status == 429:
        retry = float(data.get("retry_after", 0.5))
        body = body or {"message": "You are being rate limited.", "retry_after": retry, "global": False}
        headers = {"Via": "1.1 sandbox", "Retry-After": str(retry), "X-RateLimit-Scope": "user"} | headers
    elif status is not None and body is None:
        body = {"message": data.get("message", f"{status}: Injected"), "code": int(data.get("code", 0))}
    return Fault(
        method=str(data.get("method", "*")).upper(),
        path=re.compile(str(data.get("path", ""))),
        left=int(data.get("times", 1)),
        status=status,
        body=body,
        headers=headers,
        delay=float(data.get("delay", 0.0)),
        after=bool(data.get("after", False)),
        drop=bool(data.get("drop", False)),
    )
