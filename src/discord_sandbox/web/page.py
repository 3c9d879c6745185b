"""The page over HTTP: its files, its data, and the actions of people.

Every action goes through the handlers of `control.people`, under the same rules as in tests. `guard` has already
checked the request.
"""

import hashlib
import mimetypes
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aiohttp import web

from discord_sandbox import people
from discord_sandbox.apierrors import ApiError
from discord_sandbox.bundle import Sandbox
from discord_sandbox.control import people as people_routes
from discord_sandbox.control.api import ControlRequest
from discord_sandbox.model import Json, User
from discord_sandbox.people import NotPossible
from discord_sandbox.reading import fields
from discord_sandbox.web import stream, tour, view
from discord_sandbox.web.guard import PAGE, Guard, page_policy, unknown
from discord_sandbox.web.guide import Guide
from discord_sandbox.web.markdown import render
from discord_sandbox.web.unread import Unread

STATIC = Path(__file__).with_name("static")
VERSION = "VERSION"
"""A placeholder in index.html. A digest of all files replaces it, so that a browser may cache them."""
RESTART = "bot.restart"
"""The log entry with which the page asks the program that runs the bot to kill and restart it."""
HISTORY = 400

Handler = Callable[[ControlRequest], Awaitable[Any]]


class Page:
    def __init__(self, sandbox: Sandbox, guard: Guard, guide: Guide) -> None:
        self.sandbox = sandbox
        self.guard = guard
        self.guide = guide
        self.unread = Unread(sandbox)
        # Files are read once and looked up by name: no path is ever built from a request.
        self._files = {file.name: file.read_bytes() for file in sorted(STATIC.iterdir()) if file.is_file()}
        self._run = secrets.token_hex(8)
        self._version = hashlib.sha256(b"".join(self._files.values())).hexdigest()[:16]

    def routes(self) -> list[web.RouteDef]:
        who = "people/{who}/"
        return [
            web.get(PAGE + "static/{version}/{name}", self._static),
            web.get(PAGE + who + "stream", self._stream),
            self._route("GET", who + "state", self._state),
            self._route("POST", "restart", self._restart),
            self._route("GET", who + "messages", self._messages),
            self._route("POST", who + "messages", people_routes.say),
            self._route("POST", who + "read", self._read),
            self._route("PATCH", who + "messages/{message}", people_routes.edit),
            self._route("DELETE", who + "messages/{message}", people_routes.delete),
            self._route("POST", who + "reactions", people_routes.react),
            self._route("POST", who + "typing", people_routes.typing),
            self._route("POST", who + "dm", people_routes.open_dm),
            self._route("POST", who + "press", self._acting(people_routes.press)),
            self._route("POST", who + "submit", self._acting(people_routes.submit)),
            self._route("POST", who + "command", self._acting(people_routes.command)),
            self._route("GET", who + "commands", people_routes.commands),
        ]

    async def front(self, request: web.Request) -> web.StreamResponse:
        """Handle the first request: exchange the token for a cookie and remove it from the address bar."""
        token = request.query.get("token")
        session = None if token is None else self.guard.exchange(token)
        if session is not None:
            response = web.Response(status=303, headers={"Location": "/"})
            response.set_cookie(self.guard.cookie, session, httponly=True, samesite="Strict", path="/")
            return response
        if token is not None or not self.guard.knows(request):
            return unknown()
        policy = {"Content-Security-Policy": page_policy(self.guard.netloc)}
        text = self._files["index.html"].replace(VERSION.encode(), self._version.encode())
        return web.Response(body=text, content_type="text/html", charset="utf-8", headers=policy)

    async def _static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in self._files or request.match_info["version"] != self._version:
            raise web.HTTPNotFound
        kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0]
        headers = {"Cache-Control": "private, max-age=31536000, immutable"}
        return web.Response(body=self._files[name], content_type=kind or "application/octet-stream", headers=headers)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        try:
            user = self._person(request)
            after = int(request.query.get("after", "0"))
        except (NotPossible, ValueError) as wrong:
            return _refused(400, str(wrong))
        return await stream.serve(
            self.sandbox, user, after, self._run, request, self._tour if self.guide.steps else None
        )

    def _route(self, method: str, path: str, handler: Handler) -> web.RouteDef:
        async def handle(request: web.Request) -> web.StreamResponse:
            if method != "GET" and request.content_type != "application/json":
                return _refused(415, "send JSON")
            try:
                if "who" in request.match_info:
                    self._person(request)
                body = fields(await request.json()) if method != "GET" else {}
                value = await handler(ControlRequest(self.sandbox, request, body, _nothing))
            except NotPossible as refusal:
                return web.json_response({"refused": str(refusal)})
            except ApiError as refusal:
                return web.json_response({"refused": refusal.in_words()})
            except (KeyError, ValueError, TypeError) as wrong:
                return _refused(400, f"{type(wrong).__name__}: {wrong}")
            return web.json_response(value if value is not None else {})

        return web.route(method, PAGE + path, handle)

    def _person(self, request: web.Request) -> User:
        user = people.find_user(self.sandbox, request.match_info["who"])
        if user.bot:
            raise NotPossible(f"{user.name} is a bot: nobody acts as it here")
        return user

    def _acting(self, handler: Handler) -> Handler:
        async def act(call: ControlRequest) -> Any:
            # The page is Discord's client and forges nothing; tests do that through the control API.
            honest = {key: value for key, value in call.json.items() if key not in ("forged", "guild_id")}
            return view.outcome(
                self.sandbox, await handler(ControlRequest(call.sandbox, call.request, honest, call.stop))
            )

        return act

    async def _state(self, call: ControlRequest) -> Any:
        guide = asdict(self.guide)
        guide["steps"] = [_shown(step) for step in self.guide.steps]
        run = {"run": self._run, "version": self._version}
        own = {"guide": guide, "tour": self._tour(), "unread": self.unread.of(call.user)}
        return view.state(self.sandbox, call.user) | run | own

    def _tour(self) -> Json:
        """Return the ids of the steps that were done, and step id -> its latest run."""
        now = tour.progress(self.sandbox, self.guide.steps)
        runs = {step: {**asdict(run), "then": render(run.then)} for step, run in now.runs.items()}
        return {"done": now.done, "runs": runs}

    async def _messages(self, call: ControlRequest) -> Any:
        where, user = call.channel, call.user
        people.see(self.sandbox, user, where)
        limit = min(int(call.query("limit", str(HISTORY))), 5000)
        seen = [m for m in self.sandbox.world.history(where.id) if view.may_see(self.sandbox, user, where, m)]
        return {
            "messages": [view.message(self.sandbox, message, user) for message in seen[-limit:]],
            "more": len(seen) > limit,
        }

    async def _read(self, call: ControlRequest) -> Any:
        people.see(self.sandbox, call.user, call.channel)
        self.unread.read(call.user, call.channel)

    async def _restart(self, call: ControlRequest) -> Any:
        if not self.guide.restarts:
            raise NotPossible("nobody here restarts the bot: start it again where you started it")
        self.sandbox.log.world(RESTART)


def _shown(step: Json) -> Json:
    """Return a step as the page needs it. The server alone decides what is done."""
    return {key: value for key, value in step.items() if key not in ("done", "advice")} | {"then": render(step["then"])}


def _nothing() -> None:
    """Do nothing: the page cannot stop the server."""


def _refused(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
