"""The records that make up a Discord.

They have no behaviour, no wire format and no I/O: `world` stores them, `payloads` writes them out.
"""

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any

Json = dict[str, Any]


class ChannelType(IntEnum):
    TEXT = 0
    DM = 1
    CATEGORY = 4
    ANNOUNCEMENT_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12


class MessageType(IntEnum):
    DEFAULT = 0
    CHANNEL_PINNED = 6
    THREAD_CREATED = 18
    REPLY = 19
    CHAT_INPUT_COMMAND = 20
    THREAD_STARTER = 21
    CONTEXT_MENU_COMMAND = 23


class MessageFlag(IntFlag):
    SUPPRESS_EMBEDS = 1 << 2
    HAS_THREAD = 1 << 5
    EPHEMERAL = 1 << 6
    LOADING = 1 << 7
    SUPPRESS_NOTIFICATIONS = 1 << 12
    COMPONENTS_V2 = 1 << 15


@dataclass
class User:
    id: int
    name: str
    global_name: str | None = None
    bot: bool = False
    accepts_dms: bool = True


@dataclass
class Application:
    """A bot's registration. Its id is the bot user's id, as for every application made today."""

    id: int
    name: str
    owner_id: int
    tokens: list[str]
    message_content: bool = False
    members: bool = False
    presences: bool = False


@dataclass
class Role:
    id: int
    name: str
    permissions: int
    position: int = 1
    color: int = 0
    hoist: bool = False
    mentionable: bool = False
    bot_id: int | None = None


@dataclass
class Member:
    user_id: int
    joined_at: str
    roles: list[int] = field(default_factory=list[int])
    nick: str | None = None
    timed_out_until: str | None = None


@dataclass
class Guild:
    id: int
    name: str
    owner_id: int
    roles: dict[int, Role] = field(default_factory=dict[int, Role])
    members: dict[int, Member] = field(default_factory=dict[int, Member])
    banned: list[int] = field(default_factory=list[int])


@dataclass
class Overwrite:
    """The permissions that a channel allows or denies to one role (kind 0) or one member (kind 1)."""

    id: int
    kind: int
    allow: int = 0
    deny: int = 0


@dataclass
class Thread:
    """The fields of a channel that only threads have."""

    owner_id: int
    created_at: str
    archive_stamp: str
    archived: bool = False
    locked: bool = False
    auto_archive_minutes: int = 4320
    invitable: bool = True
    members: dict[int, str] = field(default_factory=dict[int, str])
    message_count: int = 0
    total_sent: int = 0


@dataclass
class Channel:
    id: int
    type: int
    name: str = ""
    guild_id: int | None = None
    parent_id: int | None = None
    position: int = 0
    topic: str | None = None
    slowmode: int = 0
    overwrites: list[Overwrite] = field(default_factory=list[Overwrite])
    recipients: list[int] = field(default_factory=list[int])
    last_message_id: int | None = None
    thread: Thread | None = None


@dataclass
class Attachment:
    id: int
    filename: str
    data: bytes
    content_type: str | None = None
    description: str | None = None
    ephemeral: bool = False


@dataclass
class Reaction:
    emoji: str
    emoji_id: int | None
    users: list[int] = field(default_factory=list[int])


@dataclass
class Message:
    """One message. Only the sandbox knows `pings`, `unfurls` and `edits`."""

    id: int
    channel_id: int
    author_id: int
    timestamp: str
    type: int = MessageType.DEFAULT
    content: str = ""
    embeds: list[Json] = field(default_factory=list[Json])
    components: list[Json] = field(default_factory=list[Json])
    flags: int = 0
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    mentions: list[int] = field(default_factory=list[int])
    mention_roles: list[int] = field(default_factory=list[int])
    mention_everyone: bool = False
    edited_timestamp: str | None = None
    nonce: str | None = None
    tts: bool = False
    pinned: bool = False
    reference: Json | None = None
    webhook_id: int | None = None
    webhook_name: str | None = None
    application_id: int | None = None
    interaction: Json | None = None
    ephemeral_to: int | None = None
    reactions: list[Reaction] = field(default_factory=list[Reaction])
    pings: list[Json] = field(default_factory=list[Json])
    unfurls: list[str] = field(default_factory=list[str])
    edits: int = 0


@dataclass
class Webhook:
    id: int
    channel_id: int
    guild_id: int
    name: str
    token: str


@dataclass
class Command:
    """An application command as the bot registered it; `guild_id` is None for a global one."""

    id: int
    application_id: int
    guild_id: int | None
    version: int
    body: Json
