"""The control API's routes for the world and its failures: roles, permissions, threads, sockets, faults, clocks.

Ordinary people cannot do these things; administrators, Discord itself or failures can.
"""

from typing import Any

from discord_sandbox import faults, guilds, people, ratelimits, seed, server_changes, threads
from discord_sandbox.control.api import ControlRequest, ControlRoute
from discord_sandbox.eventlog import Entry
from discord_sandbox.gateway import INVALID_SESSION, RECONNECT
from discord_sandbox.model import Application, Guild, Json, Member, Role
from discord_sandbox.people import NotPossible
from discord_sandbox.permissions import in_channel


async def world(call: ControlRequest) -> Any:
    sb = call.sandbox
    return {
        "users": [sb.payloads.user(user) | {"name": user.name} for user in sb.world.users.values()],
        "applications": [{"id": str(app.id), "name": app.name} for app in sb.world.applications.values()],
        "guilds": [_guild(call, guild) for guild in sb.world.guilds.values()],
        "webhooks": [guilds.webhook(hook, sb.api_url) for hook in sb.world.webhooks.values()],
        "head": sb.log.head,
    }


def _guild(call: ControlRequest, guild: Guild) -> Json:
    payloads, world = call.sandbox.payloads, call.sandbox.world
    return {
        "id": str(guild.id),
        "name": guild.name,
        "owner_id": str(guild.owner_id),
        "roles": [payloads.role(role) for role in guild.roles.values()],
        "members": [payloads.member(member) for member in guild.members.values()],
        "channels": [payloads.channel(c) for c in world.channels_of(guild.id)],
        "threads": [payloads.channel(t) for t in world.threads_of(guild.id)],
    }


async def log(call: ControlRequest) -> Any:
    """Return the entries after a number; wait if there is none. `kind`, `name` (a prefix) and `channel` filter them."""
    kind, name, channel = call.query("kind", ""), call.query("name", ""), call.query("channel", "")

    def wanted(entry: Entry) -> bool:
        return (
            (not kind or entry.kind == kind)
            and entry.name.startswith(name)
            and (not channel or entry.data.get("channel_id") == channel)
        )

    entries = await call.sandbox.log.wait(int(call.query("after", "0")), wanted, float(call.query("timeout", "0")))
    limit = int(call.query("limit", "1000"))
    head = call.sandbox.log.head if len(entries) <= limit else entries[limit - 1].seq
    return {"entries": [entry.as_json() for entry in entries[:limit]], "head": head}


def _chosen_id(call: ControlRequest) -> int | None:
    """Return the id that the caller chose for a new thing; None if it does not matter."""
    number = call.json.get("number")
    if number is None:
        return None
    world = call.sandbox.world
    taken = {*world.users, *world.channels, *world.guilds, *(r for g in world.guilds.values() for r in g.roles)}
    if int(number) in taken:
        raise NotPossible(f"the id {number} is taken")
    return int(number)


def _role(call: ControlRequest, guild: Guild) -> Role:
    wanted = str(call.json["role"])
    for role in guild.roles.values():
        if wanted in (str(role.id), role.name):
            return role
    raise NotPossible(f"{guild.name} has no role {wanted!r}")


def _member(call: ControlRequest, guild: Guild) -> Member:
    user = people.find_user(call.sandbox, str(call.json["user"]))
    if user.id not in guild.members:
        raise NotPossible(f"{user.name} is not in {guild.name}")
    return guild.members[user.id]


def _application(call: ControlRequest) -> Application:
    wanted = call.json.get("bot")
    application = next(
        (a for a in call.sandbox.world.applications.values() if wanted in (None, str(a.id), a.name)), None
    )
    if application is None:
        raise NotPossible(f"there is no bot {wanted!r}")
    return application


async def roles(call: ControlRequest) -> Any:
    """`do`: grant, revoke, create, change or delete."""
    sb, guild, deed = call.sandbox, call.guild, call.json["do"]
    if deed == "create":
        permissions = int(call.json.get("permissions") or 0)
        role = server_changes.add_role(sb, guild, str(call.json["role"]), permissions, _chosen_id(call))
        return sb.payloads.role(role)
    role = _role(call, guild)
    if deed == "grant":
        server_changes.grant(sb, guild, _member(call, guild), role)
    elif deed == "revoke":
        server_changes.revoke(sb, guild, _member(call, guild), role)
    elif deed == "change":
        permissions = call.json.get("permissions")
        number = None if permissions is None else int(permissions)
        server_changes.change_role(sb, guild, role, number, call.json.get("mentionable"))
    elif deed == "delete":
        server_changes.remove_role(sb, guild, role)
    else:
        raise NotPossible(f"cannot {deed} a role")
    return sb.payloads.role(role)


async def overwrites(call: ControlRequest) -> Any:
    """Set what a channel allows or denies to a role or a user."""
    channel, target = call.channel, str(call.json["target"])
    guild = call.sandbox.world.guild_of(channel)
    role = next((r for r in guild.roles.values() if target in (str(r.id), r.name)), None) if guild else None
    number = role.id if role else people.find_user(call.sandbox, target).id
    allow, deny = int(call.json.get("allow") or 0), int(call.json.get("deny") or 0)
    server_changes.overwrite(call.sandbox, channel, number, 0 if role else 1, allow, deny)
    return call.sandbox.payloads.channel(channel)


async def permissions(call: ControlRequest) -> Any:
    return {"permissions": str(in_channel(call.sandbox.world, call.channel, call.user.id))}


async def members(call: ControlRequest) -> Any:
    """`do`: join or leave."""
    user = people.find_user(call.sandbox, str(call.json["user"]))
    if call.json["do"] == "join":
        if user.id in call.guild.banned:
            raise people.NotPossible(f"{user.name} is banned from {call.guild.name}")
        return call.sandbox.payloads.member(server_changes.join(call.sandbox, call.guild, user))
    server_changes.leave(call.sandbox, call.guild, user.id)
    return None


async def users(call: ControlRequest) -> Any:
    """Add a person, or change whether one accepts direct messages."""
    sb, name = call.sandbox, str(call.json["name"])
    user = sb.world.user_named(name) or seed.new_person(sb.world, name, _chosen_id(call))
    user.accepts_dms = bool(call.json.get("accepts_dms", user.accepts_dms))
    return sb.payloads.user(user) | {"name": user.name}


async def channels(call: ControlRequest) -> Any:
    """`do`: create (the default) or delete; a thread is deleted the same way."""
    if call.json.get("do") == "delete":
        channel = call.channel
        server_changes.remove_channel(call.sandbox, channel)
    else:
        channel = server_changes.add_channel(call.sandbox, call.guild, str(call.json["name"]), _chosen_id(call))
    return call.sandbox.payloads.channel(channel)


async def thread(call: ControlRequest) -> Any:
    where = call.channel
    threads.set_state(call.sandbox, where, archived=call.json.get("archived"), locked=call.json.get("locked"))
    return call.sandbox.payloads.channel(where)


async def archive_idle(call: ControlRequest) -> Any:
    return {"archived": [str(number) for number in threads.archive_idle(call.sandbox)]}


async def gateway(call: ControlRequest) -> Any:
    """`do`: drop, reconnect (operation 7), invalidate (operation 9) or inject an event."""
    gate, deed = call.sandbox.gateway, call.json["do"]
    resumable = bool(call.json.get("resumable", True))
    if deed == "drop":
        return {"sockets": gate.drop(resumable=resumable, code=call.json.get("code"))}
    if deed == "reconnect":
        return {"sockets": gate.tell_all(RECONNECT, None)}
    if deed == "invalidate":
        return {"sockets": gate.tell_all(INVALID_SESSION, resumable)}
    if deed == "inject":
        guild, data = call.json.get("guild_id"), call.json["data"]
        call.sandbox.log.world("injected", event=call.json["event"])
        number = None if guild is None else int(guild)
        reach = call.sandbox.sessions.publish(call.json["event"], lambda viewer: data, guild_id=number)
        return {"sockets": reach.live}
    raise NotPossible(f"the gateway cannot {deed}")


async def sessions(call: ControlRequest) -> Any:
    return [
        {
            "id": session.id,
            "bot_id": str(session.viewer.bot_id),
            "intents": session.viewer.intents,
            "shard": list(session.shard),
            "seq": session.seq,
            "live": session.outbox is not None,
        }
        for session in call.sandbox.sessions.all()
    ]


async def add_fault(call: ControlRequest) -> Any:
    call.sandbox.faults.add(faults.from_json(call.json))
    return call.sandbox.faults.as_json()


async def clear_faults(call: ControlRequest) -> Any:
    call.sandbox.faults.clear()


async def limits(call: ControlRequest) -> Any:
    """Without `rules`, use the usual ones. With `enabled` false, use none."""
    if not call.json.get("enabled", True):
        call.sandbox.limits.configure((), None)
        return None
    given = call.json.get("rules")
    chosen = ratelimits.USUAL if given is None else tuple(ratelimits.rule_from_json(rule) for rule in given)
    call.sandbox.limits.configure(chosen, call.json.get("per_second", 50))
    return None


async def settings(call: ControlRequest) -> Any:
    """Change the settings that are named: times, privileged intents, sizes, tokens."""
    sb, given = call.sandbox, call.json
    sb.interactions.deadline = float(given.get("interaction_deadline", sb.interactions.deadline))
    sb.interactions.token_life = float(given.get("token_life", sb.interactions.token_life))
    sb.clock.shift = float(given.get("clock_shift", sb.clock.shift))
    sb.attachment_limit = int(given.get("attachment_limit", sb.attachment_limit))
    sb.nonce_seconds = float(given.get("nonce_seconds", sb.nonce_seconds))
    if "hold_servers" in given:
        sb.gateway.holds_guilds = bool(given["hold_servers"])
        if not sb.gateway.holds_guilds:
            sb.gateway.release_guilds()
    sb.gateway.heartbeat_ms = int(given.get("heartbeat_ms", sb.gateway.heartbeat_ms))
    app = _application(call)
    for name in ("message_content", "members", "presences"):
        if name in given:
            setattr(app, name, bool(given[name]))
    if "add_token" in given:
        app.tokens.append(str(given["add_token"]))
    if "remove_token" in given:
        app.tokens.remove(str(given["remove_token"]))
    return {
        "interaction_deadline": sb.interactions.deadline,
        "token_life": sb.interactions.token_life,
        "clock_shift": sb.clock.shift,
        "message_content": app.message_content,
        "members": app.members,
    }


async def shutdown(call: ControlRequest) -> Any:
    call.stop()


ROUTES = [
    ControlRoute("GET", "/world", world),
    ControlRoute("GET", "/log", log),
    ControlRoute("POST", "/roles", roles),
    ControlRoute("POST", "/overwrites", overwrites),
    ControlRoute("GET", "/people/{who}/permissions", permissions),
    ControlRoute("POST", "/members", members),
    ControlRoute("POST", "/users", users),
    ControlRoute("POST", "/channels", channels),
    ControlRoute("POST", "/threads", thread),
    ControlRoute("POST", "/threads/archive-idle", archive_idle),
    ControlRoute("POST", "/gateway", gateway),
    ControlRoute("GET", "/gateway", sessions),
    ControlRoute("POST", "/faults", add_fault),
    ControlRoute("DELETE", "/faults", clear_faults),
    ControlRoute("POST", "/ratelimits", limits),
    ControlRoute("POST", "/settings", settings),
    ControlRoute("POST", "/shutdown", shutdown),
]
