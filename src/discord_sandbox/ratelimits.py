"""Rate limits per route and per channel, as Discord counts them. They are off until switched on.

This module counts calls and writes the headers; `rest.api` refuses calls.
"""

import hashlib
import re
from dataclasses import dataclass

from discord_sandbox.clock import Clock
from discord_sandbox.model import Json


@dataclass(frozen=True)
class Rule:
    """`limit` calls in `per` seconds, for a method and path, counted separately per channel, server and webhook."""

    method: str
    path: str
    limit: int
    per: float

    @property
    def bucket(self) -> str:
        return hashlib.md5(f"{self.method} {self.path}".encode(), usedforsecurity=False).hexdigest()


# Discord does not publish these numbers; they come from its response headers.
USUAL = (
    Rule("POST", r"/channels/\d+/messages$", 5, 5.0),
    Rule("PATCH", r"/channels/\d+/messages/\d+$", 5, 5.0),
    Rule("DELETE", r"/channels/\d+/messages/\d+$", 5, 1.0),
    Rule("POST", r"/channels/\d+/(messages/\d+/)?threads$", 10, 60.0),
    Rule("PUT", r"/channels/\d+/messages/\d+/reactions/", 1, 0.25),
)
_MAJOR = re.compile(r"^/(channels|guilds|webhooks)/(\d+)")
_EXEMPT = re.compile(r"^/(interactions|webhooks)/")


@dataclass
class _Window:
    ends: float
    used: int = 0


@dataclass(frozen=True)
class Verdict:
    allowed: bool
    headers: dict[str, str]
    retry_after: float = 0.0
    whole_bot: bool = False

    def body(self) -> Json:
        return {
            "message": "You are being rate limited.",
            "retry_after": round(self.retry_after, 3),
            "global": self.whole_bot,
        }


FREE = Verdict(True, {})


class RateLimits:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[tuple[str, str], _Window] = {}
        self.rules: tuple[Rule, ...] = ()
        self.per_second: int | None = None

    def configure(self, rules: tuple[Rule, ...], per_second: int | None) -> None:
        self.rules, self.per_second = rules, per_second
        self._windows.clear()

    def count(self, caller: str, method: str, path: str) -> Verdict:
        """Count one call. `path` is the path below the API's root."""
        if self.per_second is not None and not _EXEMPT.match(path):
            window = self._window((caller, "global"), 1.0)
            if window.used > self.per_second:
                return Verdict(False, self._refusal(window, "global"), window.ends - self._clock.now(), True)
        rule = next((r for r in self.rules if r.method == method and re.search(r.path, path)), None)
        if rule is None:
            return FREE
        major = _MAJOR.match(path)
        window = self._window((rule.bucket, major.group(0) if major else caller), rule.per)
        left = window.ends - self._clock.now()
        headers = {
            "X-RateLimit-Limit": str(rule.limit),
            "X-RateLimit-Remaining": str(max(rule.limit - window.used, 0)),
            "X-RateLimit-Reset": f"{window.ends:.3f}",
            "X-RateLimit-Reset-After": f"{left:.3f}",
            "X-RateLimit-Bucket": rule.bucket,
        }
        if window.used > rule.limit:
            return Verdict(False, headers | self._refusal(window, "user"), left)
        return Verdict(True, headers)

    def _window(self, key: tuple[str, str], per: float) -> _Window:
        now = self._clock.now()
        window = self._windows.get(key)
        if window is None or window.ends <= now:
            window = self._windows[key] = _Window(now + per)
        window.used += 1
        return window

    def _refusal(self, window: _Window, scope: str) -> dict[str, str]:
        headers = {
            "Retry-After": f"{window.ends - self._clock.now():.3f}",
            "X-RateLimit-Scope": scope,
            "Via": "1.1 sandbox",
        }
        return headers | {"X-RateLimit-Global": "true"} if scope == "global" else headers


def rule_from_json(data: Json) -> Rule:
    return Rule(str(data["method"]).upper(), str(data["path"]), int(data["limit"]), float(data["per"]))
