"""The incident: the demo model reacts to what really happened, step by step."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import Agent

from signoff.agent.demo.examples import example_call, examples_for
from signoff.agent.demo.full_log import LOG
from signoff.agent.demo.grammar import INCIDENT, CannotFollow, read
from signoff.agent.demo.machine import machine_tools
from signoff.agent.demo.model import demo_model
from signoff.agent.demo.story import KEEP_IT, MAKE_A_LOG, Happened, go_on
from signoff.agent.tools import builtin_tools
from signoff.config.schema import BUILTIN_TOOLS

TOOLS = ("read_file", "delete_file", "rotate_log")

READ = Happened("read_file", "done", f"{LOG}: 3 lines, 90 bytes.\na DEBUG x\nb DEBUG y\nc ERROR No space left\n")
PROMPT = "incident: the disk of web-1 is full"


def rejected(tool: str, reason: str = "") -> Happened:
    note = f" Reason: {reason}" if reason else ""
    return Happened(tool, "rejected", f"Rejected by user Ada: the call was not run.{note}")


def test_it_begins_with_the_log_and_then_wants_to_delete_it() -> None:
    first = go_on([], TOOLS)
    assert [(call.tool, call.args) for call in first.calls] == [("read_file", {"path": LOG})]
    second = go_on([READ], TOOLS)
    assert [(call.tool, call.args) for call in second.calls] == [("delete_file", {"path": LOG})]
    assert "2 of its 3 lines are DEBUG" in second.words
    assert "No space left" in second.words


def test_where_a_machine_can_be_looked_at_it_begins_with_its_disk() -> None:
    with_machine = (*TOOLS, "check_disk")
    first = go_on([], with_machine)
    assert [(call.tool, call.args) for call in first.calls] == [("check_disk", {"host": "web-1"})]
    full = Happened("check_disk", "done", "web-1: the disk is full.")
    assert [call.tool for call in go_on([full], with_machine).calls] == ["read_file"]
    assert [call.tool for call in go_on([full, READ], with_machine).calls] == ["delete_file"]
    end = go_on([full, READ, Happened("delete_file", "done", f"Deleted {LOG}.")], with_machine)
    assert "2 of its 3 lines are DEBUG" in end.words


def test_a_reason_leads_to_a_better_proposal_that_quotes_it() -> None:
    better = go_on([READ, rejected("delete_file", "Keep it, we need it for the post-mortem.")], TOOLS)
    assert [call.tool for call in better.calls] == ["rotate_log"]
    assert "we need it for the post-mortem" in better.words


def test_without_a_reason_it_asks_what_would_be_better_and_understands_the_reply() -> None:
    asking = go_on([READ, rejected("delete_file")], TOOLS)
    assert asking.calls == ()
    assert "What would be better?" in asking.words
    assert f"`{KEEP_IT}`" in asking.words
    [(tool, args)] = [(call.tool, call.args) for each in read(KEEP_IT, ["rotate_log"]).rounds for call in each.calls]
    assert (tool, args) == ("rotate_log", {"path": LOG})


def test_a_reason_that_it_does_not_understand_changes_nothing() -> None:
    lost = go_on([READ, rejected("delete_file", "It is Friday.")], TOOLS)
    assert lost.calls == ()
    assert "It is Friday." in lost.words


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([Happened("read_file", "failed", "There is no file")], "I cannot read"),
        ([Happened("read_file", "done", f"{LOG}: 0 lines, 0 bytes.\n")], "is empty"),
        ([READ, Happened("delete_file", "done", f"Deleted {LOG}.")], "all that is left of it"),
        ([READ, Happened("delete_file", "timed out", "Timeout: nobody decided.")], "still there"),
        ([READ, rejected("delete_file", "keep it"), Happened("rotate_log", "done", "Rotated.")], "Nothing is lost"),
        ([READ, rejected("delete_file", "keep it"), rejected("rotate_log", "no")], "a person has to take over"),
    ],
)
def test_every_other_outcome_ends_the_story_truthfully(events: list[Happened], words: str) -> None:
    end = go_on(events, TOOLS)
    assert end.calls == ()
    assert words in end.words
    assert "Nothing is lost" in end.words or "start again" in end.words, "a dead end"


def test_after_the_deletion_it_says_what_to_try_next() -> None:
    end = go_on([READ, Happened("delete_file", "done", f"Deleted {LOG}.")], TOOLS)
    assert f"`{INCIDENT}`" in end.words
    assert "reject" in end.words


def test_without_a_log_it_offers_to_make_one() -> None:
    missing = Happened("read_file", "failed", "There is no file")
    assert MAKE_A_LOG not in go_on([missing], TOOLS).words
    assert f"`{MAKE_A_LOG}`" in go_on([missing], (*TOOLS, "write_file")).words
    [(tool, path)] = [(c.tool, c.args["path"]) for r in read(MAKE_A_LOG, ["write_file"]).rounds for c in r.calls]  # type: ignore[index]
    assert (tool, path) == ("write_file", LOG)


def test_without_the_tools_nobody_is_promised_the_story() -> None:
    assert read(PROMPT, ["read_file", "delete_file", "rotate_log"]).story
    with pytest.raises(CannotFollow, match="delete_file"):
        read(PROMPT, ["read_file"])


def test_the_example_for_a_tool_calls_that_tool_once() -> None:
    def answer(question: str) -> str:
        return question

    agent = Agent(demo_model(), tools=[*builtin_tools(), *machine_tools(Path("workspace")), answer])
    examples = examples_for(agent)
    assert [name for name, _ in examples][:2] == ["answer", "check_disk"], "one's own tools come first"
    assert {name for name, _ in examples} == {*BUILTIN_TOOLS, "check_disk", "answer"}
    for name, example in examples:
        assert [[call.tool for call in each.calls] for each in read(example, [name]).rounds] == [[name]]
        assert "\\" not in example
    assert dict(examples)["test_discord_approval"] == 'please run the test approval tool with parameter "hello"'


@pytest.mark.parametrize(
    ("schema", "call"),
    [
        ({"properties": {}}, "call t {}"),
        (
            {"properties": {"a": {"type": "string"}, "n": {"type": "integer", "minimum": 3}}, "required": ["a", "n"]},
            'call t {"a": "example", "n": 3}',
        ),
        ({"properties": {"a": {"type": "string"}}}, "call t {}"),
        ({"properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}, 'call t {"a": "x"}'),
        (
            {"properties": {"a": {"$ref": "#/$defs/P"}}, "required": ["a"], "$defs": {"P": {"type": "boolean"}}},
            'call t {"a": true}',
        ),
        (
            {"properties": {"a": {"type": "array", "items": {"type": "number"}}}, "required": ["a"]},
            'call t {"a": [1]}',
        ),
        ({"properties": {"a": True}, "required": ["a"]}, 'call t {"a": "example"}'),
        (
            {"properties": {"a": {"type": "string", "examples": ["one\ntwo"]}}, "required": ["a"]},
            'call t {"a": "one"}',
        ),
        (
            {"properties": {"a": {"enum": ["one\ntwo"]}}, "required": ["a"]},
            'call t {"a": "one\\ntwo"}',  # no other value would be valid
        ),
    ],
)
def test_an_example_call_fits_the_schema(schema: dict[str, object], call: str) -> None:
    assert example_call("t", schema) == call
