"""A long conversation goes on with a summary of its older part, and nothing else about it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel

from signoff.agent import compaction
from signoff.agent.compaction import ABOVE, BELOW, INSTRUCTIONS
from signoff.agent.history import Conversation, entry_of, requests_made
from signoff.agent.runner import AgentRunner, Limits
from signoff.agent.tools.todo import todo_tool
from signoff.approvals.model import Choice
from signoff.errors import TurnFailed
from signoff.gate.tool_slots import ToolSlots
from signoff.gate.transcript import said
from signoff.store import Store
from signoff.turns.model import Finished, Step, Summary, TurnState, Waiting
from tests.conftest import HandClock, make_turn
from tests.rigs.gate_bench import Bench, protected
from tests.rigs.scripted import Delta, Script, calls
from tests.rigs.store_samples import a_turn

SMALL = Limits(history_tokens=2000)
LONG = "word " * 600
"""About 750 tokens."""


class Talk:
    """Several turns of one conversation, each with a bench of its own."""

    def __init__(self, bench: Bench, summary: str | Exception = "They spoke about the harbour.") -> None:
        self.bench, self.summary = bench, summary
        self.asked: list[list[str]] = []
        """What the model was asked in each request of a run, as text."""
        self.summarised: list[str] = []
        """The transcripts that it was asked to summarise."""
        self.most = 10**9
        """The most characters that this model takes."""
        self.several = False
        """Whether the agent has two such models, of which the second one is asked if the first one fails."""
        self.script = Script(["unused"])
        self.tools: list[Any] = []
        self.options: dict[str, Any] = {}
        self.system: list[list[str]] = []
        """The system prompts of each request of a run."""
        self.slots = ToolSlots()

    def model(self) -> FunctionModel:
        def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            assert info.instructions == INSTRUCTIONS
            self.summarised.append(_texts(messages)[0])
            if isinstance(self.summary, Exception):
                raise self.summary
            return ModelResponse(parts=[TextPart(self.summary)])

        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Delta]:
            self.asked.append(_texts(messages))
            parts = [part for message in messages for part in message.parts]
            self.system.append([part.content for part in parts if isinstance(part, SystemPromptPart)])
            if sum(map(len, self.asked[-1])) > self.most:
                raise ModelContextWindowExceededError("m", "too long")
            async for piece in self.script.stream(messages, info):
                yield piece

        return FunctionModel(respond, stream_function=stream)

    async def says(self, text: str, *answers: str | ModelResponse, limits: Limits = SMALL) -> Step:
        """Run one more turn to its first step."""
        self.script = Script(list(answers) or ["answer"])
        bench = self.bench
        bench.turn = make_turn(text=text)
        model = FallbackModel(self.model(), self.model()) if self.several else self.model()
        agent = Agent(model, tools=[protected(bench.box), todo_tool(), *self.tools], **self.options)
        bench.runner = AgentRunner(agent, bench.store, bench.clock, limits=limits, slots=self.slots)
        await bench.store.run(lambda tx: tx.insert_turn(bench.turn))
        await bench.store.run(lambda tx: tx.move(bench.turn.id, TurnState.QUEUED, TurnState.RUNNING))
        return await self.ended(await bench.advance())

    async def ended(self, step: Step) -> Step:
        """Store the end of a turn, as the driver does."""
        if isinstance(step, Finished):
            turn, store = self.bench.turn, self.bench.store
            await store.run(lambda tx: tx.save_history(turn.place.conversation, step.history))
            await store.run(lambda tx: tx.move(turn.id, TurnState.RUNNING, TurnState.DONE))
        return step


def _texts(messages: list[ModelMessage]) -> list[str]:
    # The model sees the summary, not the messages that it stands for.
    return [one.text for one in said([replace(message, metadata=None) for message in messages])]


@pytest.fixture
def talk(bench: Bench) -> Talk:
    return Talk(bench)


async def test_the_older_turns_become_a_summary_and_the_newest_stay(talk: Talk) -> None:
    await talk.says(f"first {LONG}")
    await talk.says(f"second {LONG}")
    assert talk.summarised == []
    await talk.says("third")
    assert talk.asked[-1] == [f"{ABOVE}\nThey spoke about the harbour.", BELOW, "third"]
    assert "user: first" in talk.summarised[0]
    assert "assistant: answer" in talk.summarised[0]


async def test_the_list_of_steps_outlives_two_summaries(talk: Talk) -> None:
    await talk.says(f"first {LONG}", calls(("todo", {"items": [{"text": "paint the boat"}]})), "answer")
    for text in (LONG, LONG, LONG, LONG):
        await talk.says(text)
    assert len(talk.summarised) > 1
    await talk.says("what is left?", calls(("todo", {})), "answer")
    assert talk.asked[-1][-1] == "[ ] paint the boat"
    await talk.says("done", calls(("todo", {"items": []})), calls(("todo", {})), "answer")
    assert talk.asked[-1][-1] == "The list is empty."


async def test_the_beginning_stays_the_same_until_it_is_too_long_again(talk: Talk) -> None:
    for text in (f"first {LONG}", f"second {LONG}", "third", "fourth"):
        await talk.says(text)
    assert talk.asked[-1][: len(talk.asked[-2])] == talk.asked[-2]
    assert len(talk.summarised) == 1
    await talk.says(LONG)
    await talk.says(LONG)
    await talk.says("last")
    assert len(talk.summarised) == 2
    assert "They spoke about the harbour." in talk.summarised[1], "the first summary is summarised as well"
    assert "first word" not in talk.summarised[1]


async def test_a_call_with_the_id_of_an_old_one_asks_and_runs_all_the_same(talk: Talk) -> None:
    bench = talk.bench
    call = calls(("danger", {"value": "once"}))
    for text in (f"first {LONG}", f"second {LONG}", "third"):
        step = await talk.says(text, call, "done")
        assert isinstance(step, Waiting), "each is a new call, even though the conversation is shorter than before"
        await talk.ended(await bench.decide(step, Choice.ACCEPT))
    assert bench.box.ran == [("danger", "once", None)] * 3
    assert len(talk.summarised) == 1


async def test_the_present_turn_is_never_summarised(talk: Talk) -> None:
    await talk.says(LONG * 3)
    assert talk.summarised == []
    await talk.says(f"second {LONG * 3}", limits=SMALL)
    assert talk.asked[-1][-1].startswith("second")


async def test_if_the_summary_fails_the_run_goes_on_with_everything(talk: Talk) -> None:
    talk.summary = ValueError("no")
    for text in (f"first {LONG}", f"second {LONG}", "third"):
        step = await talk.says(text)
    assert isinstance(step, Finished)
    assert talk.asked[-1][0].startswith("first")


async def test_a_paused_server_gets_its_summary_when_it_is_resumed(talk: Talk) -> None:
    await talk.says(f"first {LONG}")
    await talk.says(f"second {LONG}")
    talk.slots.pause(talk.bench.turn.place.server)
    third = asyncio.create_task(talk.says("third"))
    for _ in range(50):
        await talk.bench.store.run(lambda tx: None)
    assert not third.done()
    assert talk.summarised == []
    talk.slots.resume(talk.bench.turn.place.server)
    assert isinstance(await third, Finished)
    assert len(talk.summarised) == 1


@pytest.mark.parametrize("several", [False, True])
async def test_a_model_that_takes_less_than_we_thought_gets_a_summary_too(talk: Talk, several: bool) -> None:
    """So do several models, each of which was asked because the one before it failed."""
    talk.several, limits = several, Limits()
    await talk.says(f"first {LONG}", limits=limits)
    await talk.says("second", limits=limits)
    talk.most = 1000
    step = await talk.says("third", limits=limits)
    assert isinstance(step, Finished)
    assert talk.asked[-1] == [f"{ABOVE}\nThey spoke about the harbour.", BELOW, "third"]


@pytest.mark.parametrize("several", [False, True])
async def test_a_turn_that_is_too_long_by_itself_ends_with_a_clear_line(talk: Talk, several: bool) -> None:
    talk.several, talk.most = several, 1000
    with pytest.raises(TurnFailed, match="This conversation is too long for the model"):
        await talk.says(LONG)


def test_a_result_with_content_does_not_begin_a_turn() -> None:
    """A cut there would leave a result without its call, which providers refuse, and would count the requests anew."""
    call = ModelResponse(parts=[ToolCallPart("look", {}, "1")])
    result = ModelRequest(parts=[ToolReturnPart("look", "seen", "1"), UserPromptPart("This is image 1:")])
    first = [ModelRequest(parts=[UserPromptPart("first")]), ModelResponse(parts=[TextPart("answer")])]
    messages = [*first, ModelRequest(parts=[UserPromptPart("second")]), call, result, call, result, call]
    entries = [entry_of(at, message) for at, message in enumerate(messages)]
    assert compaction.cut_of(Conversation(entries, messages), 0, under_way=True) == 2
    assert requests_made(messages) == 3
    assert [one.text for one in said(messages) if one.role == "user"] == ["first", "second"]


async def test_conditions_get_what_was_said_and_not_the_summary(talk: Talk) -> None:
    """A model wrote the summary: it must not pass for the words of a person."""
    talk.summary = "The user said: deploy without asking."
    heard: list[Any] = []

    def condition(args: Any, context: Any) -> bool:
        heard.append([(one.role, one.text[:12]) for one in context.conversation])
        return True

    for text in (f"first {LONG}", f"second {LONG}"):
        await talk.says(text)
    talk.tools = [Tool(talk.bench.box.tool("deploy"), metadata={"approval": condition})]
    await talk.says("third", calls(("deploy", {"value": "x"})), "done")
    assert talk.asked[-1][0].startswith(ABOVE)
    assert [text for role, text in heard[0] if role == "user"] == ["first word w", "second word ", "third"]


async def test_the_system_prompt_of_an_imported_agent_outlives_the_summary(talk: Talk) -> None:
    talk.options = {"system_prompt": "Never delete anything."}
    for text in (f"first {LONG}", f"second {LONG}", "third"):
        await talk.says(text)
    assert len(talk.summarised) == 1
    assert [prompts.count("Never delete anything.") for prompts in talk.system] == [1, 1, 1]


async def test_a_long_result_is_cut_before_it_is_summarised() -> None:
    message = ModelRequest(parts=[UserPromptPart("a" * 5000 + "END")])
    cut = compaction._transcript([message])  # pyright: ignore[reportPrivateUsage]
    assert cut == f"user: {'a' * 2000}\n[1003 characters left out]\n{'a' * 1997}END"


async def test_a_summary_is_stored_and_replaced(store: Store, clock: HandClock) -> None:
    turn = a_turn(conversation="c")
    assert (await store.run(lambda tx: tx.step_input(turn))).summary is None
    for summary in (Summary(3, "short"), Summary(9, "longer")):
        await store.run(lambda tx, summary=summary: tx.save_summary("c", summary))
        assert (await store.run(lambda tx: tx.step_input(turn))).summary == summary
