"""Authorises requests to the control API, reads them, and sends the responses.

The handlers are plain functions from a `ControlRequest` to JSON and do not deal with HTTP.
"""

import base64
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from discord_sandbox import people
from discord_sandbox.apierrors import ApiError
from discord_sandbox.bundle import Sandbox
from discord_sandbox.message_contents import Upload
from discord_sandbox.model import Channel, Guild, Json, User
from discord_sandbox.people import NotPossible
from discord_sandbox.reading import fields, items

PREFIX = "/sandbox"


@dataclass(frozen=True)
class ControlRequest:
    """One control request. `stop` ends the server."""

    sandbox: Sandbox
    request: web.Request
    json: Json
    stop: Callable[[], None]

    def path(self, name: str) -> str:
        return self.request.match_info[name]

    def number(self, name: str) -> int:
        return int(self.path(name) if name in self.request.match_info else self.json[name])

    def query(self, name: str, default: str) -> str:
        return self.request.query.get(name, default)

    @property
    def user(self) -> User:
        return people.find_user(self.sandbox, self.path("who"))

    @property
    def channel(self) -> Channel:
        where = str(self.json["channel"]) if "channel" in self.json else self.query("channel", "")
        return people.find_channel(self.sandbox, where)

    @property
    def guild(self) -> Guild:
        """Find the server named in the request, by id or name; without a name, the first one."""
        wanted = str(self.json.get("guild") or "")
        for guild in self.sandbox.world.guilds.values():
            if wanted in ("", str(guild.id), guild.name):
                return guild
        raise NotPossible(f"there is no server {wanted!r}")

    @property
    def uploads(self) -> dict[int, Upload]:
        files = items(self.json.get("files"))
        return {
            number: Upload(entry["filename"], base64.b64decode(entry["data"])) for number, entry in enumerate(files)
        }


@dataclass(frozen=True)
class ControlRoute:
    method: str
    path: str
    handler: Callable[[ControlRequest], Awaitable[Any]]


class ControlApi:
    def __init__(self, sandbox: Sandbox, key: str, stop: Callable[[], None]) -> None:
        self.sandbox = sandbox
        self.key = key
        self.stop = stop

    def resource(self, route: ControlRoute) -> web.RouteDef:
        async def handle(request: web.Request) -> web.StreamResponse:
            given = request.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode(), f"Sandbox {self.key}".encode()):
                return _refused(401, "the control key is missing or wrong")
            try:
                body = fields(await request.json()) if request.can_read_body else {}
                value = await route.handler(ControlRequest(self.sandbox, request, body, self.stop))
            except NotPossible as refusal:
                return _refused(409, str(refusal))
            except ApiError as refusal:
                return _refused(409, f"{refusal} {refusal.errors or ''}".strip(), refusal.code)
            except (KeyError, ValueError, TypeError) as wrong:
                return _refused(400, f"{type(wrong).__name__}: {wrong}")
            return web.json_response(value if value is not None else {})

        return web.route(route.method, PREFIX + route.path, handle)


def _refused(status: int, text: str, code: int | None = None) -> web.Response:
    return web.json_response({"error": text, "code": code}, status=status)
