"""`/healthz` and `/metrics` over HTTP, for a supervisor and for Prometheus. Off unless SIGNOFF_HTTP names an address.

Everything here can be read without a password, so it holds only numbers and the causes of a bad health. It answers
nothing but GET.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from signoff.dataclass import dataclass
from signoff.errors import SettingsError, SignoffError
from signoff.telemetry.measures import Measures, Now
from signoff.telemetry.metrics import CONTENT_TYPE

log = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds that the store has to answer."""
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True)
class Probe:
    """How to find out how the bot is doing."""

    connected: Callable[[], bool]
    """Whether Discord's gateway is connected."""
    work: Callable[[], Awaitable[Mapping[str, int]]]
    """Asks the store how much work there is."""
    running_tools: Callable[[], int]

    async def now(self) -> Now:
        work: Mapping[str, int] = {}
        try:
            work = await asyncio.wait_for(self.work(), PATIENCE)
        except (TimeoutError, SignoffError) as error:
            log.warning("the store did not answer a probe: %s", error or "it took too long")
        return Now(self.connected(), self.running_tools(), work)


@asynccontextmanager
async def serving(address: tuple[str, int], probe: Probe, measures: Measures) -> AsyncGenerator[None]:
    """Serve until the context ends. Raises SettingsError if nobody can listen on the address."""

    async def health(request: web.Request) -> web.Response:
        now = await probe.now()
        problems = [] if now.connected else ["Discord's gateway is not connected"]
        if not now.work:
            problems.append(f"the store did not answer within {PATIENCE:g} second")
        body = {"status": "unhealthy" if problems else "ok", "problems": problems}
        return web.json_response(body, status=503 if problems else 200, headers=_HEADERS)

    async def metrics(request: web.Request) -> web.Response:
        text = measures.render(await probe.now())
        return web.Response(body=text.encode(), headers={**_HEADERS, "Content-Type": CONTENT_TYPE})

    application = web.Application()
    application.router.add_get("/healthz", health, allow_head=False)
    application.router.add_get("/metrics", metrics, allow_head=False)
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    host, port = address
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            cause = (error.strerror or str(error)).lower()
            todo = "write another address, or end the program that uses this one"
            raise SettingsError(f"SIGNOFF_HTTP: cannot listen on {shown} ({cause}); {todo}") from error
        log.info("health and metrics are at http://%s/healthz and http://%s/metrics", shown, shown)
        yield
    finally:
        await runner.cleanup()
