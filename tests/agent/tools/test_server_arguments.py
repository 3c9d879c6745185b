"""Ids as the Discord tools take them: one spelling, so that a rule about an id cannot be bypassed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from signoff.agent.tools.servers import discord_tools
from signoff.agent.tools.servers.arguments import ChannelId, ChannelIdOrNone, MessageId, RoleId, UserId
from signoff.gate.declarations import declaration, is_read_only
from signoff.servers.model import Kind
from signoff.servers.tool_names import ACTING, READING, enabled_kinds, enabled_tools


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (UserId, "123"),
        (UserId, " 00123 "),
        (UserId, "<@123>"),
        (UserId, "<@!123>"),
        (UserId, 123),
        (ChannelId, "<#123>"),
        (RoleId, "<@&123>"),
        (MessageId, "https://discord.com/channels/1/2/123"),
    ],
)
def test_every_spelling_of_an_id_becomes_the_same(kind: Any, given: object) -> None:
    adapter: TypeAdapter[str] = TypeAdapter(kind)
    assert adapter.validate_python(given) == "123"
    assert adapter.validate_python("123") == "123", "the gate validates the shown arguments once more"


@pytest.mark.parametrize("given", ["", "Max", "<#123>", "<@&123>", "12x", "-5", "0", "1e5", "9" * 20, "1 2", "\u0661"])
def test_anything_else_is_refused(given: str) -> None:
    with pytest.raises(ValidationError, match="write the user's id"):
        TypeAdapter(UserId).validate_python(given)


def test_an_optional_id_may_be_empty() -> None:
    assert TypeAdapter(ChannelIdOrNone).validate_python("") == ""
    with pytest.raises(ValidationError):
        TypeAdapter(ChannelIdOrNone).validate_python("general")


def test_the_group_means_every_tool_and_none_is_on_by_itself() -> None:
    assert enabled_tools(["discord"]) == (*READING, *ACTING)
    assert enabled_tools(["roll_dice"]) == ()
    assert enabled_tools(["ban_member", "read_channel"]) == ("read_channel", "ban_member")
    assert enabled_kinds(["ban_member", "read_channel"]) == (Kind.BAN,)
    assert tuple(Kind) == ACTING


def test_reading_never_asks_and_acting_always_does() -> None:
    definitions = {tool.name: tool.tool_def for tool in discord_tools(["discord"], None)}
    assert list(definitions) == [*READING, *ACTING]
    assert {name for name, tool in definitions.items() if declaration(tool) == "allow"} == set(READING)
    assert {name for name, tool in definitions.items() if declaration(tool) == "ask"} == set(ACTING)
    assert {name for name, tool in definitions.items() if is_read_only(tool)} == set(READING)
    marked = {name for name, tool in definitions.items() if (tool.metadata or {}).get("destructive")}
    assert marked == {"kick_member", "ban_member", "delete_messages"}
    repeated = {name for name, tool in definitions.items() if (tool.metadata or {}).get("idempotent") is False}
    once = {"create_thread", "create_channel", "kick_member", "unban_user"}
    assert repeated == {*once, "post_message", "time_out_member"}, "a second run posts again, or times out for longer"


def test_nobody_is_asked_about_a_text_or_a_name_that_is_empty() -> None:
    validators = {tool.name: tool.function_schema.validator for tool in discord_tools(["discord"], None)}
    for tool, args in (("post_message", {"text": " \n "}), ("create_thread", {"name": "  "})):
        with pytest.raises(ValidationError, match="at least 1 character"):
            validators[tool].validate_python({"channel": "1", **args})
