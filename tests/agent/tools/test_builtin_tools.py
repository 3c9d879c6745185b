"""The built-in tools, called through a real agent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolDenied
from pydantic_ai.usage import RunUsage

from signoff.agent.demo.model import demo_model
from signoff.agent.tools import builtin_tools
from signoff.approvals.model import Actor, Place, Verdict
from signoff.config.schema import BUILTIN_TOOLS
from signoff.gate.declarations import declaration, is_read_only
from signoff.gate.pending_call import CallInfo


async def call(tool: str, **args: Any) -> str | DeferredToolRequests:
    agent = Agent(demo_model(), tools=builtin_tools(), output_type=[str, DeferredToolRequests])
    return (await agent.run(f"call {tool} {json.dumps(args)}")).output


def test_the_names_are_those_of_the_config() -> None:
    assert tuple(tool.name for tool in builtin_tools()) == BUILTIN_TOOLS


async def test_the_file_tools_work_where_they_are_told(tmp_path: Path) -> None:
    [reading, writing] = builtin_tools(("read_file", "write_file"), tmp_path)
    info = CallInfo(Place("1", "2", "3"), Actor("4", "Ada", "1"))
    ctx = RunContext[Any](deps=None, model=demo_model(), usage=RunUsage(), tool_call_metadata=info)
    await writing.function_schema.call({"path": "x.txt", "content": "x"}, ctx)
    assert await reading.function_schema.call({"path": "x.txt"}, ctx) == "x.txt: 1 line, 1 bytes.\nx"
    assert (tmp_path / "1/x.txt").read_text() == "x"


def test_only_what_is_enabled_is_there() -> None:
    assert [tool.name for tool in builtin_tools(("current_time", "roll_dice"))] == ["roll_dice", "current_time"]
    assert builtin_tools(()) == []


def test_each_declares_what_it_needs() -> None:
    declared = {tool.name: declaration(tool.tool_def) for tool in builtin_tools()}
    assert declared == {
        "test_discord_approval": Verdict.ASK,
        "post_announcement": None,
        "roll_dice": None,
        "current_time": None,
        "ask_user": Verdict.ALLOW,
        "read_file": Verdict.ALLOW,
        "write_file": Verdict.ASK,
        "delete_file": Verdict.ASK,
        "rotate_log": Verdict.ASK,
    }
    read_only = [t.name for t in builtin_tools() if is_read_only(t.tool_def)]
    assert read_only == ["roll_dice", "current_time", "ask_user", "read_file"]


def test_the_model_is_told_what_each_is_for() -> None:
    for tool in builtin_tools():
        definition = tool.tool_def
        assert definition.description
        for name, parameter in definition.parameters_json_schema["properties"].items():
            assert parameter.get("description"), (tool.name, name)


async def test_the_test_tool_asks_and_then_says_its_parameter() -> None:
    agent = Agent(demo_model(), tools=builtin_tools(), output_type=[str, DeferredToolRequests])
    first = await agent.run('call test_discord_approval {"test_parameter": "x y"}')
    assert isinstance(first.output, DeferredToolRequests)
    for approval, words in (
        (True, "done: Test tool executed successfully with parameter: x y"),
        (ToolDenied("Rejected by user Ada."), "rejected: Rejected by user Ada."),
    ):
        results = first.output.build_results(approvals={first.output.approvals[0].tool_call_id: approval})
        second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
        assert isinstance(second.output, str)
        assert words in second.output


async def test_an_announcement_asks_only_for_everyone_and_says_why() -> None:
    assert "done: Announcement to team: hi" in str(await call("post_announcement", text="hi"))
    asked = await call("post_announcement", text="hi", audience="everyone")
    assert isinstance(asked, DeferredToolRequests)
    [metadata] = asked.metadata.values()
    assert metadata == {
        "summary": "Announce to everyone: hi",
        "reason": "An announcement to everyone disturbs many.",
    }
    assert "not run" in str(await call("post_announcement", text="hi", audience="the world"))


async def test_dice_are_as_many_and_as_high_as_asked_for() -> None:
    text = str(await call("roll_dice", sides=3, count=100))
    result = json.loads(text[text.index("{") :])
    assert len(result["dice"]) == 100
    assert set(result["dice"]) == {1, 2, 3}
    assert result["total"] == sum(result["dice"])


@pytest.mark.parametrize("args", [{"sides": 1}, {"sides": 1001}, {"count": 0}, {"count": 101}, {"sides": "many"}])
async def test_impossible_dice_are_not_rolled(args: dict[str, Any]) -> None:
    assert "- roll_dice: not run: " in str(await call("roll_dice", **args))


async def test_the_time_is_now() -> None:
    text = str(await call("current_time"))
    told = datetime.fromisoformat(text.split("done: ")[1])
    assert abs((datetime.now(UTC) - told).total_seconds()) < 5
    assert "+09:00" in str(await call("current_time", timezone="Asia/Tokyo"))


@pytest.mark.parametrize("zone", ["Nowhere/Land", "", "../../etc/passwd", "Europe", "/etc/passwd", "a\0b"])
async def test_a_zone_that_is_none_fails_with_words_for_the_model(zone: str) -> None:
    assert "- current_time: failed: There is no time zone" in str(await call("current_time", timezone=zone))
