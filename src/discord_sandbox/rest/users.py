"""The bot itself, its application, other users, private channels, and where the gateway is."""

from typing import Any

from discord_sandbox import apierrors, guilds
from discord_sandbox.model import Json
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
    bodies: list[Json] = []
    for guild in call.sandbox.world.guilds_of(call.bot_id):
        counts = guilds.counts(guild) if call.flag("with_counts") else {}
        bodies.append(guilds.user_guild(guild, call.bot_id) | counts)
    return bodies


async def user(call: Call) -> Any:
    found = call.sandbox.world.users.get(call.id("user_id"))
    if found is None:
        raise apierrors.unknown_user()
    return call.sandbox.payloads.user(found)


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
