"""Log in and stay connected. Each failure is one line that says what to do. Knows only discord.py's client.

An outage of Discord is not a failure: the login waits for its end, and discord.py resumes or reconnects a gateway
connection by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain, repeat

import aiohttp
import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from signoff.errors import LoginFailed, SettingsError

log = logging.getLogger(__name__)

LOGIN_DELAYS = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before each further attempt while Discord is failing. The last one repeats."""
PORTAL = "https://discord.com/developers/applications"
DISCORD = Route.BASE
"""Discord's own address. If it cannot be reached, the network is down; with any other, the URL may be wrong."""
_WRONG_TOKEN = (
    "Discord refused the token. "
    f"Copy the bot's token from {PORTAL} (Bot, Reset Token) into DISCORD_TOKEN and start again."
)
_INTENTS = (
    "Discord refused the gateway intents that the bot asks for (servers, server messages, direct messages). "
    f"Open {PORTAL}, choose the application, then Bot, turn on the missing ones under Gateway Intents, and start again."
)
_CLOSED = {
    4004: _WRONG_TOKEN,
    4010: "Discord refused the shard settings of this process.",
    4011: "Discord requires shards: the bot is in too many servers for one connection.",
    4012: "Discord no longer accepts this version of its gateway. Update discord.py.",
    4013: _INTENTS,
    4014: _INTENTS,
}


def point_at(api_url: str | None, gateway_url: str | None) -> None:
    """Use another server that speaks Discord's protocol. This is process-wide, because discord.py keeps it on classes.

    The CDN address stays as it is: the bot downloads nothing from it.
    """
    if api_url:
        Route.BASE = _checked("DISCORD_API_URL", api_url, ("http", "https"), "http://127.0.0.1:9000/api/v10")
    if gateway_url:
        checked = _checked("DISCORD_GATEWAY_URL", gateway_url, ("ws", "wss"), "ws://127.0.0.1:9000")
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(checked)


async def run_client(client: discord.Client, token: str, prepare: Callable[[], Awaitable[None]]) -> None:
    """Log in, prepare, and serve until the client is closed. Raises LoginFailed with a line for the operator."""
    async with client:
        await _through_outages(lambda: _login(client, token))
        await prepare()
        await _through_outages(lambda: _serve(client))


class _Outage(Exception):
    """Discord is failing, and trying again makes sense. The text says how it failed."""


async def _through_outages(work: Callable[[], Awaitable[None]]) -> None:
    """Repeat `work` until no outage stops it. Raises LoginFailed if the token or the URL is wrong."""
    for delay in chain(LOGIN_DELAYS, repeat(LOGIN_DELAYS[-1])):
        try:
            await work()
        except _Outage as outage:
            log.warning("%s. Trying again in %g seconds.", outage, delay)
            await asyncio.sleep(delay)
        else:
            return


async def _login(client: discord.Client, token: str) -> None:
    try:
        await _login_once(client, token)
    except _Outage:
        # The next login opens another session, and needs another connector: a session closes its own.
        await client.http.close()
        client.http.connector = discord.utils.MISSING
        raise


async def _login_once(client: discord.Client, token: str) -> None:
    where = f"{Route.BASE} (DISCORD_API_URL)"
    try:
        await client.login(token)
    except discord.LoginFailure as error:
        raise LoginFailed(_WRONG_TOKEN) from error
    except discord.HTTPException as error:
        if error.status >= 500 or error.status == 429:
            raise _Outage(f"{where} answered the login with status {error.status}") from error
        raise LoginFailed(
            f"{where} answered the login with status {error.status}. If this happens again, the URL is probably wrong: "
            "it should end in a version, as in https://discord.com/api/v10."
        ) from error
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        if Route.BASE == DISCORD:
            raise _Outage(f"Cannot reach Discord: {_short(error)}. Check the network") from error
        raise LoginFailed(
            f"Cannot reach Discord at {where}: {_short(error)}. Check the network and the URL."
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise LoginFailed(f"{where} does not answer like Discord. Check the URL.") from error


async def _serve(client: discord.Client) -> None:
    where = f"{DiscordWebSocket.DEFAULT_GATEWAY} (DISCORD_GATEWAY_URL)"
    try:
        await client.connect()
    except discord.PrivilegedIntentsRequired as error:
        raise LoginFailed(_INTENTS) from error
    except discord.ConnectionClosed as error:
        told = _CLOSED.get(error.code, f"Discord closed the gateway with code {error.code}. Start again.")
        raise LoginFailed(told) from error
    except AttributeError as error:
        # discord.py retries a first connection with fields of a socket that it never had.
        first = error.__context__
        if client.ws is not None or first is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise
        if Route.BASE == DISCORD or getattr(first, "status", 0) >= 500:
            raise _Outage(f"Cannot reach Discord's gateway: {_short(first)}") from first
        raise LoginFailed(
            f"Cannot reach Discord's gateway at {where}: {_short(first)}. Check the network and the URL."
        ) from first


def _checked(name: str, url: str, schemes: tuple[str, ...], example: str) -> str:
    try:
        parsed = yarl.URL(url.strip())
        fits = parsed.scheme in schemes and bool(parsed.host)
    except ValueError:
        fits = False
    if not fits:
        raise SettingsError(
            f"{name} is {url!r}, which is not a {' or '.join(schemes)} URL. Write for example {example}."
        )
    return url.strip().rstrip("/")


def _short(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
