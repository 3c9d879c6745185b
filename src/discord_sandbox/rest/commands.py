"""Registering application commands, global and per server.

Keeps what the bot registers; running a command is `slash_commands`'s work.
"""

import re
from typing import Any

from discord_sandbox import access, apierrors, guilds
from discord_sandbox.apierrors import FormErrors
from discord_sandbox.model import Command, Json
from discord_sandbox.reading import items
from discord_sandbox.rest.api import Call, Reply, Route

_NAME = re.compile(r"^[-_'\w]{1,32}$", re.UNICODE)
CHAT_INPUT, GROUPS = 1, (1, 2)


def check(body: Json, errors: FormErrors, path: tuple[str | int, ...] = ()) -> None:
    name = body.get("name")
    chat = body.get("type", CHAT_INPUT) == CHAT_INPUT or bool(path)
    errors.length((*path, "name"), name, 1, 32)
    if chat:
        if isinstance(name, str) and (not _NAME.match(name) or name != name.lower()):
            errors.add((*path, "name"), "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
        errors.length((*path, "description"), body.get("description"), 1, 100)
    options = items(body.get("options"))
    if len(options) > 25:
        errors.add((*path, "options"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    names = [option.get("name") for option in options]
    optional_seen = False
    for index, option in enumerate(options):
        where = (*path, "options", index)
        check(option, errors, where)
        if names.count(option.get("name")) > 1:
            message = "Option name must be unique"
            errors.add((*where, "name"), "APPLICATION_COMMAND_OPTIONS_NAME_INVALID", message)
        if option.get("type") in GROUPS:
            continue
        if option.get("required") and optional_seen:
            message = "Required options must be placed before non-required options"
            errors.add(where, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message)
        optional_seen = optional_seen or not option.get("required")
        if len(items(option.get("choices"))) > 25:
            errors.add((*where, "choices"), "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")


def _scope(call: Call) -> tuple[int, int | None]:
    if call.id("application_id") != call.bot_id:
        raise apierrors.ApiError(403, 20012, "You are not authorized to perform this action on this application")
    if "guild_id" not in call.request.match_info:
        return call.bot_id, None
    return call.bot_id, access.guild(call.sandbox.world, call.bot_id, call.id("guild_id")).id


def _one(call: Call) -> Command:
    application, guild = _scope(call)
    found = call.sandbox.world.commands.get(call.id("command_id"))
    if found is None or (found.application_id, found.guild_id) != (application, guild):
        raise apierrors.unknown_command()
    return found


def _keep(call: Call, body: Json) -> tuple[Command, bool]:
    """Registers a command; one of the same name and type is replaced and keeps its id."""
    world = call.sandbox.world
    application, guild = _scope(call)
    same = [
        c
        for c in world.commands_of(application, guild)
        if (c.body["name"], c.body.get("type", 1)) == (body["name"], body.get("type", 1))
    ]
    number = same[0].id if same else world.ids.next()
    made = Command(number, application, guild, world.ids.next(), body)
    world.commands[number] = made
    call.sandbox.log.world("command.registered", name=body["name"], guild_id=guild and str(guild))
    return made, not same


async def list_all(call: Call) -> Any:
    return [guilds.command(command) for command in call.sandbox.world.commands_of(*_scope(call))]


async def overwrite(call: Call) -> Any:
    scope = _scope(call)
    bodies = items(call.body.value)
    errors = FormErrors()
    for index, body in enumerate(bodies):
        check(body, errors, (index,) if body.get("type", 1) == 1 else ())
    if len([b for b in bodies if b.get("type", 1) == 1]) > 100:
        raise apierrors.ApiError(400, 30032, "Maximum number of application commands reached (100).")
    errors.check()
    kept = [_keep(call, body)[0] for body in bodies]
    for old in call.sandbox.world.commands_of(*scope):
        if old.id not in {command.id for command in kept}:
            call.sandbox.world.commands.pop(old.id)
    return [guilds.command(command) for command in kept]


async def create(call: Call) -> Any:
    errors = FormErrors()
    check(call.json, errors)
    errors.check()
    command, fresh = _keep(call, call.json)
    return Reply(201 if fresh else 200, guilds.command(command))


async def get(call: Call) -> Any:
    return guilds.command(_one(call))


async def edit(call: Call) -> Any:
    found = _one(call)
    body = found.body | call.json
    errors = FormErrors()
    check(body, errors)
    errors.check()
    found.body, found.version = body, call.sandbox.world.ids.next()
    return guilds.command(found)


async def delete(call: Call) -> Any:
    call.sandbox.world.commands.pop(_one(call).id)


ROUTES = [
    Route(method, prefix + suffix, handler)
    for prefix in ("/applications/{application_id}", "/applications/{application_id}/guilds/{guild_id}")
    for method, suffix, handler in (
        ("GET", "/commands", list_all),
        ("PUT", "/commands", overwrite),
        ("POST", "/commands", create),
        ("GET", "/commands/{command_id}", get),
        ("PATCH", "/commands/{command_id}", edit),
        ("DELETE", "/commands/{command_id}", delete),
    )
]
