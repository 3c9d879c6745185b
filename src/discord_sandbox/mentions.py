"""The mentions in a text, which of them may ping, and the links that a client would unfurl.

This module works on text and sets only; `posting` resolves permissions and sends the pings.
"""

import re
from dataclasses import dataclass
from typing import Any

from discord_sandbox.apierrors import bad_field
from discord_sandbox.reading import entries, fields, numbers

_USER = re.compile(r"<@!?(\d{15,21})>")
_ROLE = re.compile(r"<@&(\d{15,21})>")
_EVERYONE = re.compile(r"@(everyone|here)\b")
_LINK = re.compile(r"(?<![<\w])https?://[^\s<>|]+")
_CODE = re.compile(r"```.*?```|``.*?``|`[^`\n]+`", re.DOTALL)


@dataclass(frozen=True)
class Mentions:
    users: tuple[int, ...] = ()
    roles: tuple[int, ...] = ()
    everyone: bool = False

    def __bool__(self) -> bool:
        return bool(self.users or self.roles or self.everyone)


def find(text: str) -> Mentions:
    """Find the mentions outside of code; Discord ignores those inside."""
    plain = _CODE.sub(" ", text)
    return Mentions(
        tuple(dict.fromkeys(int(m) for m in _USER.findall(plain))),
        tuple(dict.fromkeys(int(m) for m in _ROLE.findall(plain))),
        bool(_EVERYONE.search(plain)),
    )


def links(text: str) -> list[str]:
    """Find the links that a client would fetch a preview of; not those in `<...>` or in code."""
    return list(dict.fromkeys(_LINK.findall(_CODE.sub(" ", text))))


@dataclass(frozen=True)
class Allowed:
    """A sender's `allowed_mentions`. If absent, everything pings, also the author of the message replied to."""

    parse: frozenset[str] = frozenset({"users", "roles", "everyone"})
    users: frozenset[int] = frozenset()
    roles: frozenset[int] = frozenset()
    replied_user: bool = True

    @classmethod
    def from_json(cls, given: Any) -> "Allowed":
        if given is None:
            return cls()
        data = fields(given)
        parse = frozenset(str(entry) for entry in entries(data.get("parse")))
        users = frozenset(numbers(data.get("users")))
        roles = frozenset(numbers(data.get("roles")))
        for name, listed in (("users", users), ("roles", roles)):
            if name in parse and listed:
                message = f'parse:["{name}"] and {name}: [ids...] are mutually exclusive.'
                raise bad_field(("allowed_mentions",), "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", message)
        return cls(parse, users, roles, bool(data.get("replied_user", False)))

    def filter(self, mentions: Mentions) -> Mentions:
        return Mentions(
            tuple(u for u in mentions.users if "users" in self.parse or u in self.users),
            tuple(r for r in mentions.roles if "roles" in self.parse or r in self.roles),
            mentions.everyone and "everyone" in self.parse,
        )
