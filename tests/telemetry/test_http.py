"""Health and metrics over HTTP: what they answer, when the health is bad, and nothing but GET."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from signoff.errors import SettingsError, StoreError
from signoff.telemetry import http
from signoff.telemetry.http import Probe, serving
from signoff.telemetry.measures import Measures

WORK = {"queued": 0, "running": 0, "waiting": 0, "open_requests": 5}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Bot:
    connected = True
    store_fails = False
    store_hangs = False

    async def work(self) -> Mapping[str, int]:
        if self.store_fails:
            raise StoreError("the disk is full")
        if self.store_hangs:
            await asyncio.Event().wait()
        return WORK

    @asynccontextmanager
    async def served(self) -> AsyncIterator[tuple[ClientSession, str]]:
        port = free_port()
        probe = Probe(lambda: self.connected, self.work, lambda: 0)
        async with serving(("127.0.0.1", port), probe, Measures("1")), ClientSession() as session:
            yield session, f"http://127.0.0.1:{port}"


@pytest.fixture
def bot() -> Bot:
    return Bot()


async def test_a_healthy_bot_says_so(bot: Bot) -> None:
    async with bot.served() as (session, url), session.get(f"{url}/healthz") as response:
        assert response.status == 200
        assert await response.json() == {"status": "ok", "problems": []}


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("disconnected", "gateway is not connected"),
        ("store_fails", "the store did not answer"),
        ("store_hangs", "the store did not answer within 0.2 second"),
    ],
)
async def test_a_bot_in_trouble_says_why(bot: Bot, trouble: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PATIENCE", 0.2)
    bot.connected = trouble != "disconnected"
    bot.store_fails = trouble == "store_fails"
    bot.store_hangs = trouble == "store_hangs"
    async with bot.served() as (session, url), session.get(f"{url}/healthz") as response:
        assert response.status == 503
        said = await response.json()
        assert said["status"] == "unhealthy"
        assert len(said["problems"]) == 1
        assert words in said["problems"][0]
        assert "disk" not in str(said), "the cause is in the log, not on the network"


async def test_metrics_are_read_by_prometheus_even_if_the_store_fails(bot: Bot) -> None:
    async with bot.served() as (session, url):
        for bot.store_fails in (False, True):
            async with session.get(f"{url}/metrics") as response:
                assert response.status == 200
                assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                numbers = {f.name: f.samples for f in text_string_to_metric_families(await response.text())}
                assert ("signoff_open_requests" in numbers) is not bot.store_fails


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_nothing_but_get_is_answered(bot: Bot, method: str) -> None:
    async with bot.served() as (session, url):
        for path in ("/healthz", "/metrics"):
            async with session.request(method, url + path) as response:
                assert response.status == 405
        async with session.get(f"{url}/other") as response:
            assert response.status == 404


async def test_it_listens_only_on_the_address_that_was_set(bot: Bot) -> None:
    async with bot.served() as (_, url):
        port = int(url.rpartition(":")[2])
        with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port), timeout=1):
            pass


async def test_a_taken_port_is_one_clear_line(bot: Bot) -> None:
    async with bot.served() as (_, url):
        port = int(url.rpartition(":")[2])
        with pytest.raises(SettingsError) as caught:
            async with serving(("127.0.0.1", port), Probe(lambda: True, bot.work, lambda: 0), Measures("1")):
                pass
    said = str(caught.value)
    assert said.startswith(f"SIGNOFF_HTTP: cannot listen on 127.0.0.1:{port} (")
    assert "\n" not in said
