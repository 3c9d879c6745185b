"""Joins the bot's parts with its metrics, and serves them while the bot runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from signoff import __version__
from signoff.core import Core
from signoff.settings import Settings, host_and_port
from signoff.store import Store


@asynccontextmanager
async def measured(settings: Settings, core: Core, store: Store, connected: Callable[[], bool]) -> AsyncGenerator[None]:
    """Serve health and metrics if SIGNOFF_HTTP is set; otherwise measure nothing."""
    if settings.http is None:
        yield
        return
    from signoff.telemetry.http import Probe, serving  # here, because few need it: it loads a web server
    from signoff.telemetry.measures import Measures

    measures = Measures(__version__)
    core.activity.listeners.append(measures.heard)
    core.desk.subscribers.append(measures.decided)
    store.on_job = measures.jobs.observe
    probe = Probe(connected, lambda: store.run(lambda tx: tx.work_left()), lambda: core.runner.slots.running)
    async with serving(host_and_port(settings.http), probe, measures):
        yield
