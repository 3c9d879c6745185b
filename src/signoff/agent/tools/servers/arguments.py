"""The types of arguments that the Discord tools share, and the server that a call is for.

An id is written in one way only, so that a rule about an id cannot be bypassed: a mention such as <@123> becomes 123
before the rules and the card see it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed

from signoff.gate.pending_call import CallInfo, call_info
from signoff.servers.ports import Servers

LARGEST = 2**64
_FORMS = {
    "user": re.compile(r"\s*(?:<@!?)?([0-9]{1,20})>?\s*"),
    "channel": re.compile(r"\s*(?:<#)?([0-9]{1,20})>?\s*"),
    "role": re.compile(r"\s*(?:<@&)?([0-9]{1,20})>?\s*"),
    "message": re.compile(r"\s*(?:https://\S+/)?([0-9]{1,20})\s*"),
}
_SOURCES = {
    "user": "list_members gives it",
    "channel": "list_channels gives it",
    "role": "list_roles gives it",
    "message": "read_channel gives it",
}


def _reader(kind: str) -> BeforeValidator:
    def read(value: Any) -> Any:
        match = _FORMS[kind].fullmatch(str(value))
        if match is None or not 0 < int(match[1]) < LARGEST:
            raise ValueError(f"write the {kind}'s id, a number in quotes; {_SOURCES[kind]}")
        return str(int(match[1]))

    return BeforeValidator(read, json_schema_input_type=str)


def _or_empty(kind: str) -> BeforeValidator:
    read = _reader(kind).func
    return BeforeValidator(
        lambda value: "" if value in ("", None) else read(value),  # pyright: ignore[reportCallIssue, reportUnknownLambdaType]
        json_schema_input_type=str,
    )


UserId = Annotated[str, _reader("user")]
ChannelId = Annotated[str, _reader("channel")]
RoleId = Annotated[str, _reader("role")]
MessageId = Annotated[str, _reader("message")]
ChannelIdOrNone = Annotated[str, _or_empty("channel")]
MessageIdOrNone = Annotated[str, _or_empty("message")]
Reason = Annotated[str, Field(max_length=300)]
MOST_DELETED = 50
"""The most messages that one call deletes."""


def server_of(ctx: RunContext[Any], servers: Servers | None) -> tuple[Servers, CallInfo]:
    """Return the way to the server, and where the call comes from. Raises ToolFailed outside of a server."""
    info = call_info(ctx)
    if servers is None:
        raise ToolFailed("Refused: this tool works in a Discord server only, and this conversation is not on Discord.")
    if info is None or info.place.is_direct:
        raise ToolFailed("Refused: this tool works in a server only, not in direct messages.")
    return servers, info
