"""Registers application commands, global and per server.

This module stores the commands that a bot sends; `command_form` checks them, and `slash_commands` runs them.
"""

from typing import Any

from discord_sandbox import access, apierrors, command_form, guilds
from discord_sandbox.apierrors import FormErrors
from discord_sandbox.model import Command, Json
from discord_sandbox.reading import items
from discord_sandbox.rest.api import Call, Reply, Route


def _scope(call: Call) -> tuple[int, int | None]:
    if call.id("application_id") != call.bot_id:
        raise apierrors.ApiError(403, 20012, "You are not authorized to perform this action on this application")
    if "guild_id" not in call.request.match_info:
        return call.bot_id, None
    return call.bot_id, access.guild(call.sandbox.world, call.bot_id, call.id("guild_id")).id


def _one(call: Call) -> Command:
    application, guild = _scope(call)
    command = call.sandbox.world.commands.get(call.id("command_id"))
    if command is None or (command.application_id, command.guild_id) != (application, guild):
        raise apierrors.unknown_command()
    return command


def _keep(call: Call, body: Json) -> tuple[Command, bool]:
    """Register a command; one of the same name and type is replaced and keeps its id."""
    world = call.sandbox.world
    application, guild = _scope(call)
    same = [c for c in world.commands_of(application, guild) if _same_kind(c, body) and c.body["name"] == body["name"]]
    number = same[0].id if same else world.ids.next()
    made = Command(number, application, guild, world.ids.next(), body)
    world.commands[number] = made
    call.sandbox.log.world("command.registered", name=body["name"], guild_id=guild and str(guild))
    return made, not same


async def list_all(call: Call) -> Any:
    return [guilds.command(command) for command in call.sandbox.world.commands_of(*_scope(call))]


async def overwrite(call: Call) -> Any:
    scope = _scope(call)
    bodies = items(command_form.without_nulls(call.body.value))
    for kind, most in command_form.MOST_COMMANDS.items():
        if len([body for body in bodies if command_form.kind_of(body) == kind]) > most:
            raise apierrors.too_many_commands(most)
    errors = FormErrors()
    command_form.check_all(bodies, errors)
    errors.check()
    kept = [_keep(call, body)[0] for body in bodies]
    for old in call.sandbox.world.commands_of(*scope):
        if old.id not in {command.id for command in kept}:
            call.sandbox.world.commands.pop(old.id)
    return [guilds.command(command) for command in kept]


async def create(call: Call) -> Any:
    body = command_form.without_nulls(call.json)
    _check_one(body)
    others = [c for c in call.sandbox.world.commands_of(*_scope(call)) if _same_kind(c, body)]
    most = command_form.MOST_COMMANDS[command_form.kind_of(body)]
    if len(others) >= most and body["name"] not in {c.body["name"] for c in others}:
        raise apierrors.too_many_commands(most)
    command, fresh = _keep(call, body)
    return Reply(201 if fresh else 200, guilds.command(command))


def _check_one(body: Json) -> None:
    errors = FormErrors()
    command_form.check(body, errors)
    errors.check()


def _same_kind(command: Command, body: Json) -> bool:
    return command_form.kind_of(command.body) == command_form.kind_of(body)


async def get(call: Call) -> Any:
    return guilds.command(_one(call))


async def edit(call: Call) -> Any:
    command = _one(call)
    body = command_form.without_nulls(command.body | call.json)
    _check_one(body)
    for other in call.sandbox.world.commands_of(*_scope(call)):
        if other is not command and _same_kind(other, body) and other.body["name"] == body["name"]:
            code, message = "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique"
            raise apierrors.bad_field(("name",), code, message)
    command.body, command.version = body, call.sandbox.world.ids.next()
    return guilds.command(command)


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
