"""A server's people, roles, channels and messages as plain data, and an act that changes something there.

`bot` fills in the data from Discord at the moment of asking; nothing here is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from signoff.dataclass import dataclass

Rank = tuple[int, int]
"""A role's place in the order of roles, more is higher: its position, then its id, of which the smaller is higher."""


@dataclass(frozen=True, slots=True)
class Role:
    id: str
    name: str
    rank: Rank
    rights: frozenset[str] = frozenset()
    """Names of permissions, as in `permissions.NAMES`."""
    is_everyone: bool = False
    is_managed: bool = False
    """Whether it belongs to a bot, to boosters or to a subscription. Nobody can assign such a role."""


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    name: str
    roles: tuple[Role, ...] = ()
    """Without @everyone."""
    rights: frozenset[str] = frozenset()
    """The permissions in the server."""
    rights_here: frozenset[str] = frozenset()
    """The permissions in the channel of the act; empty if there is no channel, or if the member cannot see it."""
    is_owner: bool = False
    is_bot: bool = False
    silenced_until: str = ""
    """The end of a timeout; empty: none."""

    @property
    def top(self) -> Role | None:
        return max(self.roles, key=lambda role: role.rank, default=None)

    @property
    def rank(self) -> Rank:
        return self.top.rank if self.top else (0, 0)

    @property
    def is_admin(self) -> bool:
        return self.is_owner or "administrator" in self.rights


class ChannelKind(StrEnum):
    TEXT = "text channel"
    THREAD = "thread"
    VOICE = "voice channel"
    CATEGORY = "category"
    FORUM = "forum"
    OTHER = "channel"

    @property
    def has_messages(self) -> bool:
        return self in (ChannelKind.TEXT, ChannelKind.THREAD)


@dataclass(frozen=True, slots=True)
class Channel:
    id: str
    name: str
    kind: ChannelKind
    slow_mode: int = 0
    """Seconds between two messages of one person; 0: off."""
    is_locked: bool = False
    """Whether it is a thread in which only those who manage threads may write."""


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    author: str
    """The author's id."""
    author_name: str
    at: str
    text: str
    """Empty if the message has no text, or if Discord withholds it: see `is_withheld`."""
    is_withheld: bool = False
    is_pinned: bool = False
    extras: str = ""
    """What the message has besides text, for example "2 files"."""


class Kind(StrEnum):
    """The kinds of acts. Each value is the name of the tool."""

    POST = "post_message"
    PIN = "pin_message"
    UNPIN = "unpin_message"
    THREAD = "create_thread"
    CHANNEL = "create_channel"
    SLOW_MODE = "set_slow_mode"
    TIME_OUT = "time_out_member"
    KICK = "kick_member"
    BAN = "ban_member"
    UNBAN = "unban_user"
    DELETE = "delete_messages"
    ASSIGN = "assign_role"
    REMOVE = "remove_role"


class Ping(StrEnum):
    """Whom a posted message notifies."""

    NOBODY = "nobody"
    PEOPLE = "people"
    """The people whom its text mentions."""
    EVERYONE = "everyone"
    """Also everybody, by @everyone or @here."""


@dataclass(frozen=True, slots=True)
class Act:
    """One change in a server. Empty fields do not matter for its kind."""

    kind: Kind
    channel: str = ""
    """Of a new channel: its category."""
    member: str = ""
    role: str = ""
    messages: tuple[str, ...] = ()
    text: str = ""
    """The text of a post, or the name of a new thread or channel."""
    topic: str = ""
    number: int = 0
    """Seconds of slow mode, minutes of a timeout, or days of messages that a ban deletes."""
    ping: Ping = Ping.NOBODY


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that an act depends on, as Discord knows it now. None: it does not exist, or is not asked for."""

    bot: Member
    asker: Member | None
    member: Member | None = None
    channel: Channel | None = None
    role: Role | None = None
    messages: tuple[Message, ...] = ()
    """Those of the act's messages that exist."""
    banned: str = ""
    """The name of the banned user; empty if they are not banned."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Id of each person whom a post mentions -> their name."""
