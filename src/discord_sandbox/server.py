"""The sandbox as a server on loopback: REST, gateway, attachments, control API and page on one port.

This module starts and stops the server and saves the world's file; other modules have the behaviour.
"""

import asyncio
import ipaddress
import secrets
import socket
from pathlib import Path
from types import TracebackType

from aiohttp import web

from discord_sandbox import seed, state_file
from discord_sandbox.bundle import Sandbox
from discord_sandbox.control import people, world
from discord_sandbox.control.api import ControlApi
from discord_sandbox.rest import channels, commands, messages, servers, users, webhooks
from discord_sandbox.rest.api import ROOT, RestApi
from discord_sandbox.web import Guard, Guide, Page, page_token
from discord_sandbox.world import World

SAVE_SECONDS = 1.0
BACKLOG = 1024
INLINE = ("image/png", "image/jpeg", "image/gif", "image/webp")


class NotLoopback(ValueError):
    """The address is not on loopback. The sandbox has no real authentication, so others must not reach it."""


class SandboxServer:
    """Use `async with SandboxServer() as server:` and point a bot at `server.api_url` and `server.gateway_url`."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        or_any: bool = False,
        plan: seed.Plan | None = None,
        state: Path | None = None,
        key: str | None = None,
        guide: Guide | None = None,
    ) -> None:
        if host != "localhost" and not _is_loopback(host):
            raise NotLoopback(f"{host} is not a loopback address")
        self.host = host
        self.port = port
        self._or_any = or_any
        self.key = key or secrets.token_urlsafe(16)
        self.plan = plan or seed.Plan()
        self.sandbox = Sandbox.around(_world(state, self.plan))
        self.stopped = asyncio.Event()
        self.guard = Guard(page_token(self.key), file=None if state is None else state.with_name("page-sessions"))
        self._page = Page(self.sandbox, self.guard, guide or Guide())
        self._state = state
        self._runner: web.AppRunner | None = None
        self._saver: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address without a path."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}"

    @property
    def api_url(self) -> str:
        """The REST API's address, with its version."""
        return self.url + ROOT

    @property
    def gateway_url(self) -> str:
        """The gateway's address."""
        return "ws" + self.url.removeprefix("http")

    @property
    def control_url(self) -> str:
        """The control API's address, for `SandboxClient`."""
        return self.url + "/sandbox"

    @property
    def token(self) -> str:
        """The token of the first bot, which the sandbox was started for."""
        return next(iter(self.sandbox.world.applications.values())).tokens[0]

    @property
    def page_url(self) -> str:
        """The address that a person opens in a browser."""
        return f"{self.url}/?token={self.guard.token}"

    @property
    def ready_line(self) -> str:
        """One line with all addresses and the key, for `SandboxClient.from_ready_line`."""
        return f"sandbox ready {self.api_url} {self.gateway_url} control {self.control_url} key={self.key}"

    async def start(self) -> None:
        """Listens and serves until `stop`. `port` and the addresses are known afterwards."""
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        # The socket is bound here and not by aiohttp, so that port 0 is resolved before anybody reads the address.
        try:
            listener = _listen(self.host, self.port)
        except OSError:
            if not self._or_any:
                raise
            listener = _listen(self.host, 0)
        self.port = listener.getsockname()[1]
        self.guard.netloc = self.url.removeprefix("http://")
        await web.SockSite(self._runner, listener, backlog=BACKLOG).start()
        sb = self.sandbox
        sb.payloads.cdn, sb.gateway.url, sb.api_url = self.url, self.gateway_url, self.api_url
        if self._state is not None:
            self._saver = asyncio.create_task(self._keep_saving(self._state))

    async def stop(self) -> None:
        """Ends all connections, and saves the world if it has a file."""
        if self._saver is not None:
            self._saver.cancel()
        self.sandbox.gateway.drop(resumable=True, code=1001)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._state is not None:
            state_file.save_file(self.sandbox.world, self._state)

    async def __aenter__(self) -> "SandboxServer":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=1 << 30, middlewares=[self.guard.middleware()])
        app.on_response_prepare.append(self.guard.protect)
        rest = RestApi(self.sandbox)
        for module in (users, messages, channels, servers, webhooks, commands):
            app.add_routes([rest.resource(route) for route in module.ROUTES])
        control = ControlApi(self.sandbox, self.key, self.stopped.set)
        for module in (people, world):
            app.add_routes([control.resource(route) for route in module.ROUTES])
        app.router.add_get("/attachments/{channel}/{attachment}/{filename}", self._attachment)
        app.add_routes(self._page.routes())
        app.router.add_get("/", self._front)
        app.router.add_route("*", "/{rest:.*}", rest.unknown)
        return app

    async def _front(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            # Bots send no Origin. A page of another site that is open in a browser on this machine does.
            if request.headers.get("Origin", self.url) != self.url:
                raise web.HTTPForbidden
            return await self.sandbox.gateway.serve(request)
        return await self._page.front(request)

    async def _attachment(self, request: web.Request) -> web.StreamResponse:
        where, wanted = request.match_info["channel"], request.match_info["attachment"]
        stored = self.sandbox.world.messages.get(int(where) if where.isdecimal() else 0, {})
        posted = [attachment for message in stored.values() for attachment in message.attachments]
        for attachment in [*posted, *self.sandbox.interactions.files.values()]:
            if str(attachment.id) == wanted:
                kind = attachment.content_type or "application/octet-stream"
                # Everything but a plain picture is a download, so that no file ever runs in the page's origin.
                headers = {"Content-Type": kind, "X-Content-Type-Options": "nosniff"}
                if kind not in INLINE:
                    headers["Content-Disposition"] = "attachment"
                return web.Response(body=attachment.data, headers=headers)
        raise web.HTTPNotFound

    async def _keep_saving(self, state: Path) -> None:
        saved = -1
        while True:
            if saved != self.sandbox.log.head:
                saved = self.sandbox.log.head
                state_file.save_file(self.sandbox.world, state)
            await asyncio.sleep(SAVE_SECONDS)


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)  # only this call fails if another process listens there
    except OSError:
        listener.close()
        raise
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _world(state: Path | None, plan: seed.Plan) -> World:
    if state is not None and state.exists():
        return state_file.load_file(state)
    return seed.new_world(plan)
