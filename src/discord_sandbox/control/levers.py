"""Levers for the world itself and for its failures: roles, permissions, threads, sockets, faults, clocks.

What a person cannot do, but an administrator or a bad day can.
"""

from typing import Any

from discord_sandbox import faults, guilds, people, ratelimits, seed, society, threads
from discord_sandbox.control.desk import Ask, Lever
from discord_sandbox.eventlog import Entry
from discord_sandbox.gateway import INVALID_SESSION, RECONNECT
from discord_sandbox.model import Application, Guild, Json, Member, Role
from discord_sandbox.people import NotPossible
from discord_sandbox.permissions import in_channel


async def world(ask: Ask) -> Any:
    sb = ask.sandbox
    return {
        "users": [sb.payloads.user(user) | {"name": user.name} for user in sb.world.users.values()],
        "applications": [{"id": str(app.id), "name": app.name} for app in sb.world.applications.values()],
        "guilds": [_guild(ask, guild) for guild in sb.world.guilds.values()],
        "webhooks": [guilds.webhook(hook, sb.api_url) for hook in sb.world.webhooks.values()],
        "head": sb.log.head,
    }


def _guild(ask: Ask, guild: Guild) -> Json:
    payloads, world = ask.sandbox.payloads, ask.sandbox.world
    return {
        "id": str(guild.id),
        "name": guild.name,
        "owner_id": str(guild.owner_id),
        "roles": [payloads.role(role) for role in guild.roles.values()],
        "members": [payloads.member(member) for member in guild.members.values()],
        "channels": [payloads.channel(c) for c in world.channels_of(guild.id)],
        "threads": [payloads.channel(t) for t in world.threads_of(guild.id)],
    }


async def log(ask: Ask) -> Any:
    """Entries after a number; waits for one if there is none. `kind`, `name` (a prefix) and `channel` narrow it."""
    kind, name, channel = ask.query("kind", ""), ask.query("name", ""), ask.query("channel", "")

    def wanted(entry: Entry) -> bool:
        return (
            (not kind or entry.kind == kind)
            and entry.name.startswith(name)
            and (not channel or entry.data.get("channel_id") == channel)
        )

    found = await ask.sandbox.log.wait(int(ask.query("after", "0")), wanted, float(ask.query("timeout", "0")))
    limit = int(ask.query("limit", "1000"))
    head = ask.sandbox.log.head if len(found) <= limit else found[limit - 1].seq
    return {"entries": [entry.as_json() for entry in found[:limit]], "head": head}


def _role(ask: Ask, guild: Guild) -> Role:
    wanted = str(ask.json["role"])
    for role in guild.roles.values():
        if wanted in (str(role.id), role.name):
            return role
    raise NotPossible(f"{guild.name} has no role {wanted!r}")


def _member(ask: Ask, guild: Guild) -> Member:
    user = people.find_user(ask.sandbox, str(ask.json["user"]))
    if user.id not in guild.members:
        raise NotPossible(f"{user.name} is not in {guild.name}")
    return guild.members[user.id]


def _application(ask: Ask) -> Application:
    wanted = ask.json.get("bot")
    found = next((a for a in ask.sandbox.world.applications.values() if wanted in (None, str(a.id), a.name)), None)
    if found is None:
        raise NotPossible(f"there is no bot {wanted!r}")
    return found


async def roles(ask: Ask) -> Any:
    """`do`: grant, revoke, create, change or delete."""
    sb, guild, deed = ask.sandbox, ask.guild, ask.json["do"]
    if deed == "create":
        role = society.add_role(sb, guild, str(ask.json["role"]), int(ask.json.get("permissions") or 0))
        return sb.payloads.role(role)
    role = _role(ask, guild)
    if deed == "grant":
        society.grant(sb, guild, _member(ask, guild), role)
    elif deed == "revoke":
        society.revoke(sb, guild, _member(ask, guild), role)
    elif deed == "change":
        permissions = ask.json.get("permissions")
        number = None if permissions is None else int(permissions)
        society.change_role(sb, guild, role, number, ask.json.get("mentionable"))
    elif deed == "delete":
        society.remove_role(sb, guild, role)
    else:
        raise NotPossible(f"cannot {deed} a role")
    return sb.payloads.role(role)


async def overwrites(ask: Ask) -> Any:
    """What a channel allows or denies to a role or a user."""
    channel, target = ask.channel, str(ask.json["target"])
    guild = ask.sandbox.world.guild_of(channel)
    role = next((r for r in guild.roles.values() if target in (str(r.id), r.name)), None) if guild else None
    number = role.id if role else people.find_user(ask.sandbox, target).id
    allow, deny = int(ask.json.get("allow") or 0), int(ask.json.get("deny") or 0)
    society.overwrite(ask.sandbox, channel, number, 0 if role else 1, allow, deny)
    return ask.sandbox.payloads.channel(channel)


async def permissions(ask: Ask) -> Any:
    return {"permissions": str(in_channel(ask.sandbox.world, ask.channel, ask.user.id))}


async def members(ask: Ask) -> Any:
    """`do`: join or leave."""
    user = people.find_user(ask.sandbox, str(ask.json["user"]))
    if ask.json["do"] == "join":
        return ask.sandbox.payloads.member(society.join(ask.sandbox, ask.guild, user))
    society.leave(ask.sandbox, ask.guild, user.id)
    return None


async def users(ask: Ask) -> Any:
    """Adds a person, or changes whether one takes private messages."""
    sb, name = ask.sandbox, str(ask.json["name"])
    user = sb.world.user_named(name) or seed.new_person(sb.world, name)
    user.accepts_dms = bool(ask.json.get("accepts_dms", user.accepts_dms))
    return sb.payloads.user(user) | {"name": user.name}


async def channels(ask: Ask) -> Any:
    """`do`: create (the default) or delete; a thread is deleted the same way."""
    if ask.json.get("do") == "delete":
        channel = ask.channel
        society.remove_channel(ask.sandbox, channel)
    else:
        channel = society.add_channel(ask.sandbox, ask.guild, str(ask.json["name"]))
    return ask.sandbox.payloads.channel(channel)


async def thread(ask: Ask) -> Any:
    where = ask.channel
    threads.set_state(ask.sandbox, where, archived=ask.json.get("archived"), locked=ask.json.get("locked"))
    return ask.sandbox.payloads.channel(where)


async def archive_idle(ask: Ask) -> Any:
    return {"archived": [str(number) for number in threads.archive_idle(ask.sandbox)]}


async def gateway(ask: Ask) -> Any:
    """`do`: drop, reconnect (op 7), invalidate (op 9) or inject an event as it is."""
    gate, deed = ask.sandbox.gateway, ask.json["do"]
    resumable = bool(ask.json.get("resumable", True))
    if deed == "drop":
        return {"sockets": gate.drop(resumable=resumable, code=ask.json.get("code"))}
    if deed == "reconnect":
        return {"sockets": gate.tell_all(RECONNECT, None)}
    if deed == "invalidate":
        return {"sockets": gate.tell_all(INVALID_SESSION, resumable)}
    if deed == "inject":
        guild, data = ask.json.get("guild_id"), ask.json["data"]
        ask.sandbox.log.world("injected", event=ask.json["event"])
        number = None if guild is None else int(guild)
        reach = ask.sandbox.sessions.publish(ask.json["event"], lambda viewer: data, guild_id=number)
        return {"sockets": reach.live}
    raise NotPossible(f"the gateway cannot {deed}")


async def sessions(ask: Ask) -> Any:
    return [
        {
            "id": session.id,
            "bot_id": str(session.viewer.bot_id),
            "intents": session.viewer.intents,
            "shard": list(session.shard),
            "seq": session.seq,
            "live": session.outbox is not None,
        }
        for session in ask.sandbox.sessions.all()
    ]


async def add_fault(ask: Ask) -> Any:
    ask.sandbox.faults.add(faults.from_json(ask.json))
    return ask.sandbox.faults.as_json()


async def clear_faults(ask: Ask) -> Any:
    ask.sandbox.faults.clear()


async def limits(ask: Ask) -> Any:
    """`rules` absent: the usual ones. `enabled` false: none at all."""
    if not ask.json.get("enabled", True):
        ask.sandbox.limits.configure((), None)
        return None
    given = ask.json.get("rules")
    chosen = ratelimits.USUAL if given is None else tuple(ratelimits.rule_from_json(rule) for rule in given)
    ask.sandbox.limits.configure(chosen, ask.json.get("per_second", 50))
    return None


async def settings(ask: Ask) -> Any:
    """Time, privileged intents and sizes; only what is named changes."""
    sb, given = ask.sandbox, ask.json
    sb.interactions.deadline = float(given.get("interaction_deadline", sb.interactions.deadline))
    sb.interactions.token_life = float(given.get("token_life", sb.interactions.token_life))
    sb.clock.shift = float(given.get("clock_shift", sb.clock.shift))
    sb.attachment_limit = int(given.get("attachment_limit", sb.attachment_limit))
    sb.gateway.heartbeat_ms = int(given.get("heartbeat_ms", sb.gateway.heartbeat_ms))
    app = _application(ask)
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


async def shutdown(ask: Ask) -> Any:
    ask.stop()


LEVERS = [
    Lever("GET", "/world", world),
    Lever("GET", "/log", log),
    Lever("POST", "/roles", roles),
    Lever("POST", "/overwrites", overwrites),
    Lever("GET", "/people/{who}/permissions", permissions),
    Lever("POST", "/members", members),
    Lever("POST", "/users", users),
    Lever("POST", "/channels", channels),
    Lever("POST", "/threads", thread),
    Lever("POST", "/threads/archive-idle", archive_idle),
    Lever("POST", "/gateway", gateway),
    Lever("GET", "/gateway", sessions),
    Lever("POST", "/faults", add_fault),
    Lever("DELETE", "/faults", clear_faults),
    Lever("POST", "/ratelimits", limits),
    Lever("POST", "/settings", settings),
    Lever("POST", "/shutdown", shutdown),
]
