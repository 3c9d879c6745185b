"""The bot serves until told to stop, leaves without waiting for discord.py, and raises the error that stopped it."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass, field
from typing import Any

import discord
import pytest

from signoff import core
from signoff.bot.client import SignoffClient
from signoff.bot.connection import run_client
from signoff.commands import discord as app
from signoff.errors import LoginFailed

GRACE = 7.0


class Reconnecting(SignoffClient):
    """Sleeps until its next attempt to connect, as discord.py does; closing it does not wake it."""

    refused = False

    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()
        self.woken: BaseException | None = None

    async def login(self, token: str) -> None:
        if self.refused:
            raise discord.LoginFailure

    async def connect(self, *, reconnect: bool = True) -> None:
        self.asleep.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError as error:
            self.woken = error
            raise


@dataclass
class Stopped:
    """The part of the driver that takes part in leaving."""

    graces: list[float] = field(default_factory=list)

    async def stop(self, grace: float) -> None:
        self.graces.append(grace)


async def serve(client: Reconnecting, driver: Any) -> None:
    async def prepare() -> None: ...

    running = run_client(client, "token", prepare)
    await app._until_told_to_stop(running, client, driver, GRACE)  # pyright: ignore[reportPrivateUsage]


async def test_told_to_stop_between_two_attempts_to_connect_it_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "FAREWELL", 3600.0)  # otherwise it would end this process too
    client, driver = Reconnecting(), Stopped()
    serving = asyncio.ensure_future(serve(client, driver))
    await client.asleep.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(serving, 30)
    assert driver.graces == [GRACE]
    assert client.is_closed()
    assert client.woken is not None


async def test_why_it_could_not_serve_is_not_swallowed() -> None:
    client, driver = Reconnecting(), Stopped()
    client.refused = True
    with pytest.raises(LoginFailed, match="token"):
        await serve(client, driver)
    assert driver.graces == [0]
