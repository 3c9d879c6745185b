"""Servers: their channels, roles and members.

HTTP in, JSON out; `server_changes` makes the changes, for the control API too.
"""

from datetime import datetime
from typing import Any

from discord_sandbox import access, apierrors, guilds, hierarchy, moderation, server_changes
from discord_sandbox.model import Channel, ChannelType, Guild, Member
from discord_sandbox.permissions import Permission, can
from discord_sandbox.reading import numbers
from discord_sandbox.rest.api import Call, Reply, Route


def _guild(call: Call, *needed: int) -> Guild:
    return access.guild(call.sandbox.world, call.bot_id, call.id("guild_id"), *needed)


def _member(call: Call, guild: Guild) -> Member:
    who = call.request.match_info["user_id"]
    member = guild.members.get(call.bot_id if who == "@me" else call.id("user_id"))
    if member is None:
        known = who == "@me" or call.id("user_id") in call.sandbox.world.users
        raise apierrors.unknown_member() if known else apierrors.unknown_user()
    return member


async def get(call: Call) -> Any:
    guild = _guild(call)
    body = guilds.guild(call.sandbox.payloads, guild)
    if call.flag("with_counts"):
        body |= guilds.counts(guild)
    return body


async def channels(call: Call) -> Any:
    guild, world = _guild(call), call.sandbox.world
    channels = [c for c in world.channels_of(guild.id) if can(world, c, call.bot_id, Permission.VIEW_CHANNEL)]
    return [call.sandbox.payloads.channel(channel, call.bot_id) for channel in channels]


async def create_channel(call: Call) -> Any:
    guild = _guild(call, Permission.MANAGE_CHANNELS)
    name = call.json.get("name")
    if not isinstance(name, str) or not 1 <= len(name) <= 100:
        raise apierrors.bad_field(("name",), "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    parent, kind = _category(call, guild), int(call.json.get("type") or 0)
    if kind not in (ChannelType.TEXT, ChannelType.CATEGORY):
        raise apierrors.bad_field(("type",), "BASE_TYPE_CHOICES", "Value must be one of {0, 4}.")
    name = name if kind == ChannelType.CATEGORY else name.lower().replace(" ", "-")
    channel = server_changes.add_channel(
        call.sandbox, guild, name, kind=kind, parent=parent, topic=call.json.get("topic")
    )
    return Reply(201, call.sandbox.payloads.channel(channel, call.bot_id))


def _category(call: Call, guild: Guild) -> Channel | None:
    """Find the category that a new channel is created in. It needs the permission there, too."""
    given = call.json.get("parent_id")
    if given is None:
        return None
    channel = call.sandbox.world.channels.get(int(given))
    if channel is None or channel.guild_id != guild.id or channel.type != ChannelType.CATEGORY:
        raise apierrors.bad_field(("parent_id",), "CHANNEL_PARENT_INVALID", "Category does not exist")
    access.require(call.sandbox.world, channel, call.bot_id, Permission.VIEW_CHANNEL, Permission.MANAGE_CHANNELS)
    return channel


async def roles(call: Call) -> Any:
    return [call.sandbox.payloads.role(role) for role in _guild(call).roles.values()]


async def role_member_counts(call: Call) -> Any:
    guild = _guild(call, Permission.MANAGE_ROLES)
    held = [number for member in guild.members.values() for number in member.roles]
    return {str(number): held.count(number) for number in guild.roles if number != guild.id}


async def role(call: Call) -> Any:
    role = _guild(call).roles.get(call.id("role_id"))
    if role is None:
        raise apierrors.unknown_role()
    return call.sandbox.payloads.role(role)


async def member(call: Call) -> Any:
    return call.sandbox.payloads.member(_member(call, _guild(call)))


async def members(call: Call) -> Any:
    guild = _guild(call)
    if not call.app.members:
        raise apierrors.missing_access()
    limit, after = int(call.query("limit") or 1), call.query_id("after") or 0
    members = sorted((m for m in guild.members.values() if m.user_id > after), key=lambda m: m.user_id)
    return [call.sandbox.payloads.member(member) for member in members[:limit]]


async def search_members(call: Call) -> Any:
    guild, limit = _guild(call), int(call.query("limit") or 1)
    prefix = (call.query("query") or "").lower()
    names = {m.user_id: (m.nick or call.sandbox.world.users[m.user_id].name) for m in guild.members.values()}
    members = [m for m in guild.members.values() if names[m.user_id].lower().startswith(prefix)]
    return [call.sandbox.payloads.member(member) for member in members[:limit]]


async def edit_member(call: Call) -> Any:
    guild = _guild(call)
    member, body = _member(call, guild), call.json
    for key, needed in (
        ("roles", Permission.MANAGE_ROLES),
        ("nick", Permission.MANAGE_NICKNAMES),
        ("communication_disabled_until", Permission.MODERATE_MEMBERS),
    ):
        if key in body and not (key == "nick" and member.user_id == call.bot_id):
            _guild(call, needed)
    if "nick" in body and member.user_id != call.bot_id:
        hierarchy.require_above(guild, call.bot_id, member.user_id)
    if "communication_disabled_until" in body:
        _check_timeout(call, guild, member.user_id, body["communication_disabled_until"])
    if "roles" in body:
        wanted = [number for number in numbers(body["roles"]) if number in guild.roles]
        for number in {*wanted} ^ {*member.roles}:
            hierarchy.require_role_below(guild, call.bot_id, guild.roles[number])
        member.roles = wanted
    member.nick = body.get("nick", member.nick)
    member.timed_out_until = body.get("communication_disabled_until", member.timed_out_until)
    server_changes.member_changed(call.sandbox, guild, member)
    return call.sandbox.payloads.member(member)


def _check_timeout(call: Call, guild: Guild, target: int, until: Any) -> None:
    hierarchy.require_above(guild, call.bot_id, target)
    hierarchy.require_not_admin(guild, target)
    try:
        end = None if until is None else datetime.fromisoformat(str(until)).timestamp()
    except ValueError:
        message = f"Could not parse {until}. Should be ISO8601."
        raise apierrors.bad_field(("communication_disabled_until",), "DATE_TIME_TYPE_PARSE", message) from None
    if end is not None and end > call.sandbox.clock.now() + moderation.LONGEST_TIMEOUT:
        message = "Must be at most 28 days in the future."
        raise apierrors.bad_field(("communication_disabled_until",), "BASE_TYPE_BAD_VALUE", message)


async def change_role(call: Call) -> Any:
    guild = _guild(call, Permission.MANAGE_ROLES)
    member, number = _member(call, guild), call.id("role_id")
    if number not in guild.roles:
        raise apierrors.unknown_role()
    hierarchy.require_role_below(guild, call.bot_id, guild.roles[number])
    change = server_changes.grant if call.request.method == "PUT" else server_changes.revoke
    change(call.sandbox, guild, member, guild.roles[number])


async def kick(call: Call) -> Any:
    guild = _guild(call, Permission.KICK_MEMBERS)
    member = _member(call, guild)
    hierarchy.require_above(guild, call.bot_id, member.user_id)
    server_changes.leave(call.sandbox, guild, member.user_id)


async def ban(call: Call) -> Any:
    guild, user = _guild(call, Permission.BAN_MEMBERS), call.id("user_id")
    if user not in call.sandbox.world.users:
        raise apierrors.unknown_user()
    hierarchy.require_above(guild, call.bot_id, user)
    # discord.py sends it in the query.
    seconds = int(call.json.get("delete_message_seconds") or call.query("delete_message_seconds") or 0)
    if not 0 <= seconds <= moderation.LONGEST_DELETION:
        message = f"int value should be between 0 and {moderation.LONGEST_DELETION}."
        raise apierrors.bad_field(("delete_message_seconds",), "NUMBER_TYPE_MAX", message)
    moderation.ban(call.sandbox, guild, user, seconds)


def _banned(call: Call, guild: Guild) -> int:
    user = call.id("user_id")
    if user not in guild.banned:
        raise apierrors.unknown_ban()
    return user


async def unban(call: Call) -> Any:
    guild = _guild(call, Permission.BAN_MEMBERS)
    moderation.unban(call.sandbox, guild, _banned(call, guild))


async def get_ban(call: Call) -> Any:
    guild = _guild(call, Permission.BAN_MEMBERS)
    return moderation.entry(call.sandbox, _banned(call, guild))


async def bans(call: Call) -> Any:
    guild = _guild(call, Permission.BAN_MEMBERS)
    after, before, limit = call.query_id("after") or 0, call.query_id("before"), int(call.query("limit") or 1000)
    users = [user for user in sorted(guild.banned) if user > after and (before is None or user < before)]
    return [moderation.entry(call.sandbox, user) for user in users[:limit]]


async def create_role(call: Call) -> Any:
    guild, body = _guild(call, Permission.MANAGE_ROLES), call.json
    made = server_changes.add_role(
        call.sandbox, guild, str(body.get("name") or "new role"), int(body.get("permissions") or 0)
    )
    return call.sandbox.payloads.role(made)


async def delete_role(call: Call) -> Any:
    guild, number = _guild(call, Permission.MANAGE_ROLES), call.id("role_id")
    if number not in guild.roles or number == guild.id:
        raise apierrors.unknown_role()
    hierarchy.require_role_below(guild, call.bot_id, guild.roles[number])
    server_changes.remove_role(call.sandbox, guild, guild.roles[number])


_ONE = "/guilds/{guild_id}"
_MEMBER = _ONE + "/members/{user_id}"
ROUTES = [
    Route("GET", _ONE, get),
    Route("GET", _ONE + "/channels", channels),
    Route("POST", _ONE + "/channels", create_channel),
    Route("GET", _ONE + "/roles", roles),
    Route("POST", _ONE + "/roles", create_role),
    Route("GET", _ONE + "/roles/member-counts", role_member_counts),
    Route("GET", _ONE + "/roles/{role_id}", role),
    Route("DELETE", _ONE + "/roles/{role_id}", delete_role),
    Route("GET", _ONE + "/members/search", search_members),
    Route("GET", _ONE + "/members", members),
    Route("GET", _MEMBER, member),
    Route("PATCH", _MEMBER, edit_member),
    Route("DELETE", _MEMBER, kick),
    Route("PUT", _MEMBER + "/roles/{role_id}", change_role),
    Route("DELETE", _MEMBER + "/roles/{role_id}", change_role),
    Route("GET", _ONE + "/bans", bans),
    Route("GET", _ONE + "/bans/{user_id}", get_ban),
    Route("PUT", _ONE + "/bans/{user_id}", ban),
    Route("DELETE", _ONE + "/bans/{user_id}", unban),
]
