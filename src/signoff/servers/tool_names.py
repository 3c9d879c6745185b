"""The names of the Discord tools, as `[tools] enable` has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from signoff.servers.model import Kind

ReadingTool = Literal["read_channel", "list_members", "list_roles", "list_channels"]
ActingTool = Literal[
    "post_message",
    "pin_message",
    "unpin_message",
    "create_thread",
    "create_channel",
    "set_slow_mode",
    "time_out_member",
    "kick_member",
    "ban_member",
    "unban_user",
    "delete_messages",
    "assign_role",
    "remove_role",
]
DiscordTool = Literal["discord", ReadingTool, ActingTool]
"""A single tool, or "discord" for all of them."""
READING: tuple[str, ...] = get_args(ReadingTool)
ACTING: tuple[str, ...] = get_args(ActingTool)
EVERY_TOOL = "discord"


def enabled_tools(enabled: Iterable[str]) -> tuple[str, ...]:
    """Return the Discord tools among the names of `[tools] enable`."""
    names = set(enabled)
    return tuple(name for name in (*READING, *ACTING) if EVERY_TOOL in names or name in names)


def enabled_kinds(enabled: Iterable[str]) -> tuple[Kind, ...]:
    """Return the kinds of acts among the names of `[tools] enable`."""
    from signoff.servers.model import Kind  # here, because few need it

    return tuple(Kind(name) for name in enabled_tools(enabled) if name in ACTING)
