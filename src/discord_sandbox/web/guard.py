"""Guards the port: the printed token, the cookie that replaces it, and the Host and Origin checks.

A web page anywhere can send requests to loopback, and a host name that resolves to loopback can even read the
responses. So every request must name exactly this address, and a request from another origin is refused, whether it is
for the page, for the control API or for the bot's API. This module knows headers and paths only.
"""

import hashlib
import hmac
import os
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

PAGE = "/page/"
OPEN_SESSIONS = 64
"""The most browsers at once. With one more, the oldest must open the page again."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
CLOSED = "default-src 'none'; frame-ancestors 'none'; sandbox"
"""The policy for all responses but the page, above all attachments: no script runs in them."""


def page_token(key: str) -> str:
    """Derive the page's token. The control key cannot be computed from it."""
    return hmac.digest(key.encode(), b"discord sandbox page", hashlib.sha256).hex()[:40]


def _digest(session: str) -> str:
    """Return what is kept of a session. Nobody who reads the file can open the page with it."""
    return hashlib.sha256(session.encode()).hexdigest()


def page_policy(netloc: str) -> str:
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self' ws://{netloc}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types page"
    )


@dataclass
class Guard:
    """Checks each request. `netloc` is set once the server knows its port; before that, every request is refused."""

    token: str
    netloc: str = ""
    file: Path | None = None
    """A file that keeps the digests of the sessions, so that open pages go on working after a restart."""
    _sessions: OrderedDict[str, None] = field(default_factory=OrderedDict[str, None])

    def __post_init__(self) -> None:
        if self.file is not None and self.file.exists():
            known = self.file.read_text(encoding="utf-8").split()
            self._sessions = OrderedDict.fromkeys(known[-OPEN_SESSIONS:])

    @property
    def origin(self) -> str:
        return f"http://{self.netloc}"

    @property
    def cookie(self) -> str:
        """The cookie's name. It contains the port, because browsers share cookies between ports."""
        return f"sandbox_page_{self.netloc.rpartition(':')[2]}"

    def exchange(self, token: str) -> str | None:
        """Return a new session if the token is right."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[_digest(session)] = None
        while len(self._sessions) > OPEN_SESSIONS:
            self._sessions.popitem(last=False)
        self._save()
        return session

    def _save(self) -> None:
        if self.file is None:
            return
        handle = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as output:
            output.write("\n".join(self._sessions))

    def knows(self, request: web.Request) -> bool:
        return _digest(request.cookies.get(self.cookie, "")) in self._sessions

    def refusal(self, request: web.Request) -> str | None:
        """Return the reason why this request is refused, or None."""
        if request.headers.getall("Host", []) != [self.netloc]:
            return f"this server answers requests to {self.netloc} only"
        origin = request.headers.get("Origin")
        if origin is not None and origin != self.origin:
            return "requests from other pages are refused"
        if not request.path.startswith(PAGE):
            return self._refused_elsewhere(request)
        site = request.headers.get("Sec-Fetch-Site")
        if site not in (None, "same-origin"):
            return "requests from other pages are refused"
        changes = request.method not in ("GET", "HEAD") or "upgrade" in request.headers.get("Connection", "").lower()
        if changes and origin is None:
            return "a request that changes something must say where it comes from"
        return None

    def _refused_elsewhere(self, request: web.Request) -> str | None:
        """Check a request to the bot's API, which is for programs: they send none of a browser's headers."""
        site = request.headers.get("Sec-Fetch-Site")
        if site is None or request.path == "/":
            return None
        if site not in ("same-origin", "none") or not self.knows(request):
            return "open the page with the printed address first"
        return None

    def middleware(self) -> Middleware:
        @web.middleware
        async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
            problem = self.refusal(request)
            if problem is not None:
                return web.Response(status=403, text=f"Refused: {problem}.\n", headers=HEADERS)
            if request.path.startswith(PAGE) and not self.knows(request):
                return unknown()
            return await handler(request)

        return checked

    async def protect(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers that keep a browser from doing more than showing the response."""
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Content-Security-Policy", CLOSED)


def unknown() -> web.Response:
    """Return the page for somebody who comes without the token."""
    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Discord sandbox</title>"
        "<h1>Discord sandbox</h1><p>This page opens with the address that the sandbox printed when it started. It "
        "ends in <code>/?token=...</code>. An address from an earlier start no longer works.</p></html>"
    )
    return web.Response(status=401, text=text, content_type="text/html", headers=HEADERS)
