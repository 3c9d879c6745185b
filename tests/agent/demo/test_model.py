"""The offline demo model, run through real agents: every flow, streamed and not."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, Tool, ToolDenied
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)
from pydantic_ai.run import AgentRunResult, AgentRunResultEvent

from signoff.agent.demo.grammar import REQUESTS, read
from signoff.agent.demo.machine import machine_tools
from signoff.agent.demo.model import demo_model
from signoff.agent.tools import builtin_tools
from signoff.config.schema import BUILTIN_TOOLS

EVERY_TOOL: list[Tool[Any]] = [*builtin_tools((*BUILTIN_TOOLS, "discord")), *machine_tools(Path("workspace"))]
"""The tools of the sandbox, and the Discord tools."""
Decide = Callable[[ToolCallPart], bool | ToolDenied]
Result = AgentRunResult[Any]


@dataclass
class Talk:
    """One turn: its reply, and the requests on the way."""

    answer: str
    messages: list[ModelMessage]
    asked: list[list[ToolCallPart]] = field(default_factory=list)
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    chunks: list[str] = field(default_factory=list)

    @property
    def responses(self) -> list[ModelResponse]:
        return [message for message in self.messages if isinstance(message, ModelResponse)]

    @property
    def calls(self) -> list[list[tuple[str, Any]]]:
        return [[(c.tool_name, c.args_as_dict()) for c in r.tool_calls] for r in self.responses if r.tool_calls]


Converse = Callable[..., Awaitable[Talk]]


@pytest.fixture(params=["run", "run_stream_events"])
def talk(request: pytest.FixtureRequest) -> Converse:
    async def one(agent: Agent[None, Any], chunks: list[str], *args: Any, **kwargs: Any) -> Result:
        if request.param == "run":
            return await agent.run(*args, **kwargs)
        result: Result | None = None
        async with agent.run_stream_events(*args, **kwargs) as events:
            async for event in events:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    chunks.append(event.part.content)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    chunks.append(event.delta.content_delta)
                elif isinstance(event, AgentRunResultEvent):
                    result = event.result
        assert result is not None
        return result

    async def converse(
        prompt: str,
        decide: Decide = lambda call: True,
        *,
        tools: Sequence[Tool[Any]] | None = None,
        history: Sequence[ModelMessage] = (),
    ) -> Talk:
        agent: Agent[None, Any] = Agent(
            demo_model(),
            tools=builtin_tools() if tools is None else tools,
            output_type=[str, DeferredToolRequests],
            instructions="Be brief.",
        )
        found = Talk("", [])
        result = await one(agent, found.chunks, prompt, message_history=list(history))
        while isinstance(result.output, DeferredToolRequests):
            asked = result.output
            found.asked.append(asked.approvals)
            assert len(found.asked) < 10, "it asks for ever"
            found.metadata |= asked.metadata
            decisions: Mapping[str, Any] = {call.tool_call_id: decide(call) for call in asked.approvals}
            results = asked.build_results(approvals=decisions, calls={c.tool_call_id: "yes" for c in asked.calls})
            result = await one(
                agent, found.chunks, message_history=result.all_messages(), deferred_tool_results=results
            )
        found.answer = result.output
        found.messages = result.all_messages()[len(history) :]
        return found

    return converse


async def test_greeting_says_what_it_is_what_to_type_and_which_tools_there_are(talk: Converse) -> None:
    for prompt in ("help", "<@123456> hello", "Hi there", "", "what can you do?"):
        answer = (await talk(prompt, tools=EVERY_TOOL)).answer
        assert answer.startswith("I am the offline demo model: ")
        assert "I do not know" not in answer
        for line in [*(request.example for request in REQUESTS), "call NAME", *(t.name for t in EVERY_TOOL)]:
            assert line in answer


async def test_the_unknown_is_answered_honestly(talk: Converse) -> None:
    for prompt in ("write me a poem", "call me tomorrow", "please recall roll_dice"):
        result = await talk(prompt)
        assert "I do not know what to do with this one." in result.answer
        assert "I am the offline demo model" in result.answer
        assert result.calls == []


async def test_every_example_that_help_prints_works(talk: Converse) -> None:
    for request in REQUESTS:
        result = await talk(request.example, tools=EVERY_TOOL)
        assert "I do not know" not in result.answer
        assert "cannot follow" not in result.answer


async def test_static_approval(talk: Converse) -> None:
    result = await talk('please run the test approval tool with parameter "hello"')
    assert [[call.tool_name for call in batch] for batch in result.asked] == [["test_discord_approval"]]
    assert result.asked[0][0].args_as_dict() == {"test_parameter": "hello"}
    assert "test_discord_approval: done: Test tool executed successfully with parameter: hello" in result.answer


async def test_dynamic_approval_asks_only_for_some_arguments(talk: Converse) -> None:
    everyone = await talk('announce "Cake" to everyone')
    [metadata] = everyone.metadata.values()
    assert metadata["summary"] == "Announce to everyone: Cake"
    assert "done: Announcement to everyone: Cake" in everyone.answer
    team = await talk('announce "Cake" to the team')
    assert team.asked == []
    assert "done: Announcement to team: Cake" in team.answer


async def test_tools_without_approval(talk: Converse) -> None:
    assert (await talk("roll 3 dice with 20 sides")).calls == [[("roll_dice", {"sides": 20, "count": 3})]]
    assert (await talk("roll 2d8")).calls == [[("roll_dice", {"sides": 8, "count": 2})]]
    assert (await talk("what time is it in Asia/Tokyo?")).calls == [[("current_time", {"timezone": "Asia/Tokyo"})]]


async def test_a_batch_of_three_of_which_one_asks(talk: Converse) -> None:
    result = await talk("a batch of three calls")
    assert [name for name, _ in result.calls[0]] == ["roll_dice", "test_discord_approval", "current_time"]
    assert [len(batch) for batch in result.asked] == [1]
    assert len(re.findall(r"^- \w+: done: ", result.answer, re.M)) == 3


async def test_three_rounds_ask_three_times_in_one_turn(talk: Converse) -> None:
    result = await talk("three rounds please")
    assert [[call.args_as_dict()["test_parameter"] for call in batch] for batch in result.asked] == [
        ["round 1"],
        ["round 2"],
        ["round 3"],
    ]
    assert len(result.responses) == 4


async def test_a_failing_tool_is_told_apart(talk: Converse) -> None:
    assert (
        '- current_time: failed: There is no time zone "Nowhere/Land"' in (await talk("use a tool that fails")).answer
    )


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ("Rejected by user Ada: the call was not run. Reason: the deadline is near, no timeout please", "rejected"),
        ("Timeout: nobody decided in time, so the call was not run.", "timed out"),
        ("The request timed out.", "rejected"),
        ("Timed out.", "timed out"),
        ("Cancelled: people could not be asked.", "cancelled"),
        ("Not allowed: a rule says so.", "not allowed"),
        ("The bot stopped during this call: it may have run.", "not known"),
    ],
)
async def test_a_denial_is_reported_as_what_it_was(talk: Converse, told: str, outcome: str) -> None:
    result = await talk("test approval", lambda call: ToolDenied(told))
    assert f"- test_discord_approval: {outcome}: {told}" in result.answer


async def test_arguments_come_as_a_dict_or_as_json(talk: Converse) -> None:
    for prompt, kind in (("test approval", dict), ("test approval as json", str), ("test approval as dict", dict)):
        assert [type(call.args) for batch in (await talk(prompt)).asked for call in batch] == [kind]
    quoted = await talk('test approval with "as json"')
    assert isinstance(quoted.asked[0][0].args, dict)


@pytest.mark.parametrize("form", ["", " as json"])
async def test_a_very_long_parameter(talk: Converse, form: str) -> None:
    result = await talk(f"run the test approval tool with a long parameter of 20000 characters{form}")
    parameter = result.asked[0][0].args_as_dict()["test_parameter"]
    assert len(parameter) == 20_000
    assert parameter.startswith("00000-00001-")
    assert "characters in all" in result.answer
    assert len(result.answer) < 1000


async def test_any_tool_by_name_in_batches_and_rounds(talk: Converse) -> None:
    prompt = """call roll_dice {"sides": 6}; call test_discord_approval {"test_parameter": "a; then call x {} \\n}"}
    call current_time
    then call roll_dice {"count": 2} and call roll_dice {"count": 3}"""
    result = await talk(prompt)
    assert result.calls == [
        [
            ("roll_dice", {"sides": 6}),
            ("test_discord_approval", {"test_parameter": "a; then call x {} \n}"}),
            ("current_time", {}),
        ],
        [("roll_dice", {"count": 2}), ("roll_dice", {"count": 3})],
    ]
    assert len(result.asked) == 1


@pytest.mark.parametrize(
    "prompt", ["please call add {'a': 1}", 'call roll_dice {"sides": 6', 'call roll_dice {"sides": 6]; call x {}']
)
async def test_arguments_that_are_not_json_are_not_guessed(talk: Converse, prompt: str) -> None:
    result = await talk(prompt)
    assert result.calls == []
    assert "are not JSON" in result.answer


async def test_raw_arguments_and_unknown_tools_reach_the_framework(talk: Converse) -> None:
    raw = await talk("call roll_dice raw {not json; at all")
    assert raw.responses[0].tool_calls[0].args == "{not json; at all"
    assert "- roll_dice: not run: " in raw.answer
    assert "- nope: not run: Unknown tool name" in (await talk('call nope {"a": 1}')).answer


async def test_words_beside_a_call(talk: Converse) -> None:
    result = await talk('say I look first; call test_discord_approval {"test_parameter": "x"}')
    assert [part.part_kind for part in result.responses[0].parts] == ["text", "tool-call"]
    assert result.responses[0].text == "I look first"
    assert len(result.asked) == 1


async def test_plain_answers(talk: Converse) -> None:
    assert (await talk("say good morning")).answer == "good morning"
    assert (await talk('say "good morning"')).answer == "good morning"
    assert len((await talk("answer with 5,000 characters")).answer) == 5000


async def test_text_is_streamed_word_by_word() -> None:
    agent = Agent(demo_model())
    chunks: list[str] = []
    async with agent.run_stream("say one two  three") as stream:
        async for text in stream.stream_text(delta=True, debounce_by=None):
            chunks.append(text)
    assert chunks == ["one ", "two  ", "three"]


async def test_only_the_current_turn_counts(talk: Converse) -> None:
    first = await talk("three rounds", lambda call: ToolDenied("Rejected by user Ada."))
    second = await talk("roll 2d6", history=first.messages)
    assert second.calls == [[("roll_dice", {"sides": 6, "count": 2})]]
    assert "rejected" not in second.answer
    assert "test_discord_approval" not in second.answer


async def test_call_ids_are_unique_across_the_conversation(talk: Converse) -> None:
    first = await talk("three rounds")
    second = await talk("a batch of three calls", history=first.messages)
    ids = [call.tool_call_id for talk_ in (first, second) for r in talk_.responses for call in r.tool_calls]
    assert len(ids) == len(set(ids)) == 6


async def test_call_ids_repeat_on_request(talk: Converse) -> None:
    result = await talk("three rounds with repeated call ids")
    assert [[call.tool_call_id for call in r.tool_calls] for r in result.responses[:3]] == [["call_0"]] * 3


async def test_duplicate_ids_within_one_response_are_refused_by_the_framework(talk: Converse) -> None:
    plan = read("call roll_dice {}; call current_time {} with duplicate call ids", ["roll_dice", "current_time"])
    assert plan.ids == "duplicate"
    with pytest.raises(UnexpectedModelBehavior, match="call_0"):
        await talk("call roll_dice {}; call current_time {} with duplicate call ids")


async def test_a_plain_request_for_a_disabled_tool_is_declined(talk: Converse) -> None:
    result = await talk("test approval", tools=builtin_tools(["roll_dice"]))
    assert result.calls == []
    assert "the tool test_discord_approval is not enabled here" in result.answer


async def test_it_is_deterministic(talk: Converse) -> None:
    prompt = 'say first; call test_discord_approval {"test_parameter": "x"}; then call post_announcement {"text": "y"}'
    once, twice = await talk(prompt), await talk(prompt)
    assert once.answer == twice.answer
    assert [r.parts for r in once.responses] == [r.parts for r in twice.responses]
