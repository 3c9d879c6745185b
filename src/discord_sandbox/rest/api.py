"""The path of every REST call: authentication, injected faults, rate limits, errors, and the log.

Routes are plain functions from a `Call` to JSON; only this module deals with HTTP.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from discord_sandbox import apierrors
from discord_sandbox.apierrors import ApiError
from discord_sandbox.bundle import Sandbox
from discord_sandbox.faults import Fault
from discord_sandbox.model import Application, Json
from discord_sandbox.rest import body as bodies
from discord_sandbox.rest.body import Body

_log = logging.getLogger(__name__)

ROOT = "/api/v10"
OWN_TOKEN = ("/webhooks/", "/interactions/")


@dataclass(frozen=True)
class Call:
    """One request by one bot."""

    sandbox: Sandbox
    request: web.Request
    application: Application | None
    body: Body

    @property
    def app(self) -> Application:
        if self.application is None:
            raise apierrors.unauthorized()
        return self.application

    @property
    def bot_id(self) -> int:
        return self.app.id

    @property
    def json(self) -> Json:
        return self.body.json

    def id(self, name: str) -> int:
        return snowflake(self.request.match_info[name], name)

    def query(self, name: str, default: str | None = None) -> str | None:
        return self.request.query.get(name, default)

    def query_id(self, name: str) -> int | None:
        value = self.request.query.get(name)
        return None if value is None else snowflake(value, name)

    def flag(self, name: str) -> bool:
        return self.request.query.get(name, "").lower() in ("true", "1")


def snowflake(text: str, name: str) -> int:
    if not text.isdecimal():
        raise apierrors.bad_field((name,), "NUMBER_TYPE_COERCE", f'Value "{text}" is not snowflake.')
    return int(text)


Handler = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    handler: Handler


@dataclass(frozen=True)
class Reply:
    """A response other than 200 with JSON. A handler that returns None gives 204."""

    status: int
    value: Any = None


class RestApi:
    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def resource(self, route: Route) -> web.RouteDef:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._answer(request, route.handler)

        return web.route(route.method, ROOT + route.path, handle)

    async def unknown(self, request: web.Request) -> web.StreamResponse:
        """Handle a path without a route. It is logged as `unknown_route`, so that gaps are noticed."""
        self.sandbox.log.add("rest", "unknown_route", {"method": request.method, "path": request.path})
        return await self._answer(request, _nothing_there)

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        path = request.path.removeprefix(ROOT)
        fault = self.sandbox.faults.take(request.method, path)
        if fault is not None:
            await asyncio.sleep(fault.delay)
        body = Body()
        headers: dict[str, str] = {}
        try:
            body = await bodies.read(request, self.sandbox.attachment_limit)
            if fault is not None and not fault.after and (fault.drop or fault.status is not None):
                return self._failed(request, path, body, fault)
            application = self._caller(request, path)
            verdict = self.sandbox.limits.count(str(application and application.id), request.method, path)
            headers = verdict.headers
            if not verdict.allowed:
                return self._reply(request, path, body, Reply(429, verdict.body()), headers)
            value = await handler(Call(self.sandbox, request, application, body))
            reply = value if isinstance(value, Reply) else Reply(204 if value is None else 200, value)
        except ApiError as error:
            reply = Reply(error.status, error.body())
        except Exception as error:
            # The sandbox has a bug or cannot read the body. A 500 would be wrong: clients would retry for half a
            # minute.
            _log.exception("%s %s", request.method, path)
            self.sandbox.log.add("rest", "sandbox_error", {"path": path, "error": repr(error)})
            reply = Reply(400, {"message": f"Sandbox: {error!r}", "code": 0})
        if fault is not None and fault.after:
            return self._failed(request, path, body, fault)
        return self._reply(request, path, body, reply, headers)

    def _caller(self, request: web.Request, path: str) -> Application | None:
        """Find the calling bot. Interaction and webhook paths carry their own token; all others need the bot's."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        application = self.sandbox.world.application_of_token(token) if scheme == "Bot" else None
        if application is None and not (path == "/gateway" or path.startswith(OWN_TOKEN)):
            raise apierrors.unauthorized()
        return application

    def _failed(self, request: web.Request, path: str, body: Body, fault: Fault) -> web.StreamResponse:
        if fault.drop:
            self._log(request, path, 0, body, None)
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        return self._reply(request, path, body, Reply(fault.status or 500, fault.body), fault.headers)

    def _reply(
        self, request: web.Request, path: str, body: Body, reply: Reply, headers: dict[str, str]
    ) -> web.StreamResponse:
        self._log(request, path, reply.status, body, reply.value if reply.status >= 400 else None)
        if reply.value is None:
            return web.Response(status=reply.status, headers=headers)
        # The client compares the whole content type, so no charset may follow.
        return web.Response(
            status=reply.status,
            body=json.dumps(reply.value).encode(),
            headers={"Content-Type": "application/json"} | headers,
        )

    def _log(self, request: web.Request, path: str, status: int, body: Body, refusal: Any) -> None:
        self.sandbox.log.add(
            "rest",
            f"{request.method} {path}",
            {
                "method": request.method,
                "path": path,
                "query": dict(request.query),
                "status": status,
                "body": body.value,
                "files": [upload.filename for upload in body.uploads.values()],
                "refusal": refusal,
                "reason": unquote(request.headers.get("X-Audit-Log-Reason", "")),
            },
        )


async def _nothing_there(call: Call) -> Any:
    raise apierrors.not_found()
