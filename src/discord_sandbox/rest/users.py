"""The bot itself, its application, other users, direct channels, and the gateway's address.

HTTP in, JSON out.
"""

from typing import Any

from discord_sandbox import apierrors, guilds
from discord_sandbox.rest.api import Call, Route


async def gateway(call: Call) -> Any:
    return {"url": call.sandbox.gateway.url}


async def gateway_bot(call: Call) -> Any:
    limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
    return {"url": call.sandbox.gateway.url, "shards": 1, "session_start_limit": limit}


async def me(call: Call) -> Any:
    return call.sandbox.payloads.own_user(call.sandbox.world.users[call.bot_id])


async def application(call: Call) -> Any:
    return guilds.application(call.sandbox.payloads, call.app)


async def my_guilds(call: Call) -> Any:
    """Return a page of the bot's servers, sorted by id: those after `after`, or the last ones before `before`."""
    after, before, limit = call.query_id("after") or 0, call.query_id("before"), int(call.query("limit") or 200)
    if not 1 <= limit <= 200:
        raise apierrors.bad_field(("limit",), "NUMBER_TYPE_RANGE", "int value should be between 1 and 200.")
    servers = sorted(call.sandbox.world.guilds_of(call.bot_id), key=lambda guild: guild.id)
    servers = [guild for guild in servers if guild.id > after and (before is None or guild.id < before)]
    page = servers[:limit] if before is None else servers[-limit:]
    counted = call.flag("with_counts")
    return [guilds.user_guild(guild, call.bot_id) | (guilds.counts(guild) if counted else {}) for guild in page]


async def user(call: Call) -> Any:
    other = call.sandbox.world.users.get(call.id("user_id"))
    if other is None:
        raise apierrors.unknown_user()
    return call.sandbox.payloads.user(other)


async def open_dm(call: Call) -> Any:
    other = int(call.json.get("recipient_id") or 0)
    if other not in call.sandbox.world.users:
        raise apierrors.ApiError(400, 50033, "Invalid Recipient(s)")
    channel = call.sandbox.world.dm_between(call.bot_id, other)
    return call.sandbox.payloads.channel(channel, call.bot_id)


ROUTES = [
    Route("GET", "/gateway", gateway),
    Route("GET", "/gateway/bot", gateway_bot),
    Route("GET", "/oauth2/applications/@me", application),
    Route("GET", "/applications/@me", application),
    Route("GET", "/users/@me", me),
    Route("GET", "/users/@me/guilds", my_guilds),
    Route("POST", "/users/@me/channels", open_dm),
    Route("GET", "/users/{user_id}", user),
]
