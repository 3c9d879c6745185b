"""Registering commands: the sandbox refuses what Discord refuses, with the same codes at the same place in the form."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import discord
import pytest
from discord import app_commands

from discord_sandbox import SandboxClient, SandboxServer
from tests.rigs.real_client import Bot

Json = dict[str, Any]
Send = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
async def send(sandbox_server: SandboxServer, sandbox: SandboxClient) -> AsyncIterator[Send]:
    """Send JSON to the bot's commands; return the status and the body."""
    base = f"{sandbox_server.api_url}/applications/{sandbox.bot_id}/commands"
    async with aiohttp.ClientSession(headers={"Authorization": f"Bot {sandbox_server.token}"}) as session:

        async def request(method: str, body: Any, path: str = "") -> tuple[int, Any]:
            async with session.request(method, base + path, json=body) as response:
                return response.status, await response.json()

        yield request


def command(**fields: Any) -> Json:
    return {"name": "paint", "description": "Paints something", **fields}


def option(kind: int = 3, name: str = "colour", **fields: Any) -> Json:
    return {"type": kind, "name": name, "description": "In which colour", **fields}


def choices(count: int, **fields: Any) -> list[Json]:
    return [{"name": f"colour {number}", "value": f"c{number}", **fields} for number in range(count)]


def codes(errors: Json, path: str = "") -> dict[str, str]:
    """Return the errors of a form: path -> code."""
    flat: dict[str, str] = {path: errors["_errors"][0]["code"]} if "_errors" in errors else {}
    for key, inner in errors.items():
        if key != "_errors":
            flat |= codes(inner, f"{path}.{key}".lstrip("."))
    return flat


REFUSED: list[tuple[Json, dict[str, str]]] = [
    (command(name="Paint"), {"name": "APPLICATION_COMMAND_INVALID_NAME"}),
    (command(name="two words"), {"name": "APPLICATION_COMMAND_INVALID_NAME"}),
    (command(name="x" * 33), {"name": "BASE_TYPE_MAX_LENGTH"}),
    (command(description=""), {"description": "BASE_TYPE_REQUIRED"}),
    (command(description="x" * 101), {"description": "BASE_TYPE_MAX_LENGTH"}),
    (command(type=9), {"type": "BASE_TYPE_CHOICES"}),
    (command(type=2), {"description": "APPLICATION_COMMAND_DESCRIPTION_INVALID"}),
    (
        {"type": 3, "name": "Quote", "options": [option()]},
        {"options": "APPLICATION_COMMAND_OPTIONS_INVALID"},
    ),
    (command(name_localizations={"de": "x" * 33}), {"name_localizations.de": "BASE_TYPE_MAX_LENGTH"}),
    (command(options=[option(name=f"o{n}") for n in range(26)]), {"options": "BASE_TYPE_MAX_LENGTH"}),
    (command(options=[option(12)]), {"options.0.type": "UNION_TYPE_CHOICES"}),
    (
        command(options=[option(), option()]),
        {"options.1": "APPLICATION_COMMAND_OPTIONS_NAME_INVALID"},
    ),
    (
        command(options=[option(), option(name="size", required=True)]),
        {"options.1": "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID"},
    ),
    (
        command(options=[option(), option(1, "wall")]),
        {"options.1": "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID"},
    ),
    (
        command(options=[option(1, "wall", options=[option(1, "deeper")])]),
        {"options.0.options.0.type": "UNION_TYPE_CHOICES"},
    ),
    (
        command(options=[option(2, "wall", options=[option(3, "colour")])]),
        {"options.0.options.0.type": "UNION_TYPE_CHOICES"},
    ),
    (
        command(options=[option(autocomplete=True, choices=choices(1))]),
        {"options.0.autocomplete": "APPLICATION_COMMAND_AUTOCOMPLETE_INVALID"},
    ),
    (
        command(options=[option(6, "who", autocomplete=True)]),
        {"options.0.autocomplete": "APPLICATION_COMMAND_AUTOCOMPLETE_INVALID"},
    ),
    (command(options=[option(choices=choices(26))]), {"options.0.choices": "BASE_TYPE_MAX_LENGTH"}),
    (
        command(options=[option(choices=choices(1, value="x" * 101))]),
        {"options.0.choices.0.value": "BASE_TYPE_MAX_LENGTH"},
    ),
    (command(options=[option(choices=choices(1, name=""))]), {"options.0.choices.0.name": "BASE_TYPE_REQUIRED"}),
    (
        command(options=[option(choices=choices(2, name="same"))]),
        {"options.0.choices.1.name": "APPLICATION_COMMAND_OPTIONS_CHOICE_NAME_EXISTS"},
    ),
    (command(options=[option(4, choices=choices(1))]), {"options.0.choices.0.value": "NUMBER_TYPE_COERCE"}),
    (
        command(options=[option(5, "sure", choices=[{"name": "yes", "value": 1}])]),
        {"options.0.choices": "APPLICATION_COMMAND_OPTIONS_FIELD_INVALID"},
    ),
    (
        command(options=[option(min_value=3)]),
        {"options.0.min_value": "APPLICATION_COMMAND_OPTIONS_FIELD_INVALID"},
    ),
    (command(options=[option(max_length=6001)]), {"options.0.max_length": "NUMBER_TYPE_RANGE"}),
    (command(options=[option(min_length=5, max_length=4)]), {"options.0.min_length": "BASE_TYPE_BAD_VALUE"}),
]


@pytest.mark.parametrize(("body", "expected"), REFUSED, ids=[str(expected) for _, expected in REFUSED])
async def test_a_command_that_discord_refuses(send: Send, body: Json, expected: dict[str, str]) -> None:
    status, refusal = await send("POST", body)
    assert (status, refusal["code"], refusal["message"]) == (400, 50035, "Invalid Form Body")
    assert codes(refusal["errors"]) == expected
    status, refusal = await send("PUT", [command(name="fine"), body])
    assert status == 400
    assert codes(refusal["errors"]) == {f"1.{path}": code for path, code in expected.items()}
    assert await send("GET", None) == (200, [])


def large(characters: int) -> Json:
    """Return a command whose names, descriptions and values have this many characters in total."""
    body = command(name="c", description="d", options=[option(1, f"s{n:02}", description="d") for n in range(4)])
    left = characters - 2 - 4 * 4
    for inner in body["options"]:
        inner["options"] = []
        for number in range(25):
            step = min(left, 82)
            if step < 4:
                break
            inner["options"].append(option(3, f"o{number:02}", description="d" * (step - 3)))
            left -= step
    body["description"] += "d" * left
    return body


async def test_a_command_has_at_most_8000_characters(send: Send) -> None:
    status, made = await send("POST", large(8000))
    assert status == 201
    status, refusal = await send("POST", large(8001))
    assert (status, refusal["code"]) == (400, 50035)
    assert refusal["errors"]["_errors"] == [
        {"code": "APPLICATION_COMMAND_TOO_LARGE", "message": "Command exceeds maximum size (8000)"}
    ]
    status, refusal = await send("PUT", [large(8001)])
    assert codes(refusal["errors"]) == {"0": "APPLICATION_COMMAND_TOO_LARGE"}
    longer = {"description_localizations": {"de": "d" * (len(made["description"]) + 1), "fr": "d"}}
    status, refusal = await send("PATCH", longer, f"/{made['id']}")
    assert codes(refusal["errors"]) == {"": "APPLICATION_COMMAND_TOO_LARGE"}


async def test_names_are_unique_per_type(send: Send) -> None:
    twice = [command(), {"type": 2, "name": "paint"}, command(description="Again")]
    status, refusal = await send("PUT", twice)
    assert (status, codes(refusal["errors"])) == (400, {"2": "APPLICATION_COMMANDS_DUPLICATE_NAME"})
    status, made = await send("PUT", twice[:2])
    assert (status, [entry["type"] for entry in made]) == (200, [1, 2])
    status, other = await send("POST", command(name="draw"))
    assert status == 201
    status, refusal = await send("PATCH", {"name": "paint"}, f"/{other['id']}")
    assert (status, codes(refusal["errors"])) == (400, {"name": "APPLICATION_COMMANDS_DUPLICATE_NAME"})
    status, same = await send("POST", command(description="Replaced"))
    assert (status, same["id"], same["description"]) == (200, made[0]["id"], "Replaced")


@pytest.mark.parametrize(("kind", "most"), [(1, 100), (2, 15), (3, 15)])
async def test_a_bot_has_a_limited_number_of_commands(send: Send, kind: int, most: int) -> None:
    description = {"description": "d"} if kind == 1 else {}
    bodies = [{"type": kind, "name": f"n{number}", **description} for number in range(most + 1)]
    status, refusal = await send("PUT", bodies)
    assert (status, refusal["code"]) == (400, 30032)
    status, _ = await send("PUT", bodies[:-1])
    assert status == 200
    status, refusal = await send("POST", bodies[-1])
    assert (status, refusal["code"]) == (400, 30032)
    status, _ = await send("POST", bodies[0])
    assert status == 200


async def test_a_null_counts_as_absent(send: Send, bot: Bot, sandbox: SandboxClient) -> None:
    """interactions.py sends every field of an option, most of them as null."""
    nulls = dict.fromkeys(("min_length", "max_length", "min_value", "max_value", "choices", "channel_types", "options"))
    body = command(options=[option(**nulls, autocomplete=None, required=True)], contexts=None, dm_permission=None)
    status, made = await send("POST", body)
    assert (status, made["options"]) == (201, [option(required=True)])

    async def respond(interaction: discord.Interaction) -> None:
        await interaction.response.send_message(interaction.data["options"][0]["value"])  # type: ignore[index]

    bot.answer = respond
    outcome = await (await sandbox.person("Max")).run("general", "paint", colour="red")
    assert outcome.text == "red"
    status, edited = await send("PATCH", {"options": None}, f"/{made['id']}")
    assert (status, edited.get("options")) == (200, None)


async def test_discord_py_names_the_command_that_is_too_large(bot: Bot) -> None:
    group = app_commands.Group(name="paint", description="Paints something")
    bot.tree.add_command(group)

    async def callback(interaction: discord.Interaction, colour: str) -> None: ...

    for number in range(25):
        inner = app_commands.Command(name=f"wall{number}", description="d" * 100, callback=callback)
        inner._params["colour"].choices = [app_commands.Choice(name=f"{n:020}", value=f"{n:020}") for n in range(10)]
        group.add_command(inner)
    with pytest.raises(app_commands.CommandSyncFailure, match=r"Command exceeds maximum size \(8000\)") as refusal:
        await bot.tree.sync()
    assert (refusal.value.code, "paint" in str(refusal.value)) == (50035, True)
