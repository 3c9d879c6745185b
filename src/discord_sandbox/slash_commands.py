"""A person runs a slash command, or types into one and waits for suggestions.

This module finds the registered command, checks the options as Discord's client does, and builds the interaction's
data. `rest.commands` registers commands.
"""

from collections.abc import Mapping
from typing import Any

from discord_sandbox import people, presses
from discord_sandbox.bundle import Sandbox
from discord_sandbox.interactions import Interaction, Kind
from discord_sandbox.model import Channel, Command, Json, Message, User
from discord_sandbox.people import NotPossible
from discord_sandbox.permissions import Permission, in_channel
from discord_sandbox.reading import items

SUB_COMMAND, GROUP, STRING, INTEGER, BOOLEAN = 1, 2, 3, 4, 5
USER, CHANNEL, ROLE, MENTIONABLE, NUMBER = 6, 7, 8, 9, 10
ON_USER, ON_MESSAGE = 2, 3
# Option type -> the type of the select that resolves the same kind of object.
_PICKS = {USER: 5, CHANNEL: 8, ROLE: 6, MENTIONABLE: 7}


def visible(sb: Sandbox, user: User, where: Channel) -> list[Command]:
    """Return the commands that Discord would offer this person here."""
    guild = where.guild_id
    own = in_channel(sb.world, where, user.id)
    offered: list[Command] = []
    for command in sb.world.commands.values():
        here = command.guild_id == guild if command.guild_id is not None else _in_context(command, guild)
        if not own & Permission.USE_APPLICATION_COMMANDS:
            break
        needed = command.body.get("default_member_permissions")
        present = guild is None or sb.world.member(guild, command.application_id) is not None
        if here and present and (guild is None or needed is None or own & int(needed) == int(needed)):
            offered.append(command)
    return offered


def _in_context(command: Command, guild: int | None) -> bool:
    contexts = command.body.get("contexts")
    if guild is not None:
        return contexts is None or 0 in contexts
    return 1 in contexts if contexts is not None else bool(command.body.get("dm_permission", True))


def run(
    sb: Sandbox,
    user: User,
    where: Channel,
    line: str,
    options: Mapping[str, Any],
    *,
    focused: str | None = None,
    forged: bool = False,
) -> Interaction:
    """Run `line`, a command with its subcommands. With `focused`, ask for suggestions instead."""
    words = line.removeprefix("/").split()
    people.see(sb, user, where)
    pool = list(sb.world.commands.values()) if forged else visible(sb, user, where)
    command = next((c for c in pool if c.body["name"] == words[0] and c.body.get("type", 1) == 1), None)
    if command is None:
        raise NotPossible(f"{user.name} is not offered /{words[0]} here")
    resolved: Json = {}
    given = _options(sb, where, command.body, words[1:], options, focused, resolved, forged)
    data: Json = {"id": str(command.id), "name": command.body["name"], "type": 1, "options": given}
    if command.guild_id is not None:
        data["guild_id"] = str(command.guild_id)
    if resolved:
        data["resolved"] = resolved
    kind = Kind.AUTOCOMPLETE if focused is not None else Kind.COMMAND
    return presses.start(sb, kind, user, where, command.application_id, data, forged=forged)


def run_on(sb: Sandbox, user: User, where: Channel, name: str, target: User | Message) -> Interaction:
    """Run a command from the menu of a person (type 2) or of a message (type 3)."""
    kind = ON_USER if isinstance(target, User) else ON_MESSAGE
    people.see(sb, user, where)
    offered = visible(sb, user, where)
    command = next((c for c in offered if c.body["name"] == name and c.body.get("type") == kind), None)
    if command is None:
        raise NotPossible(f"{user.name} is not offered {name!r} here")
    data: Json = {"id": str(command.id), "name": name, "type": kind, "target_id": str(target.id)}
    if isinstance(target, User):
        data["resolved"] = presses.resolve(sb, where, _PICKS[USER], [str(target.id)])
    else:
        data["resolved"] = {"messages": {str(target.id): sb.payloads.message(target, command.application_id)}}
    return presses.start(sb, Kind.COMMAND, user, where, command.application_id, data)


def _options(
    sb: Sandbox,
    where: Channel,
    level: Json,
    words: list[str],
    options: Mapping[str, Any],
    focused: str | None,
    resolved: Json,
    forged: bool,
) -> list[Json]:
    known = items(level.get("options"))
    if words:
        inner = next((o for o in known if o["name"] == words[0] and o["type"] in (SUB_COMMAND, GROUP)), None)
        if inner is None:
            raise NotPossible(f"/{level['name']} has no {words[0]!r}")
        deeper = _options(sb, where, inner, words[1:], options, focused, resolved, forged)
        return [{"name": inner["name"], "type": inner["type"], "options": deeper}]
    if any(option["type"] in (SUB_COMMAND, GROUP) for option in known):
        raise NotPossible(f"/{level['name']} needs one of its subcommands")
    names = {option["name"] for option in known}
    if strange := set(options) - names:
        raise NotPossible(f"/{level['name']} has no option {', '.join(sorted(strange))}")
    done: list[Json] = []
    for option in known:
        name = option["name"]
        if name not in options:
            if option.get("required") and focused is None and not forged:
                raise NotPossible(f"/{level['name']} needs {name}")
            continue
        value = options[name] if focused == name or forged else _value(option, options[name])
        entry: Json = {"name": name, "type": option["type"], "value": value}
        if focused == name:
            entry["focused"] = True
        elif pick := _PICKS.get(option["type"]):
            for key, objects in presses.resolve(sb, where, pick, [str(value)]).items():
                resolved.setdefault(key, {}).update(objects)
        done.append(entry)
    return done


def _value(option: Json, value: Any) -> Any:
    """Return the value as Discord's client sends it. Raise `NotPossible` for a value that it refuses."""
    name, kind = option["name"], option["type"]
    if choices := items(option.get("choices")):
        offered = [choice["value"] for choice in choices]
        if value not in offered:
            raise NotPossible(f"{name} must be one of {offered}")
    try:
        if kind == INTEGER:
            value = int(value)
        elif kind == NUMBER:
            value = float(value)
        elif kind == BOOLEAN:
            value = bool(value)
        else:
            value = str(value)
    except ValueError:
        raise NotPossible(f"{name}: {value!r} is not a number") from None
    size = len(value) if isinstance(value, str) else value
    low, high = ("min_length", "max_length") if isinstance(value, str) else ("min_value", "max_value")
    bounded = kind in (STRING, INTEGER, NUMBER)
    if bounded and not option.get(low, size) <= size <= option.get(high, size):
        raise NotPossible(f"{name}: {value!r} is out of bounds")
    return value
