"""Writes a whole world to a file and reads it back.

The file is one JSON document. It is replaced in one step, so that a crash leaves the old one. This module knows the
records' types, not their meaning. Gateway sessions, interactions and the log belong to one run and are not saved.
"""

import base64
import dataclasses
import json
import os
import types
import typing
from pathlib import Path
from typing import Any

from discord_sandbox.clock import Clock
from discord_sandbox.model import Application, Channel, Command, Guild, Json, Message, User, Webhook
from discord_sandbox.snowflake import Snowflakes
from discord_sandbox.world import World

VERSION = 1


def dump(world: World) -> Json:
    return {
        "version": VERSION,
        "last_id": world.ids.last,
        "users": _plain(list(world.users.values())),
        "applications": _plain(list(world.applications.values())),
        "guilds": _plain(list(world.guilds.values())),
        "channels": _plain(list(world.channels.values())),
        "messages": _plain([m for inner in world.messages.values() for m in inner.values()]),
        "webhooks": _plain(list(world.webhooks.values())),
        "commands": _plain(list(world.commands.values())),
    }


def load(data: Json) -> World:
    if data.get("version") != VERSION:
        raise ValueError(f"a world of version {data.get('version')!r}, expected {VERSION}")
    clock = Clock()
    world = World(clock, Snowflakes(clock.now, int(data["last_id"])))
    world.users = {u.id: u for u in _records(User, data["users"])}
    world.applications = {a.id: a for a in _records(Application, data["applications"])}
    world.guilds = {g.id: g for g in _records(Guild, data["guilds"])}
    world.channels = {c.id: c for c in _records(Channel, data["channels"])}
    for message in _records(Message, data["messages"]):
        world.add_message(message)
    world.webhooks = {w.id: w for w in _records(Webhook, data["webhooks"])}
    world.commands = {c.id: c for c in _records(Command, data["commands"])}
    return world


def save_file(world: World, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    with fresh.open("w", encoding="utf-8") as file:
        json.dump(dump(world), file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def load_file(path: Path) -> World:
    return load(json.loads(path.read_text(encoding="utf-8")))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in typing.cast(dict[Any, Any], value).items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in typing.cast(list[Any], value)]
    return value


T = typing.TypeVar("T")


def _records(kind: type[T], data: list[Json]) -> list[T]:
    return [_typed(kind, entry) for entry in data]


def _typed(kind: Any, value: Any) -> Any:
    """Build a value of the annotated type from its JSON."""
    if value is None:
        return None
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{name: _typed(hints[name], entry) for name, entry in value.items()})  # type: ignore[operator]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return _typed(next(part for part in inner if part is not types.NoneType), value)
    if origin is list:
        return [_typed(inner[0], entry) for entry in value]
    if origin is dict:
        return {inner[0](key): _typed(inner[1], entry) for key, entry in value.items()}
    if kind is bytes:
        return base64.b64decode(value)
    return value
