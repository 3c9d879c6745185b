"""Messages, buttons and outcomes as a person sees them; `SandboxClient` and `Person` return these.

They are thin views of the server's JSON, which is always available as `raw`. They use no network and have no rules.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

Json = dict[str, Any]
_TEXT, _BUTTON = 10, 2
_SELECTS = (3, 5, 6, 7, 8)


@dataclass(frozen=True)
class Button:
    """A button of a message. A link button has a `url` and no `custom_id`."""

    label: str
    custom_id: str | None
    style: int
    disabled: bool
    url: str | None = None


@dataclass(frozen=True)
class Place:
    """A channel, thread or private conversation."""

    raw: Json

    @property
    def id(self) -> int:
        return int(self.raw["id"])

    @property
    def name(self) -> str:
        return str(self.raw.get("name") or "")

    @property
    def archived(self) -> bool:
        return bool(self.raw["thread_metadata"]["archived"]) if "thread_metadata" in self.raw else False


@dataclass(frozen=True)
class SeenMessage:
    """A message as one person sees it."""

    raw: Json

    @property
    def id(self) -> int:
        return int(self.raw["id"])

    @property
    def channel_id(self) -> int:
        return int(self.raw["channel_id"])

    @property
    def author_id(self) -> int:
        return int(self.raw["author"]["id"])

    @property
    def author(self) -> str:
        return str(self.raw["author"].get("global_name") or self.raw["author"]["username"])

    @property
    def content(self) -> str:
        return str(self.raw["content"])

    @property
    def text(self) -> str:
        """All text of the message: content and text displays, top to bottom."""
        return text_of(self)

    @property
    def buttons(self) -> list[Button]:
        return buttons_of(self)

    @property
    def components(self) -> list[Json]:
        return self.raw["components"]

    @property
    def flags(self) -> int:
        return int(self.raw["flags"])

    @property
    def ephemeral(self) -> bool:
        return self.raw["sandbox"]["ephemeral_to"] is not None

    @property
    def loading(self) -> bool:
        """Whether the bot "is thinking"."""
        return bool(self.flags & 1 << 7)

    @property
    def edits(self) -> int:
        return int(self.raw["sandbox"]["edits"])

    @property
    def pings(self) -> list[Json]:
        """One entry for each time people were really notified: `on` (create or edit), `users`, `roles`, `everyone`."""
        return self.raw["sandbox"]["pings"]

    @property
    def unfurls(self) -> list[str]:
        """Links that Discord would have fetched for a preview."""
        return self.raw["sandbox"]["unfurls"]

    @property
    def files(self) -> list[Json]:
        """All attachments, including those that a component shows; fetch them with `SandboxClient.fetch`."""
        return self.raw["sandbox"]["files"]

    @property
    def reactions(self) -> dict[str, int]:
        return {entry["emoji"]["name"]: entry["count"] for entry in self.raw.get("reactions", [])}


@dataclass(frozen=True)
class Outcome:
    """The result of a click, a submission or a command, as its person saw it."""

    raw: Json

    @property
    def id(self) -> int:
        return int(self.raw["id"])

    @property
    def failed(self) -> bool:
        return self.raw["state"] == "failed"

    @property
    def answered(self) -> bool:
        return self.raw["state"] == "answered"

    @property
    def error(self) -> str | None:
        """The text that Discord shows when the bot did not respond in time."""
        return self.raw["error"]

    @property
    def callback_type(self) -> int | None:
        return self.raw["callback_type"]

    @property
    def messages(self) -> list[SeenMessage]:
        """The first response and the followups, if they are messages."""
        return [SeenMessage(message) for message in self.raw["messages"]]

    @property
    def reply(self) -> SeenMessage | None:
        return self.messages[0] if self.messages else None

    @property
    def updated(self) -> SeenMessage | None:
        """The message with the button, if the response changed it."""
        return SeenMessage(self.raw["updated"]) if self.raw["updated"] else None

    @property
    def modal(self) -> Json | None:
        return self.raw["modal"]

    @property
    def choices(self) -> list[Json]:
        return self.raw["choices"] or []

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)


def walk(components: list[Json]) -> Iterator[Json]:
    """Yield every component, outermost first."""
    for part in components:
        yield part
        yield from walk(part.get("components", []))
        for key in ("accessory", "component"):
            if isinstance(inner := part.get(key), dict):
                yield from walk([cast(Json, inner)])


def text_of(message: SeenMessage) -> str:
    """Return all text of a message: content, embeds and text displays, top to bottom."""
    parts = [message.content]
    for embed in message.raw["embeds"]:
        parts += [embed.get("title") or "", embed.get("description") or ""]
        for field in embed.get("fields", []):
            parts += [field["name"], field["value"]]
    parts += [part["content"] for part in walk(message.components) if part["type"] == _TEXT]
    return "\n".join(part for part in parts if part)


def buttons_of(message: SeenMessage) -> list[Button]:
    """Return all buttons of a message, at any depth."""
    return [
        Button(part.get("label", ""), part.get("custom_id"), part["style"], bool(part.get("disabled")), part.get("url"))
        for part in walk(message.components)
        if part["type"] == _BUTTON
    ]


def selects_of(message: SeenMessage) -> list[Json]:
    """Return all selects of a message, at any depth, as JSON."""
    return [part for part in walk(message.components) if part["type"] in _SELECTS]
