"""Levers for what a person does: write, look, press, submit, run.

Each one names who does it; the rules are those of `people`, `presses` and `commandline`.
"""

import asyncio
from typing import Any

from discord_sandbox import announce, commandline, guilds, people, presses, threads
from discord_sandbox.control.desk import Ask, Lever
from discord_sandbox.interactions import Interaction
from discord_sandbox.model import Json
from discord_sandbox.people import NotPossible

_CONTROL_FIELDS = ("channel", "files", "guild", "wait")


def _content(ask: Ask) -> Json:
    return {key: value for key, value in ask.json.items() if key not in _CONTROL_FIELDS}


async def messages(ask: Ask) -> Any:
    return people.history(ask.sandbox, ask.user, ask.channel, int(ask.query("limit", "200")))


async def say(ask: Ask) -> Any:
    message = people.say(ask.sandbox, ask.user, ask.channel, _content(ask), ask.uploads)
    return people.as_seen(ask.sandbox, message, ask.user.id)


async def edit(ask: Ask) -> Any:
    message = people.edit(ask.sandbox, ask.user, ask.channel, ask.number("message"), _content(ask))
    return people.as_seen(ask.sandbox, message, ask.user.id)


async def delete(ask: Ask) -> Any:
    people.delete(ask.sandbox, ask.user, ask.channel, ask.number("message"))


async def react(ask: Ask) -> Any:
    where = ask.channel
    people.see(ask.sandbox, ask.user, where)
    message = people.find_message(ask.sandbox, where, ask.number("message"), ask.user.id)
    change = people.unreact if ask.json.get("remove") else people.react
    change(ask.sandbox, ask.user.id, where, message, str(ask.json["emoji"]), None)


async def typing(ask: Ask) -> Any:
    people.see(ask.sandbox, ask.user, ask.channel)
    announce.typing(ask.sandbox, ask.channel, ask.user.id)


async def open_dm(ask: Ask) -> Any:
    other = people.find_user(ask.sandbox, str(ask.json["with"]))
    channel = ask.sandbox.world.dm_between(ask.user.id, other.id)
    return ask.sandbox.payloads.channel(channel, ask.user.id)


async def open_thread(ask: Ask) -> Any:
    where = ask.channel
    people.see(ask.sandbox, ask.user, where)
    number = ask.json.get("message")
    message = people.find_message(ask.sandbox, where, int(number), ask.user.id) if number else None
    body: Json = {"type": 11} | _content(ask)
    thread = threads.open_thread(ask.sandbox, where, ask.user.id, body, message)
    return ask.sandbox.payloads.channel(thread, ask.user.id)


async def press(ask: Ask) -> Any:
    where, user, forged = ask.channel, ask.user, bool(ask.json.get("forged"))
    message = ask.sandbox.world.message(where.id, ask.number("message"))
    if message is None or not forged:
        message = people.find_message(ask.sandbox, where, ask.number("message"), user.id)
    guild = ask.json.get("guild_id")
    made = presses.press(
        ask.sandbox,
        user,
        message,
        str(ask.json["custom_id"]),
        ask.json.get("values"),
        forged=forged,
        guild_id=None if guild is None else int(guild),
    )
    return await _outcome(ask, made)


async def submit(ask: Ask) -> Any:
    opened_by = _interaction(ask, ask.number("interaction"))
    forged = bool(ask.json.get("forged"))
    made = presses.submit(ask.sandbox, ask.user, opened_by, ask.json.get("values") or {}, forged=forged)
    return await _outcome(ask, made)


async def command(ask: Ask) -> Any:
    made = commandline.run(
        ask.sandbox,
        ask.user,
        ask.channel,
        str(ask.json["line"]),
        ask.json.get("options") or {},
        focused=ask.json.get("focused"),
        forged=bool(ask.json.get("forged")),
    )
    return await _outcome(ask, made)


async def menu(ask: Ask) -> Any:
    where, user = ask.channel, ask.user
    if "message" in ask.json:
        target = people.find_message(ask.sandbox, where, ask.number("message"), user.id)
    else:
        target = people.find_user(ask.sandbox, str(ask.json["user"]))
    return await _outcome(ask, commandline.run_on(ask.sandbox, user, where, str(ask.json["name"]), target))


async def commands(ask: Ask) -> Any:
    return [guilds.command(found) for found in commandline.visible(ask.sandbox, ask.user, ask.channel)]


async def interaction(ask: Ask) -> Any:
    return await _outcome(ask, _interaction(ask, ask.number("interaction")))


async def replay(ask: Ask) -> Any:
    found = _interaction(ask, ask.number("interaction"))
    presses.deliver(ask.sandbox, found)
    return await _outcome(ask, found)


async def webhook(ask: Ask) -> Any:
    message = people.say_as_webhook(ask.sandbox, ask.number("webhook"), ask.json.get("username"), ask.json)
    return people.as_seen(ask.sandbox, message, None)


def _interaction(ask: Ask, number: int) -> Interaction:
    found = ask.sandbox.interactions.get(number)
    if found is None:
        raise NotPossible(f"there is no interaction {number}")
    return found


async def _outcome(ask: Ask, made: Interaction) -> Json:
    """What the person saw, once it was answered or had failed, or after `wait` seconds."""
    wait = float(ask.json.get("wait", ask.query("wait", str(ask.sandbox.interactions.deadline + 1.0))))
    try:
        await asyncio.wait_for(made.settled.wait(), wait)
    except TimeoutError:
        pass
    return presses.as_seen(ask.sandbox, made)


_WHO = "/people/{who}"
LEVERS = [
    Lever("GET", _WHO + "/messages", messages),
    Lever("POST", _WHO + "/messages", say),
    Lever("PATCH", _WHO + "/messages/{message}", edit),
    Lever("DELETE", _WHO + "/messages/{message}", delete),
    Lever("POST", _WHO + "/reactions", react),
    Lever("POST", _WHO + "/typing", typing),
    Lever("POST", _WHO + "/dm", open_dm),
    Lever("POST", _WHO + "/threads", open_thread),
    Lever("POST", _WHO + "/press", press),
    Lever("POST", _WHO + "/submit", submit),
    Lever("POST", _WHO + "/command", command),
    Lever("POST", _WHO + "/menu", menu),
    Lever("GET", _WHO + "/commands", commands),
    Lever("GET", "/interactions/{interaction}", interaction),
    Lever("POST", "/interactions/{interaction}/replay", replay),
    Lever("POST", "/webhooks/{webhook}/messages", webhook),
]
