"""The control API's routes for people: write, read, press, submit, run.

Each request names the person. `people`, `presses` and `slash_commands` have the rules.
"""

import asyncio
from typing import Any

from discord_sandbox import announce, guilds, people, presses, slash_commands, threads
from discord_sandbox.control.api import ControlRequest, ControlRoute
from discord_sandbox.interactions import Interaction
from discord_sandbox.model import Json
from discord_sandbox.people import NotPossible

_CONTROL_FIELDS = ("channel", "files", "guild", "wait")


def _content(call: ControlRequest) -> Json:
    return {key: value for key, value in call.json.items() if key not in _CONTROL_FIELDS}


async def messages(call: ControlRequest) -> Any:
    return people.history(call.sandbox, call.user, call.channel, int(call.query("limit", "200")))


async def say(call: ControlRequest) -> Any:
    message = people.say(call.sandbox, call.user, call.channel, _content(call), call.uploads)
    return people.as_seen(call.sandbox, message, call.user.id)


async def edit(call: ControlRequest) -> Any:
    message = people.edit(call.sandbox, call.user, call.channel, call.number("message"), _content(call))
    return people.as_seen(call.sandbox, message, call.user.id)


async def delete(call: ControlRequest) -> Any:
    people.delete(call.sandbox, call.user, call.channel, call.number("message"))


async def react(call: ControlRequest) -> Any:
    where = call.channel
    people.see(call.sandbox, call.user, where)
    message = people.find_message(call.sandbox, where, call.number("message"), call.user.id)
    change = people.unreact if call.json.get("remove") else people.react
    change(call.sandbox, call.user.id, where, message, str(call.json["emoji"]), None)


async def typing(call: ControlRequest) -> Any:
    people.see(call.sandbox, call.user, call.channel)
    announce.typing(call.sandbox, call.channel, call.user.id)


async def open_dm(call: ControlRequest) -> Any:
    other = people.find_user(call.sandbox, str(call.json["with"]))
    channel = call.sandbox.world.dm_between(call.user.id, other.id)
    return call.sandbox.payloads.channel(channel, call.user.id)


async def open_thread(call: ControlRequest) -> Any:
    where = call.channel
    people.see(call.sandbox, call.user, where)
    number = call.json.get("message")
    message = people.find_message(call.sandbox, where, int(number), call.user.id) if number else None
    body: Json = {"type": 11} | _content(call)
    thread = threads.open_thread(call.sandbox, where, call.user.id, body, message)
    return call.sandbox.payloads.channel(thread, call.user.id)


async def press(call: ControlRequest) -> Any:
    where, user, forged = call.channel, call.user, bool(call.json.get("forged"))
    message = call.sandbox.world.message(where.id, call.number("message"))
    if message is None or not forged:
        message = people.find_message(call.sandbox, where, call.number("message"), user.id)
    guild = call.json.get("guild_id")
    made = presses.press(
        call.sandbox,
        user,
        message,
        str(call.json["custom_id"]),
        call.json.get("values"),
        forged=forged,
        guild_id=None if guild is None else int(guild),
    )
    return await _outcome(call, made)


async def submit(call: ControlRequest) -> Any:
    opened_by = _interaction(call, call.number("interaction"))
    forged = bool(call.json.get("forged"))
    made = presses.submit(call.sandbox, call.user, opened_by, call.json.get("values") or {}, forged=forged)
    return await _outcome(call, made)


async def command(call: ControlRequest) -> Any:
    made = slash_commands.run(
        call.sandbox,
        call.user,
        call.channel,
        str(call.json["line"]),
        call.json.get("options") or {},
        focused=call.json.get("focused"),
        forged=bool(call.json.get("forged")),
    )
    return await _outcome(call, made)


async def menu(call: ControlRequest) -> Any:
    where, user = call.channel, call.user
    if "message" in call.json:
        target = people.find_message(call.sandbox, where, call.number("message"), user.id)
    else:
        target = people.find_user(call.sandbox, str(call.json["user"]))
    return await _outcome(call, slash_commands.run_on(call.sandbox, user, where, str(call.json["name"]), target))


async def commands(call: ControlRequest) -> Any:
    return [guilds.command(command) for command in slash_commands.visible(call.sandbox, call.user, call.channel)]


async def interaction(call: ControlRequest) -> Any:
    return await _outcome(call, _interaction(call, call.number("interaction")))


async def replay(call: ControlRequest) -> Any:
    interaction = _interaction(call, call.number("interaction"))
    presses.deliver(call.sandbox, interaction)
    return await _outcome(call, interaction)


async def webhook(call: ControlRequest) -> Any:
    message = people.say_as_webhook(call.sandbox, call.number("webhook"), call.json.get("username"), call.json)
    return people.as_seen(call.sandbox, message, None)


def _interaction(call: ControlRequest, number: int) -> Interaction:
    interaction = call.sandbox.interactions.get(number)
    if interaction is None:
        raise NotPossible(f"there is no interaction {number}")
    return interaction


async def _outcome(call: ControlRequest, made: Interaction) -> Json:
    """Return the outcome that the person saw, as soon as the bot responded or failed to, or after `wait` seconds."""
    wait = float(call.json.get("wait", call.query("wait", str(call.sandbox.interactions.deadline + 1.0))))
    try:
        await asyncio.wait_for(made.settled.wait(), wait)
    except TimeoutError:
        pass
    return presses.as_seen(call.sandbox, made)


_WHO = "/people/{who}"
ROUTES = [
    ControlRoute("GET", _WHO + "/messages", messages),
    ControlRoute("POST", _WHO + "/messages", say),
    ControlRoute("PATCH", _WHO + "/messages/{message}", edit),
    ControlRoute("DELETE", _WHO + "/messages/{message}", delete),
    ControlRoute("POST", _WHO + "/reactions", react),
    ControlRoute("POST", _WHO + "/typing", typing),
    ControlRoute("POST", _WHO + "/dm", open_dm),
    ControlRoute("POST", _WHO + "/threads", open_thread),
    ControlRoute("POST", _WHO + "/press", press),
    ControlRoute("POST", _WHO + "/submit", submit),
    ControlRoute("POST", _WHO + "/command", command),
    ControlRoute("POST", _WHO + "/menu", menu),
    ControlRoute("GET", _WHO + "/commands", commands),
    ControlRoute("GET", "/interactions/{interaction}", interaction),
    ControlRoute("POST", "/interactions/{interaction}/replay", replay),
    ControlRoute("POST", "/webhooks/{webhook}/messages", webhook),
]
