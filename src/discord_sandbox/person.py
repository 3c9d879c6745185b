"""One person of a sandbox, for use in tests: they write, read, click and run commands.

Every method sends one control request, or a few if it waits. The server has the rules.
"""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from discord_sandbox.seen import Json, Outcome, Place, SeenMessage

Where = str | int | Place

PATIENCE = 30.0
"""The default time to wait, in seconds. Most things take a fraction of one."""


class SandboxError(Exception):
    """The sandbox refused. The text is the server's; `code` is Discord's error code, if there is one."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


class SandboxTimeout(SandboxError):
    """The expected event did not happen within the time that a method waited."""


class Line(Protocol):
    """The connection to the server; `SandboxClient` implements it."""

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any: ...


def place_id(where: Where) -> str:
    return str(where.id) if isinstance(where, Place) else str(where)


@dataclass(frozen=True)
class Person:
    """Somebody in the sandbox. They can do what Discord's own client offers; anything else raises `SandboxError`."""

    line: Line
    id: int
    name: str

    @property
    def mention(self) -> str:
        """The text that mentions this person."""
        return f"<@{self.id}>"

    def _path(self, rest: str) -> str:
        return f"/people/{self.id}/{rest}"

    async def say(
        self,
        where: Where,
        content: str = "",
        *,
        files: Mapping[str, bytes] | None = None,
        reply_to: SeenMessage | None = None,
        **fields: Any,
    ) -> SeenMessage:
        """Posts in a channel, thread or private conversation; further fields are Discord's own."""
        body: Json = {"channel": place_id(where), "content": content, **fields}
        if files:
            encoded = [{"filename": name, "data": base64.b64encode(data).decode()} for name, data in files.items()]
            body["files"] = encoded
        if reply_to is not None:
            body["message_reference"] = {"message_id": str(reply_to.id), "channel_id": str(reply_to.channel_id)}
        return SeenMessage(await self.line.call("POST", self._path("messages"), body))

    async def edit(self, message: SeenMessage, content: str) -> SeenMessage:
        """Changes a message of their own."""
        body = {"channel": str(message.channel_id), "content": content}
        return SeenMessage(await self.line.call("PATCH", self._path(f"messages/{message.id}"), body))

    async def delete(self, message: SeenMessage) -> None:
        """Deletes a message: their own, or any message if they have the permission."""
        body = {"channel": str(message.channel_id)}
        await self.line.call("DELETE", self._path(f"messages/{message.id}"), body)

    async def messages(self, where: Where, *, limit: int = 200) -> list[SeenMessage]:
        """Returns the channel as this person sees it, oldest first, with the private responses to them."""
        bodies = await self.line.call("GET", self._path("messages"), channel=place_id(where), limit=limit)
        return [SeenMessage(body) for body in bodies]

    async def see(self, message: SeenMessage) -> SeenMessage | None:
        """Returns the message as it is now, or None if it was deleted."""
        messages = await self.messages(message.channel_id)
        return next((entry for entry in messages if entry.id == message.id), None)

    async def wait_for_message(
        self, where: Where, matches: Callable[[SeenMessage], object] = lambda m: True, *, timeout: float = PATIENCE
    ) -> SeenMessage:
        """Waits for a message for which `matches` is true and returns the newest. The place need not exist yet."""
        end = time.monotonic() + timeout
        after, seen = 0, list[SeenMessage]()
        while True:
            after = int((await self.line.call("GET", "/log", after=1 << 60))["head"])
            try:
                seen = await self.messages(where)
            except SandboxError as error:
                if "there is no channel" not in str(error):
                    raise
            for message in reversed(seen):
                if matches(message):
                    return message
            left = end - time.monotonic()
            if left <= 0:
                shown = "\n".join(f"  {m.author}: {m.text!r}" for m in seen) or "  nothing"
                raise SandboxTimeout(f"{self.name} waited {timeout} s and saw only:\n{shown}")
            await self.line.call("GET", "/log", after=after, timeout=left, kind="world")

    async def wait_for_change(
        self, message: SeenMessage, matches: Callable[[SeenMessage], object], *, timeout: float = PATIENCE
    ) -> SeenMessage:
        """Waits until `matches` is true for this message and returns the message as it is then."""
        return await self.wait_for_message(
            message.channel_id, lambda m: m.id == message.id and matches(m), timeout=timeout
        )

    async def click(
        self,
        message: SeenMessage,
        button: str,
        *,
        wait: float | None = None,
        forged: bool = False,
        guild_id: int | None = None,
    ) -> Outcome:
        """Presses a button, by custom id or label, and returns what this person then saw."""
        known = {b.label: b.custom_id for b in message.buttons if b.custom_id}
        ids = set(known.values())
        custom_id = button if button in ids else known.get(button, button) or button
        return await self._press(message, {"custom_id": custom_id, "forged": forged, "guild_id": guild_id}, wait)

    async def pick(
        self, message: SeenMessage, custom_id: str, values: Sequence[str | int], *, wait: float | None = None
    ) -> Outcome:
        """Chooses from a select."""
        return await self._press(message, {"custom_id": custom_id, "values": [str(v) for v in values]}, wait)

    async def _press(self, message: SeenMessage, body: Json, wait: float | None) -> Outcome:
        body |= {"channel": str(message.channel_id), "message": str(message.id)}
        return Outcome(await self.line.call("POST", self._path("press"), _waiting(body, wait)))

    async def submit(
        self, outcome: Outcome, values: Mapping[str, Any], *, wait: float | None = None, forged: bool = False
    ) -> Outcome:
        """Submits the modal that an earlier press or command opened."""
        body: Json = {"interaction": str(outcome.id), "values": dict(values), "forged": forged}
        return Outcome(await self.line.call("POST", self._path("submit"), _waiting(body, wait)))

    async def run(
        self, where: Where, line: str, *, wait: float | None = None, forged: bool = False, **options: Any
    ) -> Outcome:
        """Runs a slash command: `run("general", "backup list", limit=5)`."""
        body: Json = {"channel": place_id(where), "line": line, "options": options, "forged": forged}
        return Outcome(await self.line.call("POST", self._path("command"), _waiting(body, wait)))

    async def run_on(self, target: "SeenMessage | Person", name: str, where: Where = "") -> Outcome:
        """Runs a command from the menu of a message, or of a person who is in `where`."""
        if isinstance(target, SeenMessage):
            body: Json = {"channel": str(target.channel_id), "message": str(target.id), "name": name}
        else:
            body = {"channel": place_id(where), "user": str(target.id), "name": name}
        return Outcome(await self.line.call("POST", self._path("menu"), body))

    async def suggest(self, where: Where, line: str, focused: str, **options: Any) -> Outcome:
        """Types into an option and waits for the bot's suggestions (`outcome.choices`)."""
        body: Json = {"channel": place_id(where), "line": line, "options": options, "focused": focused}
        return Outcome(await self.line.call("POST", self._path("command"), body))

    async def commands(self, where: Where) -> list[Json]:
        """Returns the slash commands that Discord offers this person here."""
        return await self.line.call("GET", self._path("commands"), channel=place_id(where))

    async def react(self, message: SeenMessage, emoji: str, *, remove: bool = False) -> None:
        """Adds a reaction, or removes it."""
        body = {"channel": str(message.channel_id), "message": str(message.id), "emoji": emoji, "remove": remove}
        await self.line.call("POST", self._path("reactions"), body)

    async def type(self, where: Where) -> None:
        """Shows "is typing" in a channel."""
        await self.line.call("POST", self._path("typing"), {"channel": place_id(where)})

    async def dm(self, other: "Person | str | int") -> Place:
        """Returns the direct conversation with somebody and opens it if necessary."""
        who = str(other.id) if isinstance(other, Person) else str(other)
        return Place(await self.line.call("POST", self._path("dm"), {"with": who}))

    async def open_thread(self, where: Where, name: str, message: SeenMessage | None = None, **fields: Any) -> Place:
        """Opens a thread, from a message if one is given."""
        body: Json = {"channel": place_id(where), "name": name, **fields}
        if message is not None:
            body["message"] = str(message.id)
        return Place(await self.line.call("POST", self._path("threads"), body))

    async def permissions(self, where: Where) -> int:
        """Returns the permissions of this person there, as Discord computes them."""
        body = await self.line.call("GET", self._path("permissions"), channel=place_id(where))
        return int(body["permissions"])


def _waiting(body: Json, wait: float | None) -> Json:
    return body if wait is None else body | {"wait": wait}
