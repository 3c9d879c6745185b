"""The permissions that each act needs, by discord.py's names, and their names in Discord."""

from __future__ import annotations

from collections.abc import Iterable

from signoff.dataclass import dataclass
from signoff.servers.model import Act, Channel, ChannelKind, Kind, Ping

NAMES = {
    "view_channel": "View Channel",
    "read_message_history": "Read Message History",
    "send_messages": "Send Messages",
    "send_messages_in_threads": "Send Messages in Threads",
    "create_public_threads": "Create Public Threads",
    "mention_everyone": "Mention Everyone",
    "manage_messages": "Manage Messages",
    "pin_messages": "Pin Messages",
    "manage_threads": "Manage Threads",
    "manage_channels": "Manage Channels",
    "manage_roles": "Manage Roles",
    "moderate_members": "Time Out Members",
    "kick_members": "Kick Members",
    "ban_members": "Ban Members",
    "administrator": "Administrator",
}
"""discord.py's name of a permission -> its name in Discord."""


@dataclass(frozen=True, slots=True)
class Need:
    """The permissions for a kind of act. `server`: in the server; `here`: in its channel."""

    here: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    outranks: bool = False
    """Whether the member must be below the asker and the bot in the order of roles."""
    repeatable: bool = True
    """Whether sending the same request twice changes nothing more than sending it once."""
    adds_up: bool = False
    """Whether a second run of the tool does more, although a repeated request does not: it posts again, for example."""
    destructive: bool = False

    @property
    def idempotent(self) -> bool:
        """Whether a second run of the tool with the same arguments has no further effect."""
        return self.repeatable and not self.adds_up


_SEES = ("view_channel", "read_message_history")
NEEDS = {
    Kind.POST: Need(here=("view_channel", "send_messages"), adds_up=True),
    Kind.PIN: Need(here=(*_SEES, "pin_messages")),
    Kind.UNPIN: Need(here=(*_SEES, "pin_messages")),
    Kind.THREAD: Need(here=("view_channel", "create_public_threads"), repeatable=False),
    Kind.CHANNEL: Need(server=("manage_channels",), repeatable=False),
    Kind.SLOW_MODE: Need(here=("view_channel", "manage_channels")),
    Kind.TIME_OUT: Need(server=("moderate_members",), outranks=True, adds_up=True),
    Kind.KICK: Need(server=("kick_members",), outranks=True, repeatable=False, destructive=True),
    Kind.BAN: Need(server=("ban_members",), outranks=True, destructive=True),
    Kind.UNBAN: Need(server=("ban_members",), repeatable=False),
    Kind.DELETE: Need(here=(*_SEES, "manage_messages"), destructive=True),
    Kind.ASSIGN: Need(server=("manage_roles",)),
    Kind.REMOVE: Need(server=("manage_roles",)),
}
"""Kind of act -> what it needs, in an ordinary channel. A post is repeatable because it carries a nonce.

A timeout begins anew with each run, so a second one ends later."""

IN_THREADS = {"send_messages": "send_messages_in_threads", "manage_channels": "manage_threads"}
"""Permission in a channel -> the one that counts in a thread instead."""


def needed_here(act: Act, channel: Channel) -> tuple[str, ...]:
    """Return the permissions that this act needs in this channel."""
    needed = list(NEEDS[act.kind].here)
    if act.kind is Kind.CHANNEL:
        needed = ["view_channel", "manage_channels"]  # the channel is the category
    if channel.kind is ChannelKind.THREAD:
        needed = [IN_THREADS.get(name, name) for name in needed]
        if channel.is_locked and act.kind in (Kind.POST, Kind.PIN, Kind.UNPIN):
            needed.append("manage_threads")
    if act.kind is Kind.THREAD and act.messages:
        needed.append("read_message_history")
    if act.ping is Ping.EVERYONE:
        needed.append("mention_everyone")
    return tuple(needed)


def wanted_by(kinds: Iterable[Kind]) -> tuple[str, ...]:
    """Return the permissions that the bot needs for these kinds of acts, in the order of `NAMES`."""
    wanted = {name for kind in kinds for name in (*NEEDS[kind].here, *NEEDS[kind].server)}
    return tuple(name for name in NAMES if name in wanted)


def listed(permissions: Iterable[str]) -> str:
    """Return permissions by their names in Discord, for people."""
    return ", ".join(NAMES.get(name, name.replace("_", " ").title()) for name in permissions)
